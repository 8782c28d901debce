"""What the tools of a run answered, as the calls of a script's section `recorded`.

In: the tool calls of a strategy. Out: the recorded calls as plain data; files as paths.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from devhost.node.messages.file_facts import mime_type_of
from devhost.plugin.casting import is_file
from devhost.protocol.message_types import FILE_LINKS
from devhost.protocol.wire import JsonObject
from devhost.recording.kept_files import KeptFiles
from devhost.trace.calls import Call

ADDRESS, FILE_ID = "url", "tool_file_id"
"""What is of one run alone."""


def tool_calls(calls: Iterable[Call]) -> list[Call]:
    """Those of the strategy itself, in the order in which they began."""
    return sorted((call for call in calls if call.kind == "tool" and not call.parent), key=lambda call: call.began)


def recorded_call(call: Call, made: Mapping[str, JsonObject], files: KeptFiles) -> JsonObject:
    """`made`: by id, the files of the run as its output `files` describes them."""
    given = call.request.get("tool_parameters")
    recorded: JsonObject = {
        "tool": str(call.request.get("tool")),
        "provider": str(call.request.get("provider")),
        "arguments": _without_addresses(given) if isinstance(given, dict) else {},
    }
    if call.pieces:
        recorded["answer"] = [_part(piece.data, made, files) for piece in call.pieces]
    if call.error:
        recorded["error"] = call.error
    return recorded


def _part(message: JsonObject, made: Mapping[str, JsonObject], files: KeptFiles) -> JsonObject:
    match message:
        case {"type": "text", "message": {"text": str(text), **rest}, **others} if not (rest or others.get("meta")):
            return {"text": text}
        case {"type": "json", "message": {"json_object": dict() | list() as value, **rest}, **others} if not (
            rest or others.get("meta")
        ):
            return {"json": value}
        case {"type": str(kind), "meta": {"tool_file_id": file_id} as meta} if kind in FILE_LINKS:
            return _file(meta, made.get(str(file_id), {}), files)
        case _:
            return {"message": message}


def _file(meta: JsonObject, described: JsonObject, files: KeptFiles) -> JsonObject:
    """A picture that Dify downloaded has no MIME type in its meta, but needs one to be a picture again."""
    facts = {**meta, **described}
    kept = files.made(facts)
    if kept is None:
        return {"text": f"[The file {facts.get('filename') or 'without a name'} is not in the recording.]"}
    mime_type = facts.get("mime_type") or mime_type_of(kept)
    own = {name: value for name, value in meta.items() if name != FILE_ID}
    return {"file": kept, "meta": {**own, "mime_type": mime_type}}


def _without_addresses(value: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if key != ADDRESS} if is_file(value) else value
        return {key: _without_addresses(item) for key, item in kept.items()}
    return [_without_addresses(item) for item in value] if isinstance(value, list) else value
