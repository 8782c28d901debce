"""The messages of a run in addition to its text and its log: files, sources, variables, usage."""

import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, assert_never

from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.invoke_message import InvokeMessage
from pydantic_core import to_json

from internal.clock import in_turns
from internal.events import MAX_NAME_LENGTH, ExternalImage, HostedFile, Thought, UserFile
from internal.host.files import FileBytes
from internal.memory.state import encode
from internal.node.params import ExtraOutput
from internal.render.public import MAX_EXTRA_BYTES, PublicCall, PublicRun, can_be_written
from internal.sources import Source
from internal.text.texts import cut_evenly

MAX_CHUNK_BYTES = 8192
"""Maximum bytes of one blob chunk that the daemon accepts: docs/host-facts.md, "Size limits"."""
MAX_OBJECT_BYTES = 1024 * 1024
"""Maximum bytes of all variables, and of the sources in one message. A line may have 5 MiB (docs/host-facts.md, "Size
limits"), and Dify stores 1,024,000 bytes of a node's outputs ("Log entries")."""
MAX_SOURCE_LENGTH = 10_000
"""Maximum characters of one field of a source."""

MAX_THOUGHTS = 100_000
"""Maximum characters of the variable ``thoughts`` (docs/outputs.md)."""
_MAX_SUBTASK_RESULTS = 20_000
"""Maximum characters of the results in one entry of ``subtasks``, and of its arguments (docs/outputs.md)."""
_MAX_ESCAPE = 6
"""Number of bytes of an escaped character in JSON."""

type _Json = dict[str, Any]
_Type = InvokeMessage.MessageType


def size_on_the_wire(value: object) -> int:
    """Return the number of bytes of a JSON value, including a comma."""
    return len(to_json(value)) + 1


def file_messages(file: UserFile) -> Iterator[AgentInvokeMessage]:
    """Yield the messages that forward a file to the user.

    The SDK's enum has no ``binary_link``. Dify finds a tool file by its metadata, whatever the link is called.
    """
    match file:
        case HostedFile(address, meta):
            body = InvokeMessage.TextMessage(text=address)
            yield AgentInvokeMessage(type=_Type.IMAGE_LINK, message=body, meta=dict(meta))
        case ExternalImage(address):
            yield AgentInvokeMessage(type=_Type.IMAGE, message=InvokeMessage.TextMessage(text=address))
        case FileBytes(data, mime_type, filename):
            named = {"mime_type": mime_type, "filename": filename}.items()
            yield from _chunks(data, {name: value for name, value in named if value})
        case _:
            assert_never(file)


def _chunks(data: bytes, meta: _Json) -> Iterator[AgentInvokeMessage]:
    """Yield a blob in chunks. A blob in a single line could kill the plugin, and the SDK splits only blobs of tools.

    The last chunk is empty, because the daemon ignores the bytes of the chunk that ends a blob.
    """
    blob_id = uuid.uuid4().hex
    starts = [*range(0, len(data), MAX_CHUNK_BYTES), len(data)]
    for sequence, start in enumerate(starts):
        piece = data[start : start + MAX_CHUNK_BYTES]
        chunk = InvokeMessage.BlobChunkMessage(
            id=blob_id, sequence=sequence, total_length=len(data), blob=piece, end=start == len(data)
        )
        yield AgentInvokeMessage(type=_Type.BLOB_CHUNK, message=chunk, meta=meta)


@dataclass(frozen=True)
class Variables:
    """The variables of a run, limited to the size of one line."""

    values: _Json
    left_out: Mapping[str, int]
    """Number of missing or shortened entries, by variable. A value that is not a list counts as 1.
    ``tool_results.text`` counts entries without their text and JSON, ``tool_results.json`` counts JSON values that are
    too large or too deeply nested, and ``json`` counts such values from answer tools."""
    sent_json: Sequence[Any] = ()
    """The JSON of answer tools for the output ``json``."""

    @classmethod
    def of(cls, run: PublicRun) -> "Variables":
        left_out = Counter[str]()
        values = {
            "stop_reason": run.stop_reason,
            "sources": _sources(run),
            "tool_runs": [_tool_run(call) for call in run.calls],
            **run.variables,
            **_subtasks(run),
            **_extra(run, left_out),
        }
        sent = _answer_json(run, left_out)
        return cls(_fitting(values, left_out), +left_out, sent)


def _fitting(values: _Json, left_out: Counter[str]) -> _Json:
    """Return the variables that fit into one line, the smallest first. Long lists are cut, other values omitted."""
    kept = dict(values)
    room = MAX_OBJECT_BYTES
    for size, name in sorted((size_on_the_wire({name: value}), name) for name, value in values.items()):
        if size > room:
            if isinstance(values[name], list):
                items = values[name]
            else:
                items = [values[name]]
            count = sum(end <= room for end in accumulate(map(size_on_the_wire, items)))
            if isinstance(values[name], list):
                kept[name] = items[:count]
            else:
                kept[name] = None
            left_out[name] += len(items) - count
        room -= min(size, room)
    return kept


