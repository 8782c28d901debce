"""The files of a tool: what goes to the user, and the line that the model reads."""

import base64
import binascii
import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from io import StringIO
from posixpath import splitext
from typing import Any, NamedTuple

from internal.clock import in_turns
from internal.errors import OurWords, Quoting, Sentence
from internal.events import (
    MAX_ADDRESS_LENGTH,
    MAX_FILE_BYTES,
    MAX_NAME_LENGTH,
    ExternalImage,
    FileBytes,
    HostedFile,
    UserFile,
)
from internal.host.failures import FailureKind, HostFailure, without_directories, without_tracebacks
from internal.host.files import FileRefused, is_local_path, read_local_file, sniff_mime_type
from internal.host.session import WireMessage
from internal.sources import Source, read_source
from internal.text.secrets import BORDER, KnownSecrets, Redactor
from internal.text.texts import MAX_KEPT_LENGTH, Excerpt, KeptText, joined, parse_pasted

# The files of a tool: what goes to the user, and the line that the model reads.
#
# The model is told no name that the user does not see: Dify calls a file that has none by a random one.

IMAGE_TYPES = frozenset({"image", "image_link"})

# The meta of a tool file that Dify and its web page read; a tool could add anything of any size.
_HOSTED_META = ("tool_file_id", "mime_type", "filename", "extension", "size", "type", "width", "height")
_TOOL_FILE = re.compile(r"/files/tools/[\w-]+(\.\w+)?(\?[^\s]*)?")
_WEB = ("http://", "https://")


class Told(NamedTuple):
    """The result of a message about a file."""

    line: str
    file: UserFile | None = None


def is_hosted(address: str, meta: Mapping[str, Any]) -> bool:
    """Whether it is a file that Dify keeps."""
    return len(address) <= MAX_ADDRESS_LENGTH and (
        _TOOL_FILE.fullmatch(address) is not None or bool(meta.get("tool_file_id") and _may_be_hosted(address))
    )


def linked(kind: str, address: str, meta: Mapping[str, Any]) -> Told:
    """A file by its address: one of Dify's, a local path, or something on the web."""
    if len(address) > MAX_ADDRESS_LENGTH:
        return Told("file: its address is too long, not handed on")
    if is_hosted(address, meta):
        name = _hosted_name(meta, address)
        line = f"{_called(name, _mime_type(meta))}, handed to the user"
        return Told(line, HostedFile(address, _hosted_meta(meta) | ({"filename": name} if name else {})))
    if is_local_path(address):
        return _local(address)
    if kind in IMAGE_TYPES and address.startswith(_WEB):
        return _external_image(_given_name(meta), address)
    return Told(f"file: {address}")


def _local(path: str) -> Told:
    try:
        file = read_local_file(path)
    except FileRefused as refused:
        return Told(str(refused))
    line = f"{_called(file.filename, file.mime_type)}, handed to the user"
    return Told(line, FileBytes(file.data, file.mime_type, file.filename))


def blob(blob: object, meta: Mapping[str, Any]) -> Told:
    """A file by its bytes, in base64."""
    try:
        data = base64.b64decode(str(blob or ""), validate=True)
    except (binascii.Error, ValueError):
        return Told("file: its bytes could not be read")
    if len(data) > MAX_FILE_BYTES:
        return Told("file: larger than 15 MiB, not handed on")
    mime_type = _mime_type(meta) or sniff_mime_type(data)
    name = _given_name(meta)
    return Told(f"{_called(name, mime_type)}, handed to the user", FileBytes(data, mime_type, name))


def described(meta: Mapping[str, Any]) -> Told:
    """A file that is only described: an upload, or one on the web, whose address its description has."""
    described = meta.get("file")
    file = described if isinstance(described, Mapping) else meta
    address = str(file.get("remote_url") or "")
    name, mime_type = _given_name(file), _mime_type(file)
    if not address.startswith(_WEB) or len(address) > MAX_ADDRESS_LENGTH:
        return Told(_called(name, mime_type))
    if file.get("type") == "image" or mime_type.startswith("image/"):
        return _external_image(name, address)
    return Told(f"{_called(name, mime_type)}, {address}")


def _called(name: str, mime_type: str) -> str:
    return f"{f'file: {name}' if name else 'file'} ({mime_type or 'unknown type'})"


