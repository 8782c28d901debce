"""The optional variables of a run: what its tools returned, and what the model thought."""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.invoke_message import InvokeMessage
from pydantic_core import to_json

from internal.call import EndedCall, ValidCall, WaitingCall
from internal.clock import in_turns
from internal.events import MAX_NAME_LENGTH, ExternalImage, FileBytes, HostedFile, RunSummary, Thought, UserFile
from internal.host.session import MAX_EXACT_INTEGER
from internal.node.params import ExtraOutput
from internal.render.outgoing import Outgoing, size_on_the_wire
from internal.sources import Source, cited_numbers

# The optional variables of a run: what its tools returned, and what the model thought.
#
# Together with ``state`` they have at most MAX_EXTRA_BYTES: tool_results yields first, then thoughts, the state
# never. What is oldest goes first.

MAX_EXTRA_BYTES = 512 * 1024
"""On the wire; Dify stores 1,024,000 bytes of a node's outputs (docs/host-facts.md, "Log entries")."""
MAX_THOUGHTS = 100_000
"""Characters of all thoughts together."""
_BRACKETS = 2
_MAX_ESCAPE = 6
"""Bytes of a character that JSON escapes."""
_LEVELS_AROUND = 8
"""More than a message has around a value of a result; pydantic writes a limited number of levels."""

type _Json = dict[str, Any]


@dataclass
class ExtraVariables:
    """Cleaned variables, and what they lack."""

    values: dict[str, Any] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    """Entries that are missing, by variable; shortened thoughts count. By ``tool_results.text`` entries without their
    text and JSON, by ``tool_results.json`` JSON values that are nested too deeply."""


def extra_variables(summary: RunSummary, out: Outgoing) -> ExtraVariables:
    """The state, and the variables that the node asks for."""
    made, asked = ExtraVariables(), summary.extra_outputs
    if summary.state is not None:
        made.values["state"] = out.state(summary.state)
    room = MAX_EXTRA_BYTES - size_on_the_wire(made.values.get("state"))
    if ExtraOutput.THOUGHTS in asked:
        thoughts = made.values["thoughts"] = _thoughts(summary.thoughts, out, room, made.left_out)
        room -= size_on_the_wire(thoughts)
    if ExtraOutput.TOOL_RESULTS in asked:
        runs = [(answered.round, ended) for answered in summary.tool_rounds for ended in answered.calls]
        made.values["tool_results"] = _tool_results(runs, out, room - _BRACKETS, made.left_out)
    return made


def _thoughts(thoughts: Sequence[Thought], out: Outgoing, room: int, left_out: dict[str, int]) -> list[_Json]:
    """The newest thoughts that fit; of the newest, its end if it does not fit as a whole."""
    kept, length = list[_Json](), 0
    room -= _BRACKETS
    for thought in in_turns(reversed(thoughts)):
        entry: _Json = {"round": thought.round, "text": out.text(thought.text)}
        if thought.subtask:
            entry["subtask"] = out.text(thought.subtask)[:MAX_NAME_LENGTH]
        length += len(entry["text"])
        size = size_on_the_wire(entry)
        if length > MAX_THOUGHTS or size > room:
            left_out["thoughts"] = len(thoughts) - len(kept)
            kept = kept or [_shortened(entry, room)]
            break
        kept.append(entry)
        room -= size
    return kept[::-1]