def _extra(run: PublicRun, left_out: Counter[str]) -> _Json:
    """Return the state and the variables that the node requests. If room is short, tool_results loses text first."""
    values = dict[str, Any]()
    room = MAX_EXTRA_BYTES - len("[][]")
    if run.state is not None:
        values["state"] = encode(run.state)
        room -= size_on_the_wire(values["state"])
    if ExtraOutput.THOUGHTS in run.extra_outputs:
        values["thoughts"], left_out["thoughts"] = _thoughts(run.thoughts, room)
        room -= sum(map(size_on_the_wire, values["thoughts"]))
    if ExtraOutput.TOOL_RESULTS in run.extra_outputs:
        values["tool_results"] = _tool_results(run, room, left_out)
    return values


def _thoughts(thoughts: Sequence[Thought], room: int) -> tuple[list[_Json], int]:
    """Return the newest thoughts that fit, and the number of the others. If none fits, the newest is cut."""
    kept = list[_Json]()
    characters = MAX_THOUGHTS
    for thought in reversed(thoughts):
        entry: _Json = {"round": thought.round, "text": thought.text, **_named(thought.subtask)}
        characters -= len(entry["text"])
        room -= size_on_the_wire(entry)
        if characters < 0 or room < 0:
            missing = len(thoughts) - len(kept)
            if not kept:
                most = (room + size_on_the_wire(entry["text"])) // _MAX_ESCAPE - 1
                kept.append({**entry, "text": entry["text"][-max(1, min(most, MAX_THOUGHTS)) :]})
            return kept[::-1], missing
        kept.append(entry)
    return kept[::-1], 0


def _named(subtask: str) -> _Json:
    """Return the name of the subtask, if there is one."""
    if not subtask:
        return {}
    return {"subtask": subtask[:MAX_NAME_LENGTH]}


def _tool_results(run: PublicRun, room: int, left_out: Counter[str]) -> list[_Json]:
    """Return an entry for each call. If they do not fit, the oldest lose their results first, and are then removed.

    If a single result would not fit even alone, only that entry loses its result.
    """
    entries = [_entry(call) for call in in_turns(run.calls)]
    sizes = [size_on_the_wire(entry) for entry in entries]
    gone = 0
    room -= sum(sizes)
    while room < 0 and gone < len(sizes):
        room += sizes[gone]
        gone += 1
    left_out["tool_results"] = gone
    left = room
    if gone:
        left = 0
    for entry, call in in_turns(zip(reversed(entries[gone:]), reversed(run.calls[gone:]), strict=True)):
        said = {}
        if left and call.result:
            said = {"text": call.result.text, "json": _one_or_all(call.result.json_values)}
            left_out["tool_results.json"] += call.result.unusable_json
        added = size_on_the_wire(entry | said) - size_on_the_wire(entry)
        if said and added <= left:
            entry.update(said)
            left -= added
        else:
            left_out["tool_results.text"] += 1
            if added <= room:
                left = 0
    return entries[gone:]


def _entry(call: PublicCall) -> _Json:
    return {
        "round": call.round,
        **_named(call.subtask),
        "tool": call.tool[:MAX_NAME_LENGTH],
        "arguments": call.result and call.result.arguments,
        "status": call.status,
        "text": "",
        "json": None,
    }


def _one_or_all(values: Sequence[object]) -> object:
    """Return the JSON of a tool: the value, a list of several values, or None."""
    if len(values) > 1:
        return list(values)
    return next(iter(values), None)


def _subtasks(run: PublicRun) -> _Json:
    """Return the subtasks of a plan with the results of their tools, if the node requests results."""
    subtasks = run.variables.get("subtasks", ())
    if not subtasks or ExtraOutput.TOOL_RESULTS not in run.extra_outputs:
        return {}
    return {"subtasks": [{**subtask, "tool_results": _of_subtask(subtask["name"], run)} for subtask in subtasks]}


def _of_subtask(name: str, run: PublicRun) -> list[_Json]:
    """Return the calls of a subtask as in ``tool_results``, but with texts cut evenly and without JSON.

    The entries do not name the subtask, because they are listed under it. Long arguments become null.
    """
    made = [(call, call.result) for call in run.calls if call.subtask == name and call.result]
    texts = cut_evenly([result.text for _, result in made], _MAX_SUBTASK_RESULTS, len)
    entries = list[_Json]()
    room = _MAX_SUBTASK_RESULTS
    for (call, result), text in in_turns(zip(made, texts, strict=True)):
        arguments = result.arguments
        size = size_on_the_wire(arguments)
        if size > room:
            arguments = None
        else:
            room -= size
        entries.append(
            {
                "round": call.round,
                "tool": call.tool[:MAX_NAME_LENGTH],
                "arguments": arguments,
                "status": call.status,
                "text": text,
            }
        )
    return entries


