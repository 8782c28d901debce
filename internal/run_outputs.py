"""What a run leaves in the node's outputs besides its text: files, sources, variables, usage.

In: files as they are forwarded, and one RunSummary at the end. Out: messages in the shape that Dify keeps
(dify-contract §2).
"""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, assert_never

from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.invoke_message import InvokeMessage
from pydantic_core import to_json

from internal.events import RunSummary
from internal.fairness import in_turns
from internal.redaction import Redactor
from internal.sources import Source, cited_numbers
from internal.tool_files import LONGEST_NAME
from internal.user_files import ExternalImage, FileBytes, HostedFile, UserFile
from internal.wellformed import plain_json, wellformed

LARGEST_CHUNK = 8192
"""Bytes of one blob chunk that the daemon takes (dify-contract §6)."""

LONGEST_VALUE = 1024 * 1024
"""Bytes of one variable, of one list in the last JSON, of the resources of a message: lines far below the longest."""
LONGEST_SOURCE = 10_000
"""Characters of one field of a source."""

_EXACT = frozenset({"stop_reason", "structured_output"})
"""Variables that go out as they are: one of our own words, and an answer in which neither a secret nor NUL is."""

_Type = InvokeMessage.MessageType
_Resources = InvokeMessage.RetrieverResourceMessage
_Resource = InvokeMessage.RetrieverResourceMessage.RetrieverResource


def file_messages(file: UserFile, redactor: Redactor) -> Iterator[AgentInvokeMessage]:
    """Hand a file on to the user.

    The SDK's enum lacks ``binary_link``; Dify finds a tool file by its meta, whatever the link is called.
    """
    match file:
        case HostedFile(address, meta):
            body = InvokeMessage.TextMessage(text=wellformed(address))
            yield AgentInvokeMessage(type=_Type.IMAGE_LINK, message=body, meta=redactor.values(_plain_dict(meta)))
        case ExternalImage(address):
            body = InvokeMessage.TextMessage(text=redactor.text(wellformed(address)))
            yield AgentInvokeMessage(type=_Type.IMAGE, message=body)
        case FileBytes():
            yield from _chunks(replace(file, filename=redactor.text(file.filename)))
        case _:
            assert_never(file)


def _chunks(file: FileBytes) -> Iterator[AgentInvokeMessage]:
    """A blob in pieces: one in a single line could kill the plugin, and the SDK splits only tools' own messages.

    The last chunk is empty, since the daemon ignores the bytes of the chunk that ends a blob.
    """
    blob_id = uuid.uuid4().hex
    pieces = [file.data[at : at + LARGEST_CHUNK] for at in range(0, len(file.data), LARGEST_CHUNK)]
    meta = {"mime_type": wellformed(file.mime_type[:LONGEST_NAME])}
    if file.filename:
        meta["filename"] = wellformed(file.filename[:LONGEST_NAME])
    for sequence, piece in enumerate([*pieces, b""]):
        chunk = InvokeMessage.BlobChunkMessage(
            id=blob_id, sequence=sequence, total_length=len(file.data), blob=piece, end=sequence == len(pieces)
        )
        yield AgentInvokeMessage(type=_Type.BLOB_CHUNK, message=chunk, meta=meta)


def decision_summary(summary: RunSummary) -> dict[str, Any]:
    """What the run did, for people and for log search; never the model's thoughts."""
    cited = _cited(summary)
    used = [{"number": number, "title": source.label} for number, source in summary.sources if number in cited]
    whole = _variables(summary)
    left_out = {name: _count(value) - _count(_bounded(value)) for name, value in whole.items()}
    return {
        "stop_reason": summary.stop_reason.value,
        "rounds": summary.rounds,
        "tool_calls": _bounded(whole["tool_runs"]),
        "sources_used": _leading(used),
        **summary.decisions,
        **({"left_out": {name: count for name, count in left_out.items() if count}} if any(left_out.values()) else {}),
    }