def _shortened(entry: _Json, room: int) -> _Json:
    """A thought of which only the end fits."""
    end = {**entry, "text": entry["text"][-MAX_THOUGHTS:]}
    if size_on_the_wire(end) <= room:
        return end
    beside = size_on_the_wire({**entry, "text": ""})
    return {**entry, "text": entry["text"][-((room - beside) // _MAX_ESCAPE) :]}


def _tool_results(
    runs: Sequence[tuple[int, EndedCall]], out: Outgoing, room: int, left_out: dict[str, int]
) -> list[_Json]:
    """An entry for each call; where they do not fit, the oldest lose what the tool said, and then go."""
    entries = [_without_result(number, ended, out) for number, ended in in_turns(runs)]
    sizes = [size_on_the_wire(entry) for entry in in_turns(entries)]
    gone, left = 0, room - sum(sizes)
    while left < 0 and gone < len(sizes):
        left += sizes[gone]
        gone += 1
    left_out["tool_results"] = gone
    left = 0 if gone else left
    _fill_in([(entry, ended) for entry, (_, ended) in zip(entries, runs, strict=True)][gone:], out, left, left_out)
    return entries[gone:]


def _fill_in(entries: Sequence[tuple[_Json, EndedCall]], out: Outgoing, room: int, left_out: dict[str, int]) -> None:
    """Put what the tools said into the entries, from the newest back to the first that does not fit.

    One that would not fit even alone does not cost the older ones theirs.
    """
    left, without = room, 0
    for entry, ended in in_turns(reversed(entries)):
        before = size_on_the_wire(entry)
        said = {"text": out.text(ended.tool_response), "json": _sent_json(ended, out, left_out)} if left else {}
        added = size_on_the_wire({**entry, **said}) - before
        if said and added <= left:
            entry.update(said)
            left -= added
        else:
            without += 1
            left = left if added > room else 0
    left_out["tool_results.text"] = without


def _without_result(number: int, ended: EndedCall, out: Outgoing) -> _Json:
    judged, parsed = ended.judged, ended.call.parsed
    checked = judged.valid if isinstance(judged, WaitingCall) else judged
    written: Mapping[str, Any] | None = parsed.args if parsed.ok else None
    arguments = checked.arguments if isinstance(checked, ValidCall) else written
    return {
        "round": number,
        "tool": out.text(ended.call.name)[:MAX_NAME_LENGTH],
        "arguments": out.of_others(_read(json.dumps(arguments))),
        "status": ended.status.value,
        "text": "",
        "json": None,
    }


def _sent_json(ended: EndedCall, out: Outgoing, left_out: dict[str, int]) -> object:
    """What the tool sent as JSON: the value, a list of several, None for none."""
    values = [value for value in in_turns(map(_read, ended.sent_json)) if _can_be_written(value)]
    if deeper := len(ended.sent_json) - len(values):
        left_out["tool_results.json"] = left_out.get("tool_results.json", 0) + deeper
    return out.of_others(values if len(values) > 1 else values[0] if values else None)


def _read(text: str) -> Any:  # noqa: ANN401 - JSON
    """A JSON value as the host keeps it: integers that it would round are texts."""
    return json.loads(text, parse_int=_integer)


def _integer(digits: str) -> int | str:
    is_exact = len(digits) <= len(str(-MAX_EXACT_INTEGER)) and abs(int(digits)) <= MAX_EXACT_INTEGER
    return int(digits) if is_exact else digits


def _can_be_written(value: object) -> bool:
    for _ in range(_LEVELS_AROUND):
        value = [value]
    try:
        to_json(value)
    except ValueError:
        return False
    return True


# The variables of a run, each so small that its line can be written.
#
# The optional variables are made in extra_variables.

MAX_VALUE_BYTES = 1024 * 1024
"""Bytes of one variable, of one list in the last JSON, of the resources of a message: lines far below the longest."""


@dataclass(frozen=True)
class RunVariables:
    """The variables of a run, bounded in size."""

    values: Mapping[str, Any]
    cited: frozenset[int]
    """Numbers of the sources that the answer cites."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Entries by the variable that lacks them; 1 for a variable that is not a list."""

    @classmethod
    def of(cls, summary: RunSummary, out: Outgoing) -> "RunVariables":
        cited, structured = _cited(summary), summary.structured_output
        whole = {
            "stop_reason": summary.stop_reason.value,
            "sources": _sources(summary, cited),
            "tool_runs": _tool_runs(summary),
            **({"structured_output": structured.variable} if structured else {}),
            **summary.variables,
        }
        values = {name: _bounded(value) for name, value in whole.items()}
        counts = {name: _count(value) - _count(values[name]) for name, value in whole.items()}
        extra = extra_variables(summary, out)
        left_out = {name: count for name, count in {**counts, **extra.left_out}.items() if count}
        return cls({**values, **extra.values}, cited, left_out)


def leading[T](items: list[T]) -> list[T]:
    """The beginning of a list that fits into one line, or the whole list."""
    if size_on_the_wire(items) <= MAX_VALUE_BYTES:
        return items
    kept, size = list[T](), 0
    for item in in_turns(items):
        size += size_on_the_wire(item)
        if size > MAX_VALUE_BYTES:
            break
        kept.append(item)
    return kept


def _bounded(value: object) -> object:
    """The beginning of a list; of any other value all or nothing."""
    if isinstance(value, list):
        return leading(value)
    return value if size_on_the_wire(value) <= MAX_VALUE_BYTES else None


def _count(value: object) -> int:
    return len(value) if isinstance(value, list) else int(value is not None)


def _cited(summary: RunSummary) -> frozenset[int]:
    """The sources that the answer cites; in JSON the brackets around a number are a list."""
    structured = summary.structured_output
    texts = structured.texts() if structured and structured.answer is not None else [summary.answer]
    return frozenset(number for text in in_turns(texts) for number in cited_numbers(text))


def _sources(summary: RunSummary, cited: frozenset[int]) -> list[dict[str, Any]]:
    """All sources of the run, and those of earlier runs that it cites, by number; if not all fit, the cited first."""
    listed = list(in_turns(_described(summary, cited)))
    fits = size_on_the_wire(listed) <= MAX_VALUE_BYTES
    return listed if fits else sorted(listed, key=lambda entry: not entry["cited"])


def _described(summary: RunSummary, cited: frozenset[int]) -> Iterator[dict[str, Any]]:
    cited_earlier = (each for each in summary.earlier_sources if each[0] in cited)
    for number, source in (*cited_earlier, *summary.sources):
        yield {
            "number": number,
            "title": source.label,
            "document_id": source.document_id and source.document_id[:MAX_NAME_LENGTH],
            "score": source.score,
            "cited": number in cited,
        }


def _tool_runs(summary: RunSummary) -> list[dict[str, Any]]:
    return [
        {
            "round": answered.round,
            "tool": ended.call.name[:MAX_NAME_LENGTH],
            "status": ended.status.value,
            "elapsed_seconds": round(ended.elapsed_seconds, 3),
        }
        for answered in summary.tool_rounds
        for ended in answered.calls
    ]


# The node's outputs besides its text: files, sources, variables, usage.

MAX_CHUNK_BYTES = 8192
"""Bytes of one blob chunk that the daemon takes: docs/host-facts.md, "Size limits"."""

MAX_SOURCE_LENGTH = 10_000
"""Characters of one field of a source."""

MAX_OBJECT_BYTES = 4 * 1024 * 1024
"""Bytes of all variables in one JSON: a line may have 5 MiB (docs/host-facts.md, "Size limits")."""

_EXACT = frozenset({"stop_reason", "structured_output", "tool_results", "thoughts"})
"""Variables that go out as they are: one of our own words, an answer in which neither a secret nor NUL is, and those
that ``extra_variables`` has cleaned before it measured them."""

_Type = InvokeMessage.MessageType
_Resources = InvokeMessage.RetrieverResourceMessage
_Resource = InvokeMessage.RetrieverResourceMessage.RetrieverResource


def file_messages(file: UserFile, out: Outgoing) -> Iterator[AgentInvokeMessage]:
    """Forward a file to the user.

    The SDK's enum lacks ``binary_link``; Dify finds a tool file by its meta, whatever the link is called.
    """
    match file:
        case HostedFile(address, meta):
            body = InvokeMessage.TextMessage(text=address)
            yield AgentInvokeMessage(type=_Type.IMAGE_LINK, message=body, meta=out.json(meta))
        case ExternalImage(address):
            body = InvokeMessage.TextMessage(text=out.text(address))
            yield AgentInvokeMessage(type=_Type.IMAGE, message=body)
        case FileBytes():
            yield from _chunks(replace(file, filename=out.text(file.filename), mime_type=out.text(file.mime_type)))
        case _:
            assert_never(file)


def _chunks(file: FileBytes) -> Iterator[AgentInvokeMessage]:
    """A blob in pieces: one in a single line could kill the plugin, and the SDK splits only tools' own messages.

    The last chunk is empty, since the daemon ignores the bytes of the chunk that ends a blob.
    """
    blob_id = uuid.uuid4().hex
    pieces = [file.data[at : at + MAX_CHUNK_BYTES] for at in range(0, len(file.data), MAX_CHUNK_BYTES)]
    meta = {"mime_type": file.mime_type[:MAX_NAME_LENGTH]}
    if file.filename:
        meta["filename"] = file.filename[:MAX_NAME_LENGTH]
    for sequence, piece in enumerate([*pieces, b""]):
        chunk = InvokeMessage.BlobChunkMessage(
            id=blob_id, sequence=sequence, total_length=len(file.data), blob=piece, end=sequence == len(pieces)
        )
        yield AgentInvokeMessage(type=_Type.BLOB_CHUNK, message=chunk, meta=meta)


def decision_summary(summary: RunSummary, variables: RunVariables) -> dict[str, Any]:
    """A summary of the run, for people and for log search; never the model's thoughts."""
    cited = variables.cited
    used = [{"number": number, "title": source.label} for number, source in summary.sources if number in cited]
    return {
        "stop_reason": summary.stop_reason.value,
        "rounds": summary.rounds,
        "tool_calls": variables.values["tool_runs"],
        "sources_used": leading(used),
        **summary.decisions,
        **({"left_out": variables.left_out} if variables.left_out else {}),
    }


def closing_messages(
    summary: RunSummary, variables: RunVariables, decisions: Mapping[str, Any], out: Outgoing
) -> Iterator[AgentInvokeMessage]:
    """Sources, variables, the variables once more as one JSON, and the usage at the very end.

    The editor offers ``json`` always, a variable only with the strategy's schema in the node (docs/host-facts.md,
    "Outputs in the editor"). A JSON after the usage would reset it.
    """
    yield from _resources_messages(_resource(number, source, out) for number, source in summary.sources)
    kept = {name: value if name in _EXACT else out.json(value) for name, value in variables.values.items()}
    for name, value in kept.items():
        body = InvokeMessage.VariableMessage(variable_name=name, variable_value=value)
        yield AgentInvokeMessage(type=_Type.VARIABLE, message=body)
    yield _json_message({"variables": _in_one_line(kept)})
    last = {
        "execution_metadata": summary.usage.execution_metadata(),
        "decision_summary": {**out.json(decisions), "stop_reason": summary.stop_reason.value},
    }
    yield _json_message(last)


def _json_message(value: dict[str, Any]) -> AgentInvokeMessage:
    return AgentInvokeMessage(type=_Type.JSON, message=InvokeMessage.JsonMessage(json_object=value))


def _in_one_line(values: Mapping[str, Any]) -> dict[str, Any]:
    """All variables that one line can carry together: where they do not fit, the largest are missing."""
    kept, size = set[str](), 0
    for added, name in sorted((size_on_the_wire({name: value}), name) for name, value in values.items()):
        size += added
        if size > MAX_OBJECT_BYTES:
            break
        kept.add(name)
    return {name: value for name, value in values.items() if name in kept}


def _resources_messages(resources: Iterable[_Resource]) -> Iterator[AgentInvokeMessage]:
    waiting: list[_Resource] = []
    size = 0
    for resource in in_turns(resources):
        added = size_on_the_wire(resource)
        if waiting and size + added > MAX_VALUE_BYTES:
            yield _resources_message(waiting)
            waiting, size = [], 0
        waiting.append(resource)
        size += added
    if waiting:
        yield _resources_message(waiting)


def _resources_message(resources: list[_Resource]) -> AgentInvokeMessage:
    body = _Resources(retriever_resources=resources, context="")
    return AgentInvokeMessage(type=_Type.RETRIEVER_RESOURCES, message=body)


def _resource(number: int, source: Source, out: Outgoing) -> _Resource:
    fields = out.json({"document_name": source.title, **source.resource, "content": source.content})
    short = {name: value[:MAX_SOURCE_LENGTH] if isinstance(value, str) else value for name, value in fields.items()}
    return _Resource.model_validate({**short, "position": number})