def _answer_json(run: PublicRun, left_out: Counter[str]) -> list[Any]:
    """Return the JSON values of answer tools that fit."""
    values = list[Any]()
    room = MAX_EXTRA_BYTES
    for value in run.tool_answers:
        size = MAX_EXTRA_BYTES + 1
        if can_be_written(value):
            size = size_on_the_wire(value)
        if fits := size <= room:
            values.append(value)
            room -= size
        left_out["json"] += not fits
    return values


def _sources(run: PublicRun) -> list[_Json]:
    """Return all sources of the run, and the sources of earlier runs that the answer cites, by number."""
    earlier = [each for each in run.earlier_sources if each[0] in run.cited]
    return [
        {
            "number": number,
            "title": source.label,
            "document_id": source.document_id and source.document_id[:MAX_NAME_LENGTH],
            "score": source.resource.get("score"),
            "cited": number in run.cited,
        }
        for number, source in in_turns((*earlier, *run.sources))
    ]


def _tool_run(call: PublicCall) -> _Json:
    return {
        "round": call.round,
        **_named(call.subtask),
        "tool": call.tool[:MAX_NAME_LENGTH],
        "status": call.status,
        "elapsed_seconds": round(call.elapsed_seconds, 3),
    }


def decision_summary(run: PublicRun, variables: Variables) -> _Json:
    """Return a summary of the run for people and for log search, which never contains the model's thoughts."""
    sources = variables.values["sources"]
    return {
        "stop_reason": run.stop_reason,
        "rounds": run.rounds,
        "tool_calls": variables.values["tool_runs"],
        "sources_used": [{"number": each["number"], "title": each["title"]} for each in sources if each["cited"]],
        **run.decisions,
        **({"left_out": variables.left_out} if variables.left_out else {}),
    }


def closing_messages(run: PublicRun, variables: Variables, decisions: _Json) -> Iterator[AgentInvokeMessage]:
    """Yield the sources, the variables, the variables again as one JSON, and finally the usage.

    Dify's editor always offers ``json``, but single variables only if the node has the strategy's schema
    (docs/host-facts.md, "Outputs in the editor"). A JSON message after the usage would reset the usage.
    """
    yield from _source_messages(run.sources)
    for name, value in variables.values.items():
        body = InvokeMessage.VariableMessage(variable_name=name, variable_value=value)
        yield AgentInvokeMessage(type=_Type.VARIABLE, message=body)
    last = {"execution_metadata": run.execution_metadata, "decision_summary": decisions}
    for value in (*variables.sent_json, {"variables": variables.values}, last):
        yield AgentInvokeMessage(type=_Type.JSON, message=InvokeMessage.JsonMessage(json_object=value))


def _source_messages(sources: Sequence[tuple[int, Source]]) -> Iterator[AgentInvokeMessage]:
    """Yield the sources as Dify's retriever resources, in messages far below the maximum line length."""
    described = [_described(source) | {"position": number} for number, source in in_turns(sources)]
    for resources in _in_lines(described):
        yield AgentInvokeMessage(
            type=_Type.RETRIEVER_RESOURCES, message=_Resources(retriever_resources=resources, context="")
        )


def _in_lines(items: list[_Json]) -> Iterator[list[_Json]]:
    """Yield the items in lists that fit into one line each; an item that is too large has a line of its own."""
    if size_on_the_wire(items) <= MAX_OBJECT_BYTES:  # measuring them all in one step is faster
        if items:
            yield items
        return
    waiting = list[_Json]()
    size = 0
    for item in in_turns(items):
        added = size_on_the_wire(item)
        if waiting and size + added > MAX_OBJECT_BYTES:
            yield waiting
            waiting = []
            size = 0
        waiting.append(item)
        size += added
    yield waiting


def _described(source: Source) -> _Json:
    """Return a source in the fields of Dify's retriever resource, without its position."""
    fields: _Json = {"document_name": source.title, **source.resource, "content": source.content}
    for name, value in fields.items():
        if isinstance(value, str) and len(value) > MAX_SOURCE_LENGTH:
            fields[name] = value[:MAX_SOURCE_LENGTH]
    return fields


class _Resources(InvokeMessage.RetrieverResourceMessage):
    """A message with resources as plain objects. The SDK's own model would also write every missing field."""

    retriever_resources: list[_Json]  # type: ignore[assignment] # the reason for this class