def _external_image(name: str, address: str) -> Told:
    return Told(f"image: {f'{name}, {address}' if name else address}, shown to the user", ExternalImage(address))


def _may_be_hosted(address: str) -> bool:
    """Whether an address is one under which Dify keeps tool files, or none of this machine's."""
    under_tools = address.startswith("/files/tools/") and ".." not in address and "\0" not in address
    return not address or under_tools or not is_local_path(address)


def _hosted_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a file's meta that is forwarded: numbers, and texts no longer than a name."""
    kept: dict[str, Any] = {}
    for name in _HOSTED_META:
        value = meta.get(name)
        if isinstance(value, str):
            kept[name] = _short_name(value)
        elif isinstance(value, int | float):
            kept[name] = value
    return kept


def _short_name(name: str) -> str:
    """A file's name or type; one that is too long keeps the suffix that says what the file is."""
    if len(name) <= MAX_NAME_LENGTH:
        return name
    suffix = splitext(name)[1][:MAX_NAME_LENGTH]
    return name[: MAX_NAME_LENGTH - len(suffix)] + suffix


def _told(meta: Mapping[str, Any], *names: str) -> str:
    """What a file's meta, or the description of the file in it, says under one of these names."""
    described = meta.get("file")
    for part in (meta, described if isinstance(described, Mapping) else {}):
        for name in names:
            if isinstance(part.get(name), str) and part[name].strip():
                return _short_name(" ".join(part[name].split()))
    return ""


def _given_name(meta: Mapping[str, Any]) -> str:
    return _told(meta, "filename", "name")


def _hosted_name(meta: Mapping[str, Any], address: str) -> str:
    """Dify adds its type's suffix, which the address has too, to a name without a dot."""
    name = _given_name(meta)
    return name if "." in name or not name else name + splitext(address.partition("?")[0])[1]


def _mime_type(meta: Mapping[str, Any]) -> str:
    return _told(meta, "mime_type")


# Variables that a tool sets: its result, if it sends nothing else.

_MAX_NAME_LENGTH = 200
_OVERHEAD = 100
"""Characters that a variable counts for besides its name and value."""


class ToolVariables:
    """The last value of each variable, as far as they are not too long together."""

    def __init__(self) -> None:
        self.left_out = False
        """Whether a value was too long to be kept."""
        self._values: dict[str, StringIO] = {}
        self._streamed: set[str] = set()
        """Variables whose value is a text as it is; the others' are JSON."""
        self._left = MAX_KEPT_LENGTH

    def take(self, name: object, value: object, *, stream: bool) -> None:
        """Set a variable; pieces of a streamed text follow each other, as in Dify."""
        key = str(name)[:_MAX_NAME_LENGTH]
        is_piece = stream and isinstance(value, str)
        if not (is_piece and key in self._streamed):
            self._forget(key)
        text = str(value) if is_piece else _written(value)
        cost = len(text) + (0 if key in self._values else len(key) + _OVERHEAD)
        if cost > self._left:
            self.left_out = True
            return
        self._left -= cost
        self._values.setdefault(key, StringIO()).write(text)
        if is_piece:
            self._streamed.add(key)

    def _forget(self, key: str) -> None:
        old = self._values.pop(key, None)
        self._streamed.discard(key)
        if old is not None:
            self._left += old.tell() + len(key) + _OVERHEAD

    def clear(self) -> None:
        """Drop all variables: something else is the result."""
        self._values.clear()
        self._streamed.clear()
        self._left = MAX_KEPT_LENGTH

    def text(self) -> str:
        """All variables as one JSON object, "" without any."""
        values = (
            f"{_written(key)}: {_written(value.getvalue()) if key in self._streamed else value.getvalue()}"
            for key, value in in_turns(self._values.items())
        )
        return f"{{{', '.join(values)}}}" if self._values else ""


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


# Why a tool failed, as the model reads it.
#
# Tracebacks, directories and secrets are not in it.

TOOL_FAILED = "tool invoke error: failed to execute tool"
MAX_REASON_LENGTH = 500
"""Characters."""

