"""The node's outputs besides its text: files, sources, variables, usage.

In: files as they are forwarded, and one RunSummary at the end. Out: messages in the shape that Dify keeps
(docs/host-facts.md, "Messages that the node keeps").
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, assert_never

from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.invoke_message import InvokeMessage

from internal.render.outgoing import Outgoing, size_on_the_wire
from internal.render.variables import MAX_VALUE_BYTES, RunVariables, leading
from internal.report.events import RunSummary
from internal.report.files import MAX_NAME_LENGTH, ExternalImage, FileBytes, HostedFile, UserFile
from internal.report.sources import Source
from internal.text.fairness import in_turns

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
