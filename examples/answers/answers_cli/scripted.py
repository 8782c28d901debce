"""What a scripted model answers where no key is set: it cannot think, so it says that, and repeats what was found."""

from answering.domain.retrieval import RetrievalContext, RetrievedDocument

from devhost.script import Script

_LONGEST = 160
"""Characters of a document."""
NOTICE = "scripted model: no provider is called, the answer only repeats what the search found"


def script_for(context: RetrievalContext, strategy: str) -> Script:
    """Turns for each of the three strategies; of a plan, the question is the only subtask."""
    said = {"text": _text(context)}
    plan = {"tool_calls": [_call("submit_plan", {"subtasks": [context.question.text]})]}
    accepted = {"tool_calls": [_call("submit_reflection", {"is_completed": True, "advice": ""})]}
    planned = {"strategy": "gpt5_plan_and_reflect", "turns": [plan, said, accepted, said]}
    plain = {"strategy": ["gpt5_function_calling", "gpt5_react"], "turns": [said]}
    return Script.of({"query": context.question.text, **plain, "variants": [planned]}, strategy)


def _call(name: str, arguments: dict[str, object]) -> dict[str, object]:
    return {"name": name, "id": f"call_{name}", "arguments": arguments}


def _text(context: RetrievalContext) -> str:
    found = [f"- {_excerpt(document)} [{number}]" for number, document in enumerate(context.documents, start=1)]
    return "\n".join(
        ["I am a scripted model and cannot think. This is how the documents that were found begin:", "", *found]
    )


def _excerpt(document: RetrievedDocument) -> str:
    """Below its headings."""
    heading, _, body = document.content.partition("\n\n")
    text = " ".join((body or heading).replace("\n- ", "\n").removeprefix("- ").split())
    return f"{document.title}: {text if len(text) <= _LONGEST else f'{text[:_LONGEST]}…'}"
