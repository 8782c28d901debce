"""What the calls of a run say: prompts, answers, arguments, results, and what changed from prompt to prompt."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

from devhost.node.outputs.run import plugin_error
from devhost.node.texts import ThoughtSpans
from devhost.protocol.wire import JsonObject
from devhost.trace.runs import Call, TracedRun

# What a call on the timeline shows when it is opened, taken from the messages that crossed.


@dataclass(frozen=True)
class Said:
    role: str
    text: str


@dataclass(frozen=True)
class Result:
    kind: str
    value: object
    """A text, or what is shown as JSON."""


@dataclass(frozen=True)
class OfferedTool:
    """A tool as the model was told of it."""

    name: str
    description: str
    schema: str
    """The JSON Schema of its parameters, as text."""


def said_by(call: Call) -> tuple[str, str]:
    """What a model thought, and what it said."""
    spans = ThoughtSpans()
    contents = [_mapping(delta.get("message")).get("content") for delta in call.deltas]
    said = [*(span for content in contents for span in spans.feed(_words(content))), *spans.finish()]
    thought, text = (
        "".join(words for is_thought, words in said if is_thought is kind).strip() for kind in (True, False)
    )
    return thought, text


def given_to(call: Call) -> JsonObject:
    """The arguments of a tool, or what is asked of the host otherwise."""
    return call.arguments or ({} if call.kind == "tool" else call.request)


def results_of(call: Call) -> list[Result]:
    return [_result(piece.data) for piece in call.pieces]


def traceback_of(call: Call) -> str:
    raised = plugin_error(call.error)
    return "" if raised is None else raised.traceback


def prompt_of(call: Call) -> tuple[Said, ...]:
    return tuple(map(_said, call.prompt))


def offered_tools(call: Call) -> tuple[OfferedTool, ...]:
    return tuple(
        OfferedTool(
            str(tool.get("name")),
            str(tool.get("description") or ""),
            json.dumps(tool.get("parameters"), ensure_ascii=False, indent=2),
        )
        for tool in _items(call.request.get("tools"))
    )


def _said(message: JsonObject) -> Said:
    lines = [_words(message.get("content"))]
    for tool_call in _items(message.get("tool_calls")):
        function = _mapping(tool_call.get("function"))
        lines.append(f"→ {function.get('name')} {function.get('arguments')}")
    return Said(str(message.get("role")), "\n".join(filter(None, lines)))


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(
        str(part.get("data")) if part.get("type") == "text" else f"[{part.get('type')}: {_about(part)}]"
        for part in _items(content)
    )


def _about(part: JsonObject) -> str:
    return str(part.get("filename") or part.get("mime_type") or part.get("format"))


def _result(data: JsonObject) -> Result:
    if "type" not in data:  # the answer to what a tool asks for: a summary, storage
        return Result("answer", data)
    kind = str(data["type"]).replace("_", " ")
    match data.get("message"):
        case {"text": text} | {"json_object": text}:
            return Result(kind, text)
        case body:
            return Result(kind, body)


def _mapping(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _items(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


# The sources of an answer, each with its passage.


@dataclass(frozen=True)
class Source:
    number: str
    title: str
    document: str
    """Its id or dataset, where that is not the title."""
    is_cited: bool | None
    """None if that is not known."""
    passage: str
    """Empty if no resource fits."""


def sources_of(variable: object, run: TracedRun) -> list[Source]:
    sent = [resource for arrival in run.streamed for resource in _resources(arrival.message)]
    if not isinstance(variable, list):
        return retrieved(sent)
    of_tools = [resource for call in run.calls for piece in call.pieces for resource in _resources(piece.data)]
    listed = [source for source in variable if isinstance(source, dict)]
    return [_source(source, place, [*sent, *of_tools]) for place, source in enumerate(listed, start=1)]


def retrieved(resources: Sequence[JsonObject]) -> list[Source]:
    return [
        Source(
            number=str(resource.get("position") or place),
            title=_first(resource, "title", "document_name", "document_id"),
            document=str(resource.get("dataset_name") or ""),
            is_cited=None,
            passage=str(resource.get("content") or ""),
        )
        for place, resource in enumerate(resources, start=1)
    ]


def _first(resource: JsonObject, *names: str) -> str:
    return next((str(resource[name]) for name in names if resource.get(name)), "source")


def _source(source: JsonObject, place: int, resources: Sequence[JsonObject]) -> Source:
    number, title, document = source.get("number", place), source.get("title"), source.get("document_id")
    return Source(
        number=str(number),
        title=str(title or document or "source"),
        document=str(document) if title and document else "",
        is_cited=bool(source.get("cited")),
        passage=_passage(source, number, resources),
    )


def _passage(source: JsonObject, number: object, resources: Sequence[JsonObject]) -> str:
    """Of the resource with the number of the source, else of the one with its score; both of the same document."""
    same = [each for each in resources if each.get("document_id") == source.get("document_id")]
    for name, value in (("position", number), ("score", source.get("score"))):
        for resource in same:
            if value is not None and resource.get(name) == value:
                return str(resource.get("content") or "")
    return ""


def _resources(message: JsonObject) -> Iterator[JsonObject]:
    match message:
        case {"type": "retriever_resources", "message": {"retriever_resources": list(resources)}}:
            yield from (resource for resource in resources if isinstance(resource, dict))


# Which model call came before which, in the same loop of rounds.


def calls_before(calls: Iterable[Call]) -> Mapping[str, Call]:
    """By the id of a model call, the last one whose prompt begins with the same messages up to the user's first.

    Without an entry: the first call of a loop, one whose prompt begins differently, such as a judgement, and one that
    began while the one before went on.
    """
    before: dict[str, Call] = {}
    last: dict[tuple[Said, ...], Call] = {}
    for call in sorted((call for call in calls if call.kind == "llm"), key=lambda call: call.began):
        prompt = prompt_of(call)
        first = next((place for place, said in enumerate(prompt) if said.role == "user"), 0)
        earlier = last.get(prompt[: first + 1])
        if earlier is not None and earlier.ended is not None and earlier.ended <= call.began:
            before[call.id] = earlier
        last[prompt[: first + 1]] = call
    return before


# What changed in a prompt since the round before.

type Change = Literal["same", "new", "shortened", "removed"]


@dataclass(frozen=True)
class Part:
    """Neighbouring messages of which the same is to be said; one message if it was shortened."""

    change: Change
    messages: tuple[Said, ...]
    """As they are now; those that were removed as they were."""
    before: Said | None = None
    """Of a shortened message, what it was."""


@dataclass(frozen=True)
class PromptChanges:
    parts: tuple[Part, ...]

    def count(self, change: Change) -> int:
        """Messages."""
        return sum(len(part.messages) for part in self.parts if part.change == change)

    @property
    def words(self) -> str:
        """Such as "2 new, 1 removed, 12 as in the round before"."""
        names: dict[Change, str] = {"new": "new", "shortened": "shortened", "removed": "removed"}
        counted = [f"{self.count(change)} {word}" for change, word in names.items() if self.count(change)]
        return ", ".join([*counted, f"{self.count('same')} as in the round before"])


def prompt_changes(before: Sequence[Said], now: Sequence[Said]) -> PromptChanges:
    return PromptChanges(tuple(_parts(before, now)))


def _parts(before: Sequence[Said], now: Sequence[Said]) -> Iterator[Part]:
    for kind, old_from, old_to, new_from, new_to in SequenceMatcher(None, before, now, autojunk=False).get_opcodes():
        if kind == "equal":
            yield Part("same", tuple(now[new_from:new_to]))
        else:
            yield from _replaced(list(before[old_from:old_to]), now[new_from:new_to])


def _replaced(old: list[Said], new: Sequence[Said]) -> Iterator[Part]:
    """A message is shortened if the next one of its role that disappeared was longer."""
    added: list[Said] = []
    for said in new:
        place = next((place for place, gone in enumerate(old) if gone.role == said.role), None)
        if place is None or len(old[place].text) <= len(said.text):
            added.append(said)
            continue
        yield from _part("new", added)
        yield from _part("removed", old[:place])
        yield Part("shortened", (said,), old[place])
        added, old = [], old[place + 1 :]
    yield from _part("removed", old)
    yield from _part("new", added)


def _part(change: Change, messages: Sequence[Said]) -> Iterator[Part]:
    if messages:
        yield Part(change, tuple(messages))