# For failures without a message of the tool.
_WORDS = {
    FailureKind.TIMEOUT: "timeout",
    FailureKind.RATE_LIMITED: "rate limited",
    FailureKind.UNAUTHORIZED: "unauthorized",
    FailureKind.NOT_FOUND: "not found",
    FailureKind.INVALID_REQUEST: "invalid input",
    FailureKind.TOO_LARGE: "its result is too large",
    FailureKind.UNAVAILABLE: "unavailable",
    FailureKind.CONNECTION: "unavailable",
    FailureKind.CONNECTION_REFUSED: "unavailable",
    FailureKind.CUT_STREAM: "unavailable",
}


@dataclass(frozen=True)
class ToolFailure:
    """A call that failed before it had sent its whole result."""

    kind: FailureKind
    message: str
    """For the log, whole."""
    told: str = f"{TOOL_FAILED}: timeout"
    """What the model reads."""

    @classmethod
    def of(cls, failure: HostFailure, secrets: KnownSecrets) -> "ToolFailure":
        said = "" if failure.is_hosts_own else plain_reason(failure.reason, secrets.for_model)
        reason = said or _WORDS.get(failure.kind, "")
        return cls(failure.kind, failure.reason, f"{TOOL_FAILED}: {reason}" if reason else TOOL_FAILED)


TIMED_OUT = ToolFailure(FailureKind.TIMEOUT, "no answer before the run's deadline")
NOT_BEGUN = ToolFailure(FailureKind.TIMEOUT, "the run's deadline came before the call's turn")


def plain_reason(message: str, redactor: Redactor) -> str:
    """The first lines of a message, without secrets, tracebacks and directories."""
    known = redactor.text(message)  # first of all: a secret may have several lines
    reason = without_directories(redactor.error(without_tracebacks(known))).strip()
    return reason if len(reason) <= MAX_REASON_LENGTH else f"{reason[: MAX_REASON_LENGTH - 1]}…"


# The messages of a tool, turned into text for the model, files for the user, and sources.
#
# A tool may send any amount: what is kept is bounded, and a note says so. Logs are not for the model; variables are,
# when the tool says nothing else.

MAX_SOURCE_LENGTH = 40_000
"""Characters of a source that are kept with it; the user gets fewer."""
MAX_JSON_LENGTH = 512 * 1024
"""Characters of the JSON of one call that are kept for a variable: as much as all optional variables may have."""
_MIN_SOURCE_LENGTH = 500
"""Characters that one source counts for at least."""
_LINKED_FILE_TYPES = IMAGE_TYPES | {"binary_link"}


