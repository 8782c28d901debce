"""What a run leaves in the node's outputs besides its text: files, sources, variables, usage.

In: files as they are forwarded, and one RunSummary at the end. Out: messages in the shape that Dify keeps
(dify-contract §2).
"""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from itertools import batched
from typing import Any, assert_never

from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.invoke_message import InvokeMessage

from internal.events import RunSummary
from internal.redaction import Redactor
from internal.sources import Source, cited_numbers
from internal.tool_output import LONGEST_NAME
from internal.user_files import ExternalImage, FileBytes, HostedFile, UserFile
from internal.wellformed import plain_json, wellformed

LARGEST_CHUNK = 8192
"""Bytes of one blob chunk that the daemon takes (dify-contract §6)."""

SOURCES_OF_A_MESSAGE = 20
LONGEST_SOURCE = 10_000
"""Characters of one field of a source; twenty such sources make a line far below the longest."""

_Type = InvokeMessage.MessageType
_Resources = InvokeMessage.RetrieverResourceMessage


def file_messages(file: UserFile) -> Iterator[AgentInvokeMessage]:
    """Hand a file on to the user.

    The SDK's enum lacks ``binary_link``; Dify finds a tool file by its meta, whatever the link is called.
    """
    match file:
        case HostedFile(address, meta):
            body = InvokeMessage.TextMessage(text=wellformed(address))
            yield AgentInvokeMessage(type=_Type.IMAGE_LINK, message=body, meta=_plain_dict(meta))
        case ExternalImage(address):
            yield AgentInvokeMessage(type=_Type.IMAGE, message=InvokeMessage.TextMessage(text=wellformed(address)))
        case FileBytes():
            yield from _chunks(file)
        case _:
            assert_never(file)


def _chunks(file: FileBytes) -> Iterator[AgentInvokeMessage]:
    """A blob in pieces: one in a single line could kill the plugin, and the SDK splits only tools' own messages.

    The last chunk is empty, since the daemon ignores the bytes of the chunk that ends a blob.
    """
    blob_id = uuid.uuid4().hex
    pieces = [file.data[at : at + LARGEST_CHUNK] for at in range(0, len(file.data), LARGEST_CHUNK)]
    meta = {"mime_type": wellformed(file.mime_type)}
    if file.filename:
        meta["filename"] = wellformed(file.filename)
    for sequence, piece in enumerate([*pieces, b""]):
        chunk = InvokeMessage.BlobChunkMessage(
            id=blob_id, sequence=sequence, total_length=len(file.data), blob=piece, end=sequence == len(pieces)
        )
        yield AgentInvokeMessage(type=_Type.BLOB_CHUNK, message=chunk, meta=meta)


def decision_summary(summary: RunSummary) -> dict[str, Any]:
    """What the run did, for people and for log search; never the model's thoughts."""
    cited = cited_numbers(summary.answer)
    return {
        "stop_reason": summary.stop_reason.value,
        "rounds": summary.rounds,
        "tool_calls": _tool_runs(summary),
        "sources_used": [
            {"number": number, "title": source.label} for number, source in summary.sources if number in cited
        ],
        **summary.decisions,
    }


def closing_messages(summary: RunSummary, redactor: Redactor) -> Iterator[AgentInvokeMessage]:
    """Sources, variables, and last of all exactly one JSON: every later one would reset the node's usage."""
    for sources in batched(summary.sources, SOURCES_OF_A_MESSAGE):
        yield _resources_message(sources)
    variables = {
        "stop_reason": summary.stop_reason.value,
        "sources": _source_list(summary),
        "tool_runs": _tool_runs(summary),
        **summary.variables,
    }
    for name, value in variables.items():
        body = InvokeMessage.VariableMessage(variable_name=name, variable_value=redactor.json(plain_json(value)))
        yield AgentInvokeMessage(type=_Type.VARIABLE, message=body)
    last = {
        "execution_metadata": summary.usage.execution_metadata(),
        "decision_summary": redactor.json(plain_json(decision_summary(summary))),
    }
    yield AgentInvokeMessage(type=_Type.JSON, message=InvokeMessage.JsonMessage(json_object=last))


def _source_list(summary: RunSummary) -> list[dict[str, Any]]:
    cited = cited_numbers(summary.answer)
    return [
        {
            "number": number,
            "title": source.label,
            "document_id": source.document_id and source.document_id[:LONGEST_NAME],
            "score": source.score,
            "cited": number in cited,
        }
        for number, source in summary.sources
    ]


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


def _resources_message(sources: Iterable[tuple[int, Source]]) -> AgentInvokeMessage:
    resources = [_resource(number, source) for number, source in sources]
    body = _Resources(retriever_resources=resources, context="")
    return AgentInvokeMessage(type=_Type.RETRIEVER_RESOURCES, message=body)


def _resource(number: int, source: Source) -> InvokeMessage.RetrieverResourceMessage.RetrieverResource:
    fields = _plain_dict({"document_name": source.title, **source.resource, "content": source.content})
    short = {name: value[:LONGEST_SOURCE] if isinstance(value, str) else value for name, value in fields.items()}
    if len(json.dumps(short.get("doc_metadata"))) > LONGEST_SOURCE:
        del short["doc_metadata"]
    return _Resources.RetrieverResource.model_validate({**short, "position": number})


def _plain_dict(value: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key): plain_json(item) for key, item in value.items()}
