"""Extracts what a page shows about calls: prompts, answers, arguments, results, and changes between prompts."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from devhost.node.outputs.run import plugin_error
from devhost.node.texts import ThoughtSpans
from devhost.protocol.wire import JsonObject
from devhost.trace.runs import Call, TracedRun, items, mapping

# The details of a call on the timeline, from the messages between plugin and host.


@dataclass(frozen=True)
class PromptPart:
    """One message of a prompt."""

    role: str
    text: str


@dataclass(frozen=True)
class ShownTool:
    """A tool as it was offered to the model."""

    name: str
    description: str
    schema: str
    """The JSON Schema of the parameters as text."""


def said_by(call: Call) -> tuple[str, str]:
    """Returns the thoughts and the text of a model's response."""
    spans = ThoughtSpans()
    said = [*(span for each in call.messages for span in spans.feed(_words(each.get("content")))), *spans.finish()]
    thought, text = (
        "".join(words for is_thought, words in said if is_thought is kind).strip() for kind in (True, False)
    )
    return thought, text


def given_to(call: Call) -> JsonObject:
    """Returns the arguments of a tool call, or the request of any other call."""
    return call.arguments or ({} if call.kind == "tool" else call.request)


def results_of(call: Call) -> Iterator[tuple[str, object]]:
    """Yields the type of each message with its text or with a value to show as JSON."""
    for data in (piece.data for piece in call.pieces):
        if "type" not in data:  # the response to a request of a tool, such as a summary or storage
            yield "answer", data
            continue
        match data.get("message"):
            case {"text": said} | {"json_object": said} | said:
                yield str(data["type"]).replace("_", " "), said


def traceback_of(call: Call) -> str:
    """Returns the traceback of a call that failed in the plugin; empty if there is none."""
    raised = plugin_error(call.error)
    if raised is None:
        return ""
    return raised[1].traceback or ""


def prompt_of(call: Call) -> tuple[PromptPart, ...]:
    """Returns the messages of a model call's prompt, with each tool call in them as a line of text."""
    said = []
    for message in call.prompt:
        called = [mapping(tool_call.get("function")) for tool_call in items(message.get("tool_calls"))]
        written = [f"→ {function.get('name')} {function.get('arguments')}" for function in called]
        lines = [_words(message.get("content")), *written]
        said.append(PromptPart(str(message.get("role")), "\n".join(filter(None, lines))))
    return tuple(said)


def offered_tools(call: Call) -> tuple[ShownTool, ...]:
    return tuple(
        ShownTool(
            str(tool.get("name")),
            str(tool.get("description") or ""),
            json.dumps(tool.get("parameters"), ensure_ascii=False, indent=2),
        )
        for tool in items(call.request.get("tools"))
    )


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(
        str(part.get("data"))
        if part.get("type") == "text"
        else f"[{part.get('type')}: {part.get('filename') or part.get('mime_type') or part.get('format')}]"
        for part in items(content)
    )


# The sources of an answer, each with its passage.


@dataclass(frozen=True)
class ShownSource:
    """One source of an answer."""

    number: str
    title: str
    document: str
    """The id of the document or the name of the dataset; empty if the id is the title."""
    is_cited: bool | None
    """Whether the answer cites the source, or `None` if that is not known."""
    passage: str
    """The text of the source; empty if no retrieved resource matches."""


def sources_of(variable: object, run: TracedRun) -> list[ShownSource]:
    """Returns the sources in the variable `sources`, or without that variable the resources that the run sent."""
    retrieving = (piece.data for piece in run.streamed if piece.data.get("type") == "retriever_resources")
    sent = [each for said in retrieving for each in items(mapping(said.get("message")).get("retriever_resources"))]
    if not isinstance(variable, list):
        return retrieved(sent)
    passages = {resource.get("position"): str(resource.get("content") or "") for resource in sent}
    return [
        ShownSource(
            number=str(source.get("number", place)),
            title=str(source.get("title") or source.get("document_id")),
            document=str(source["document_id"]) if source.get("title") and source.get("document_id") else "",
            is_cited=bool(source.get("cited")),
            passage=passages.get(source.get("number", place), ""),
        )
        for place, source in enumerate(items(variable), start=1)
    ]


def retrieved(resources: Sequence[JsonObject]) -> list[ShownSource]:
    """Returns retrieved resources as sources."""
    return [
        ShownSource(
            number=str(resource.get("position") or place),
            title=str(resource.get("title") or resource.get("document_name") or resource.get("document_id")),
            document=str(resource.get("dataset_name") or ""),
            is_cited=None,
            passage=str(resource.get("content") or ""),
        )
        for place, resource in enumerate(resources, start=1)
    ]


# The changes of a prompt since the previous round.


@dataclass(frozen=True)
class PromptChanges:
    """The difference between the prompts of two rounds."""

    parts: tuple[tuple[bool, tuple[PromptPart, ...]], ...]
    """The messages of the prompt in groups of consecutive messages that are new (true) or old (false)."""
    gone: tuple[PromptPart, ...]
    """The messages that only the previous prompt contains, such as results that were shortened since."""

    @property
    def words(self) -> str:
        """A summary such as "2 new, 1 gone, 12 as in the round before"."""
        new, same = (sum(len(part) for is_new, part in self.parts if is_new is kind) for kind in (True, False))
        counts = ((new, "new"), (len(self.gone), "gone"))
        return ", ".join([*(f"{count} {word}" for count, word in counts if count), f"{same} as in the round before"])


def prompt_changes(before: Sequence[PromptPart], now: Sequence[PromptPart]) -> PromptChanges:
    """Compares the prompts of two rounds."""
    left = Counter(before)
    is_new = []
    for said in now:
        is_new.append(not left[said])
        left[said] -= not is_new[-1]
    grouped = groupby(zip(is_new, now, strict=True), key=lambda each: each[0])
    parts = tuple((kind, tuple(said for _, said in part)) for kind, part in grouped)
    return PromptChanges(parts, tuple(left.elements()))


def changes_since(calls: Iterable[Call]) -> Mapping[str, PromptChanges]:
    """Returns the changes of each prompt since the last prompt with the same beginning, by the id of the model call.

    The beginning of a prompt ends with the first user message. There is no entry for the first call of a loop, for a
    call with another beginning, such as a judge's, and for a call that began before the previous one had ended.
    """
    found: dict[str, PromptChanges] = {}
    last: dict[tuple[PromptPart, ...], Call] = {}
    for call in sorted((call for call in calls if call.kind == "llm"), key=lambda call: call.began):
        prompt = prompt_of(call)
        first = next((place for place, said in enumerate(prompt) if said.role == "user"), 0)
        earlier = last.get(prompt[: first + 1])
        if earlier is not None and earlier.ended is not None and earlier.ended <= call.began:
            found[call.id] = prompt_changes(prompt_of(earlier), prompt)
        last[prompt[: first + 1]] = call
    return found