class ToolOutput:
    """Collects the messages of one call in the order in which they come."""

    def __init__(self, secrets: KnownSecrets, between_texts: str = "", *, keeps_json: bool = False) -> None:
        self._redactor = secrets.for_model
        """For what is cut when it comes, such as names and titles, and for the result before it is cut."""
        self._between_texts = between_texts
        self._texts, self._json, self._lines = KeptText(), KeptText(), KeptText()
        self._contents = KeptText()
        """Of the sources: read when the tool says nothing else."""
        self._variables = ToolVariables()
        self._text_before = ""
        """The message before this one, if it was text: a workflow tool says its JSON as text first."""
        self._is_compared = False
        """Whether the texts together were compared with a JSON value; once, since it takes its time."""
        self._sources_length = 0
        self._keeps_json = keeps_json
        self._json_room, self._json_left_out = MAX_JSON_LENGTH, 0
        self.sources: list[Source] = []
        self.sent_json: list[str] = []
        """The values that came as JSON, as texts, not redacted; empty where they are not kept."""
        self.notes: list[Sentence] = []

    def take(self, wire: WireMessage) -> UserFile | None:
        """Take one message in; return the file in it that goes to the user."""
        return self._take(wire.type, wire.message or {}, self._redactor.json(wire.meta or {}))

    def _take(self, kind: str, message: Mapping[str, Any], meta: Mapping[str, Any]) -> UserFile | None:
        text_before, self._text_before = self._text_before, ""
        address = str(message.get("text") or "")
        if kind == "text":
            self._take_text(address)
        elif kind == "json":
            self._take_json(message.get("json_object"), text_before)
        elif kind in _LINKED_FILE_TYPES or (kind == "link" and is_hosted(address, meta)):
            return self._take_file(linked(kind, address, meta))
        elif kind == "link":
            self._add_line(f"link: {address}")
        elif kind == "blob":
            return self._take_file(blob(message.get("blob"), meta))
        elif kind == "file":
            return self._take_file(described(meta))
        elif kind == "retriever_resources":
            self._take_resources(message["retriever_resources"])
        elif kind == "variable":
            self._take_variable(message)
        elif kind != "log":
            note = Quoting(f"a message of the unknown type {kind!r} was passed over")
            self.notes += [] if note in self.notes else [note]
        return None

    def _take_text(self, text: str) -> None:
        if text and self._between_texts and self._texts.length and self._texts.last != "\n":
            self._texts.add(BORDER)
        self._texts.add(text)
        self._text_before = text if len(text) <= MAX_KEPT_LENGTH else ""

    def _take_json(self, value: object, text_before: str) -> None:
        text = json.dumps(value, ensure_ascii=False)
        self._keep_json(text)
        is_all_text = len(text_before) == self._texts.length
        if not _says(text_before, value) and (is_all_text or not self._texts_say(value)):
            self._json.add(f"\n\n{text}" if self._json.length else text)

    def _keep_json(self, text: str) -> None:
        if self._keeps_json and len(text) <= self._json_room:
            self._json_room -= len(text)
            self.sent_json.append(text)
        elif self._keeps_json:
            self._json_left_out += 1

    def _texts_say(self, value: object) -> bool:
        if self._is_compared or not self._texts.is_whole:
            return False
        self._is_compared = True
        return _says(self._texts.whole().replace(BORDER, self._between_texts), value)

    def _take_variable(self, message: Mapping[str, Any]) -> None:
        if not self._has_spoken():
            name, value = message.get("variable_name"), message.get("variable_value")
            self._variables.take(name, value, stream=bool(message.get("stream")))

    def _has_spoken(self) -> bool:
        """Whether text or JSON is the result, so that variables are not."""
        if not self._texts.says_something and not self._json.length:
            return False
        self._variables.clear()
        return True

    def _take_file(self, told: Told) -> UserFile | None:
        self._add_line(told.line)
        return told.file

    def _add_line(self, line: str) -> None:
        self._lines.add(f"\n{line}" if self._lines.length else line)

    def _take_resources(self, resources: list[dict[str, Any]]) -> None:
        for resource in in_turns(resources):
            if source := read_source(self._redactor.json(resource)):
                self._take_source(source)

    def _take_source(self, source: Source) -> None:
        self._contents.add(f"\n\n{source.content}" if self._contents.length and source.content else source.content)
        short = source.shortened(MAX_SOURCE_LENGTH)
        length = sum(len(value) for value in short.resource.values() if isinstance(value, str))
        self._sources_length += max(length, _MIN_SOURCE_LENGTH)
        if self._sources_length <= MAX_KEPT_LENGTH:
            self.sources.append(short)

    def rendered(self) -> Excerpt:
        """What the model reads, redacted, before it is cut to size; "" when the tool said nothing."""
        self._note_what_is_missing()
        redact = self._redactor.text
        variables = "" if self._has_spoken() else redact(self._variables.text())
        texts = self._texts.excerpt(partial(self._redactor.texts, between=self._between_texts))
        said = joined([texts, *(kept.excerpt(redact) for kept in in_turns((self._json, self._lines)))])
        if not said.text:
            said = self._contents.excerpt(redact)
        return joined([Excerpt(variables), said])

    def _note_what_is_missing(self) -> None:
        """Note in the log what was too long to be kept."""
        parts = {"text": self._texts, "JSON": self._json, "lines about files and links": self._lines}
        self.notes += [
            OurWords(f"of its {kept.length:,} characters of {name} only the beginning and the end were kept")
            for name, kept in parts.items()
            if not kept.is_whole
        ]
        if self._sources_length > MAX_KEPT_LENGTH:
            kept_first = f"only the first {len(self.sources):,} sources were kept"
            self.notes.append(OurWords(f"{kept_first}: together they are too long"))
        if self._json_left_out:
            left_out = f"{self._json_left_out:,} of its JSON values"
            self.notes.append(OurWords(f"{left_out} are too long for the variable tool_results"))
        if self._variables.left_out:
            self.notes.append(OurWords("not all variables were kept: together they are too long"))


def _says(text: str, value: object) -> bool:
    """Whether a text is the JSON of this value, whatever the order of its keys; 1 and 1.0 are one number."""
    if text.lstrip()[:1] not in {"{", "["}:
        return False
    with contextlib.suppress(ValueError, RecursionError):
        return bool(parse_pasted(text) == value)
    return False