def closing_messages(
    summary: RunSummary, decisions: Mapping[str, Any], redactor: Redactor
) -> Iterator[AgentInvokeMessage]:
    """Sources, variables, and last of all exactly one JSON: every later one would reset the node's usage."""
    yield from _resources_messages(_resource(number, source, redactor) for number, source in summary.sources)
    for name, value in _variables(summary).items():
        kept = _bounded(value)
        if name not in _EXACT:
            kept = redactor.values(plain_json(kept))
        body = InvokeMessage.VariableMessage(variable_name=name, variable_value=kept)
        yield AgentInvokeMessage(type=_Type.VARIABLE, message=body)
    last = {
        "execution_metadata": summary.usage.execution_metadata(),
        "decision_summary": {**redactor.values(plain_json(decisions)), "stop_reason": summary.stop_reason.value},
    }
    yield AgentInvokeMessage(type=_Type.JSON, message=InvokeMessage.JsonMessage(json_object=last))


def _cited(summary: RunSummary) -> frozenset[int]:
    """The sources that the answer cites; in JSON the brackets around a number are a list."""
    structured = summary.structured_output
    texts = structured.texts() if structured and structured.answer is not None else [summary.answer]
    return frozenset(number for text in texts for number in cited_numbers(text))


def _variables(summary: RunSummary) -> dict[str, object]:
    structured = summary.structured_output
    return {
        "stop_reason": summary.stop_reason.value,
        "sources": _source_list(summary),
        "tool_runs": _tool_runs(summary),
        **({"structured_output": structured.variable} if structured else {}),
        **summary.variables,
    }


def _bounded(value: object) -> object:
    """What one line can carry: of a list its beginning, of anything else all or nothing."""
    if isinstance(value, list):
        return _leading(value)
    return value if _size(value) <= LONGEST_VALUE else None


def _leading[T](items: Sequence[T]) -> list[T]:
    sizes = accumulate(_size(item) for item in in_turns(items))
    return [item for item, size in zip(items, sizes, strict=True) if size <= LONGEST_VALUE]


def _size(value: object) -> int:
    """Bytes on the wire, with a comma."""
    return len(to_json(plain_json(value))) + 1


def _count(value: object) -> int:
    return len(value) if isinstance(value, list) else int(value is not None)


def _source_list(summary: RunSummary) -> list[dict[str, Any]]:
    """All sources by number; the cited ones first when not all of them fit."""
    cited = _cited(summary)
    listed = [
        {
            "number": number,
            "title": source.label,
            "document_id": source.document_id and source.document_id[:LONGEST_NAME],
            "score": source.score,
            "cited": number in cited,
        }
        for number, source in in_turns(summary.sources)
    ]
    return listed if _size(listed) <= LONGEST_VALUE else sorted(listed, key=lambda entry: not entry["cited"])


def _tool_runs(summary: RunSummary) -> list[dict[str, Any]]:
    return [
        {
            "round": run.round,
            "tool": wellformed(run.tool)[:LONGEST_NAME],
            "status": run.status.value,
            "elapsed_seconds": round(run.elapsed_seconds, 3),
        }
        for run in summary.tool_runs
    ]


def _resources_messages(resources: Iterable[_Resource]) -> Iterator[AgentInvokeMessage]:
    waiting: list[_Resource] = []
    size = 0
    for resource in in_turns(resources):
        added = _size(resource.model_dump())
        if waiting and size + added > LONGEST_VALUE:
            yield _resources_message(waiting)
            waiting, size = [], 0
        waiting.append(resource)
        size += added
    if waiting:
        yield _resources_message(waiting)


def _resources_message(resources: list[_Resource]) -> AgentInvokeMessage:
    body = _Resources(retriever_resources=resources, context="")
    return AgentInvokeMessage(type=_Type.RETRIEVER_RESOURCES, message=body)


def _resource(number: int, source: Source, redactor: Redactor) -> _Resource:
    fields = redactor.values(_plain_dict({"document_name": source.title, **source.resource, "content": source.content}))
    short = {name: value[:LONGEST_SOURCE] if isinstance(value, str) else value for name, value in fields.items()}
    if len(json.dumps(short.get("doc_metadata"))) > LONGEST_SOURCE:
        del short["doc_metadata"]
    return _Resource.model_validate({**short, "position": number})


def _plain_dict(value: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key): plain_json(item) for key, item in value.items()}
