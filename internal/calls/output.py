"""Converts the messages of a tool to text for the model, files for the user and sources, or to an error."""

import base64
import binascii
import contextlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from io import StringIO
from posixpath import splitext
from typing import Any

from internal.call import MAX_PICTURES, CallStatus, Picture, ToolOutcome, ValidCall
from internal.clock import in_turns
from internal.errors import OurWords, Quoting, Sentence
from internal.events import MAX_ADDRESS_LENGTH, MAX_FILE_BYTES, MAX_NAME_LENGTH, ExternalImage, HostedFile, UserFile
from internal.host.failures import FailureKind, HostFailure, without_directories, without_tracebacks
from internal.host.files import FileBytes, FileRefused, decoded, is_local_path, read_local_file, sniff_mime_type
from internal.host.session import MAX_REQUEST_BYTES, DeadlinePassed, WireMessage
from internal.node.model import MAX_FILE_BYTES as MAX_IMAGE_BYTES
from internal.node.model import VISIBLE_TYPES, content_of
from internal.sources import Source, read_source
from internal.text.secrets import BORDER, KnownSecrets, Redactor
from internal.text.texts import MAX_KEPT_LENGTH, KeptText, cut_to_size, joined, parse_pasted
from prompt import template, tool_errors

MAX_REASON_LENGTH = 500
"""Maximum characters of the reason for a failure (docs/tools.md)."""
_WORDS = {
    FailureKind.INVALID_REQUEST: tool_errors.INVALID_INPUT,
    FailureKind.TOO_LARGE: tool_errors.RESULT_TOO_LARGE,
    FailureKind.CONNECTION: tool_errors.UNAVAILABLE,
    FailureKind.CUT_STREAM: tool_errors.UNAVAILABLE,
    FailureKind.UNKNOWN: "",
}
"""Texts for failures without a message from the tool. For other kinds, the name of the kind is used."""


def plain_reason(message: str, redactor: Redactor) -> str:
    """Return the first lines of a message, without secrets, tracebacks and directories."""
    known = redactor.text(message)  # this comes first, because a secret may have several lines
    reason = without_directories(redactor.error(without_tracebacks(known))).strip()
    if len(reason) <= MAX_REASON_LENGTH:
        return reason
    return f"{reason[: MAX_REASON_LENGTH - 1]}…"


# Files. The model reads only names that the user sees, because Dify gives a random name to a file without a name.

_IMAGE_TYPES = ("image", "image_link")
_HOSTED_META = ("tool_file_id", "mime_type", "filename", "extension", "size", "type", "width", "height")
"""The keys in the metadata of a tool file that Dify and its web page read. A tool could add other data of any size."""
_TOOL_FILE = re.compile(r"/files/tools/[\w-]+(\.\w+)?(\?[^\s]*)?")
_WEB = ("http://", "https://")

type FileLine = tuple[str, UserFile | None]
"""The line that the model reads about a file, and the file for the user, if any."""


def _file_line(kind: str, message: Mapping[str, Any], meta: Mapping[str, Any]) -> FileLine | None:
    """Return the line and the file for a message about a file or a link; None for any other message."""
    address = str(message.get("text") or "")
    if kind in (*_IMAGE_TYPES, "binary_link") or (kind == "link" and _is_hosted(address, meta)):
        return _linked(kind, address, meta)
    if kind == "link":
        return tool_errors.LINK.format(address=address), None
    if kind == "blob":
        return _blob(message.get("blob"), meta)
    if kind == "file":
        return _described(meta)
    return None


def _linked(kind: str, address: str, meta: Mapping[str, Any]) -> FileLine:
    """Read a file given by its address: one of Dify's files, a local path, or a web address."""
    name = _given(meta, "filename", "name")
    mime_type = _given(meta, "mime_type")
    if len(address) > MAX_ADDRESS_LENGTH:
        return tool_errors.ADDRESS_TOO_LONG, None
    if _is_hosted(address, meta):
        if name and "." not in name:  # Dify appends the type's suffix to such a name; the address has the same suffix
            name += splitext(address.partition("?")[0])[1]
        kept = {key: meta[key] for key in _HOSTED_META if isinstance(meta.get(key), str | int | float)}
        short = {key: _short_name(value) if isinstance(value, str) else value for key, value in kept.items()}
        hosted = HostedFile(address, short | ({"filename": name} if name else {}))
        return tool_errors.HANDED_TO_USER.format(file=_called(name, mime_type)), hosted
    if is_local_path(address):
        try:
            return _handed_over(read_local_file(address))
        except FileRefused as refused:
            return str(refused), None
    if kind in _IMAGE_TYPES and address.startswith(_WEB):
        return _external_image(name, address)
    return tool_errors.FILE_AT_ADDRESS.format(address=address), None


def _blob(blob: object, meta: Mapping[str, Any]) -> FileLine:
    """Read a file given by its bytes in base64."""
    try:
        data = decoded(str(blob or ""))
    except ValueError:
        return tool_errors.UNREADABLE_BYTES, None
    if len(data) > MAX_FILE_BYTES:
        return tool_errors.FILE_TOO_LARGE, None
    mime_type = _given(meta, "mime_type") or sniff_mime_type(data)
    return _handed_over(FileBytes(data, mime_type, _given(meta, "filename", "name")))


def _described(meta: Mapping[str, Any]) -> FileLine:
    """Read a file given by a description: an upload, or a file on the web with its address in the description."""
    described = meta.get("file")
    file = meta
    if isinstance(described, Mapping):
        file = described
    address = str(file.get("remote_url") or "")
    name = _given(file, "filename", "name")
    mime_type = _given(file, "mime_type")
    if not address.startswith(_WEB) or len(address) > MAX_ADDRESS_LENGTH:
        return _called(name, mime_type), None
    if file.get("type") == "image" or mime_type.startswith("image/"):
        return _external_image(name, address)
    return tool_errors.FILE_ON_THE_WEB.format(file=_called(name, mime_type), address=address), None


def _called(name: str, mime_type: str) -> str:
    kind = mime_type or tool_errors.UNKNOWN_TYPE
    if name:
        return tool_errors.NAMED_FILE.format(name=name, kind=kind)
    return tool_errors.FILE.format(kind=kind)


def _handed_over(file: FileBytes) -> FileLine:
    return tool_errors.HANDED_TO_USER.format(file=_called(file.filename, file.mime_type)), file


def _external_image(name: str, address: str) -> FileLine:
    image = ", ".join(filter(None, (name, address)))
    return tool_errors.IMAGE_SHOWN.format(image=image), ExternalImage(address)


def _is_hosted(address: str, meta: Mapping[str, Any]) -> bool:
    """Return whether Dify stores the file, as its address shows, or its id if the address is not a local path."""
    under_tools = address.startswith("/files/tools/") and ".." not in address and "\0" not in address
    is_by_id = meta.get("tool_file_id") and (not address or under_tools or not is_local_path(address))
    return len(address) <= MAX_ADDRESS_LENGTH and bool(is_by_id or _TOOL_FILE.fullmatch(address))


def _short_name(name: str) -> str:
    """Shorten a file's name or type if it is too long, but keep the suffix, which says what the file is."""
    if len(name) <= MAX_NAME_LENGTH:
        return name
    suffix = splitext(name)[1][:MAX_NAME_LENGTH]
    return name[: MAX_NAME_LENGTH - len(suffix)] + suffix


def _given(meta: Mapping[str, Any], *names: str) -> str:
    """Return the first value under one of these names in a file's metadata or in the file description in it."""
    described = meta.get("file")
    for part in (meta, described if isinstance(described, Mapping) else {}):
        for name in names:
            if isinstance(part.get(name), str) and part[name].strip():
                return _short_name(" ".join(part[name].split()))
    return ""


def picture_in(file: UserFile, redact: Callable[[str], str]) -> Picture | None:
    """Return the picture in a file that goes to the user; None for any other file.

    The model sees only pictures whose bytes the plugin has. Other pictures are only named.
    """
    match file:
        case ExternalImage(address):
            return Picture(redact(address), None, template.PICTURE_ELSEWHERE)
        case HostedFile(address, meta):
            if not str(meta.get("mime_type") or "").startswith("image/"):
                return None
            name = str(meta.get("filename") or address.partition("?")[0])
            return Picture(redact(name), None, template.PICTURE_ELSEWHERE)
        case FileBytes(data, mime_type, filename):
            return _picture_of(data, mime_type, redact(" ".join(filename.split())) or "unnamed")


def _picture_of(data: bytes, mime_type: str, name: str) -> Picture | None:
    """Return a picture with these bytes. The bytes determine the type, whatever the tool claims."""
    seen = sniff_mime_type(data)
    if seen in VISIBLE_TYPES and len(data) <= MAX_IMAGE_BYTES:
        return Picture(name, content_of("image", data, seen, name))
    kind = mime_type
    if seen.startswith("image/"):
        kind = seen
    if not kind.startswith("image/"):
        return None
    why = template.PICTURE_TYPE.format(kind=kind)
    if kind in VISIBLE_TYPES and seen == kind:
        why = template.PICTURE_TOO_LARGE
    elif kind in VISIBLE_TYPES:
        why = template.PICTURE_BROKEN.format(kind=kind)
    return Picture(name, None, why)


_PICTURE_IN_TEXT = re.compile(r"data:(image/[\w.+-]{1,50});base64,([A-Za-z0-9+/]{64,}={0,2})")
"""A ``data:`` address that is long enough to be a real picture instead of an example in a text."""
MAX_SOURCE_LENGTH = 40_000
"""Maximum characters of a source that are kept. The user receives fewer."""
_OVERHEAD = 400
"""Characters that a source or a variable counts in addition to its texts. Names of variables are cut."""


class ToolOutput:
    """Collects the messages of one call in their order, and the reason if the call failed."""

    def __init__(self, secrets: KnownSecrets, between_texts: str = "", *, keeps_pictures: bool = False) -> None:
        self._redactor = secrets.for_model
        self._between_texts = between_texts
        self._texts = KeptText()
        self._json = KeptText()
        self._lines = KeptText()
        self._links = KeptText()
        """The lines about links and files that the user does not receive as files."""
        self._contents = KeptText()
        """The contents of the sources, which are the result if the tool sends nothing else."""
        self._variables: dict[str, object] = {}
        """The variables, which are the result if the tool sends neither text nor JSON. A streamed text is a
        ``StringIO``."""
        self._text_before = ""
        """The previous message if it was text. A workflow tool first sends its JSON as text."""
        self._keeps_pictures = keeps_pictures
        self._lengths: Counter[str] = Counter()
        self._left_out: set[str] = set()
        self.sources: list[Source] = []
        self.pictures: list[Picture] = []
        self.sent_json: list[str] = []
        """The JSON values as redacted text."""
        self.has_more_json = False
        """Whether the tool sent more JSON than is kept."""
        self.notes: list[Sentence] = []
        self._status = CallStatus.OK
        self._failure_text = ""
        """The text about a failure. The model reads it before the tool's own text."""
        self._error: str | None = None
        self._is_transient = False

    def refuse(self, for_model: str, error: str) -> None:
        """Record that the call was not sent. ``for_model`` is for the model and ``error`` for the log."""
        self._status = CallStatus.REFUSED
        self._failure_text = for_model
        self._error = error

    def fail(self, failure: HostFailure) -> None:
        """Record that the call failed. The model reads the tool's own reason, or the kind of failure."""
        reason = ""
        if not failure.is_hosts_own:
            reason = plain_reason(failure.reason, self._redactor)
        reason = reason or _WORDS.get(failure.kind, failure.kind.value)
        self._fail(": ".join(filter(None, (tool_errors.TOOL_FAILED, reason))), failure.reason)
        self._is_transient = failure.is_transient

    def time_out(self) -> None:
        """Record that the call did not end before the deadline of the run."""
        self._fail(f"{tool_errors.TOOL_FAILED}: timeout", tool_errors.NO_ANSWER_IN_TIME)
        self._is_transient = True

    def give_up(self, error: str) -> None:
        """Record that the tool's output cannot be read. ``error`` is for the log."""
        self._fail(tool_errors.TOOL_FAILED, error)

    def _fail(self, for_model: str, error: str) -> None:
        self._status = CallStatus.ERROR
        self._failure_text = for_model
        self._error = error

    def read(self, messages: Iterable[WireMessage]) -> Iterator[UserFile]:
        """Read the messages of a call until it ends or fails, and yield the files that go to the user."""
        try:
            for message in in_turns(messages):
                if file := self.read_one(message):
                    yield file
        except DeadlinePassed:
            self.time_out()
        except HostFailure as failure:
            self.fail(failure)

    def outcome(self, call: ValidCall, limit: int, elapsed_seconds: float) -> ToolOutcome:
        """Return the outcome with a text of at most ``limit`` characters: the failure, if any, and the output."""
        whole = joined(self._failure_text, self.rendered()) or template.NO_OUTPUT
        outcome = ToolOutcome(
            judged=call,
            status=self._status,
            tool_response=cut_to_size(whole, limit),
            error=self._error,
            elapsed_seconds=elapsed_seconds,
            transient=self._is_transient,
            sources=tuple(self.sources),
            pictures=tuple(self.pictures),
            sent_json=tuple(self.sent_json),
            has_more_json=self.has_more_json,
            whole=whole,
        )
        if not outcome.brings_answer:
            return outcome
        return replace(outcome, user_text=self.user_text())

    def read_one(self, wire: WireMessage) -> UserFile | None:
        """Read one message, and return the file in it that goes to the user."""
        kind = wire.type
        message = wire.message or {}
        meta = self._redactor.json(wire.meta or {})
        text_before = self._text_before
        self._text_before = ""
        if found := _file_line(kind, message, meta):
            line, file = found
            self._take_line(line, is_link=file is None)
            if file and self._keeps_pictures:
                self._take_picture(picture_in(file, self._redactor.text))
            return file
        self._take_content(kind, message, text_before)
        return None

    def _take_line(self, line: str, *, is_link: bool) -> None:
        """Keep a line about a file or a link. Lines about links are also kept for an answer that is this result."""
        kept = [self._lines]
        if is_link:
            kept.append(self._links)
        for lines in kept:
            lines.add(f"\n{line}" if lines.length else line)

    def _take_content(self, kind: str, message: Mapping[str, Any], text_before: str) -> None:
        if kind == "text":
            self._take_text(str(message.get("text") or ""))
        elif kind == "json":
            self._take_json(message.get("json_object"), text_before)
        elif kind == "retriever_resources":
            for resource in in_turns(message["retriever_resources"]):
                self._take_source(read_source(self._redactor.json(resource)))
        elif kind == "variable":
            name = str(message.get("variable_name"))[:MAX_NAME_LENGTH]
            stream = bool(message.get("stream"))
            self._take_variable(name, message.get("variable_value"), stream=stream)
        elif kind != "log":
            note = Quoting(f"a message of the unknown type {kind!r} was skipped")
            if note not in self.notes:
                self.notes.append(note)

    def _take_picture(self, picture: Picture | None) -> None:
        """Keep a picture, or only its name if the round already shows as many as it may."""
        if picture and self._fits("pictures", len(picture.name) + _OVERHEAD):
            is_beyond = sum(bool(each.part) for each in self.pictures) == MAX_PICTURES
            size = 0
            if picture.part:
                size = len(picture.part.base64_data)
            if is_beyond or not self._fits("bytes of pictures", size, MAX_REQUEST_BYTES):
                picture = picture.left_out()
            self.pictures.append(picture)

    def _without_pictures(self, text: str) -> str:
        """Return the text with a name instead of each ``data:`` address of a picture."""
        if not self._keeps_pictures or "data:image/" not in text:
            return text

        def named(found: re.Match[str]) -> str:
            name = template.PICTURE_IN_TEXT.format(number=len(self.pictures) + 1)
            try:
                data = base64.b64decode(found[2], validate=True)
            except binascii.Error:
                return found[0]
            self._take_picture(picture_in(FileBytes(data, found[1], name), self._redactor.text))
            return f"[{name}]"

        return _PICTURE_IN_TEXT.sub(named, text)

    def _take_text(self, text: str) -> None:
        if text and self._between_texts and self._texts.length and self._texts.last != "\n":
            self._texts.add(BORDER)
        self._texts.add(self._without_pictures(text))
        if len(text) <= MAX_KEPT_LENGTH:
            self._text_before = text
        else:
            self._text_before = ""

    def _take_json(self, value: object, text_before: str) -> None:
        text = json.dumps(value, ensure_ascii=False)
        if not _says(text_before, value):
            shown = self._without_pictures(text)
            self._json.add(f"\n\n{shown}" if self._json.length else shown)
        self._lengths["JSON"] += len(text)
        self.has_more_json = self._lengths["JSON"] > MAX_KEPT_LENGTH
        if not self.has_more_json:
            redacted = self._redactor.json(value)
            self.sent_json.append(text if redacted is value else json.dumps(redacted, ensure_ascii=False))

    def _take_variable(self, name: str, value: object, *, stream: bool) -> None:
        """Set a variable. The pieces of a streamed text are appended, as in Dify."""
        before = self._variables.get(name)
        is_piece = stream and isinstance(value, str)
        fits = self._fits("variables", len(json.dumps(value)) + (0 if name in self._variables else _OVERHEAD))
        if not (is_piece and isinstance(before, StringIO)):
            self._variables.pop(name, None)
            before = StringIO()
        if fits and is_piece:
            before.write(str(value))
        if fits:
            if is_piece:
                self._variables[name] = before
            else:
                self._variables[name] = value

    def _take_source(self, source: Source | None) -> None:
        if source is None:
            return
        self._contents.add(f"\n\n{source.content}" if self._contents.length and source.content else source.content)
        short = source.shortened(MAX_SOURCE_LENGTH)
        length = sum(len(value) for value in short.resource.values() if isinstance(value, str))
        if self._fits("sources", length + _OVERHEAD):
            self.sources.append(short)

    def _fits(self, part: str, length: int, most: int = MAX_KEPT_LENGTH) -> bool:
        """Return whether ``length`` more characters of a part still fit. If not, the log says that data is missing."""
        if self._lengths[part] + length > most:
            self._left_out.add(part)
            return False
        self._lengths[part] += length
        return True

    def rendered(self) -> str:
        """Return the redacted text for the model, before it is cut to size; "" if the tool sent nothing."""
        self._add_notes()
        has_said = self._texts.says_something or self._json.length or self._lines.length
        last = self._contents
        if has_said:
            last = self._lines
        return joined(*self._texts_and_data(), last.excerpt(self._redactor.text))

    def user_text(self) -> str:
        """Return the redacted text for the user: the tool's text, or else its other output, and the links."""
        redact = self._redactor.text
        said = next((part for part in self._texts_and_data() if part.strip()), self._contents.excerpt(redact))
        return joined(said, self._links.excerpt(redact))

    def _texts_and_data(self) -> tuple[str, str]:
        """Return the texts and the JSON, or the variables if the tool sent neither."""
        redact = self._redactor.text
        texts = self._texts.excerpt(partial(self._redactor.texts, between=self._between_texts))
        if self._texts.says_something or self._json.length or not self._variables:
            return texts, self._json.excerpt(redact)
        values = {key: each.getvalue() if isinstance(each, StringIO) else each for key, each in self._variables.items()}
        return texts, redact(json.dumps(values, ensure_ascii=False))

    def _add_notes(self) -> None:
        if self._texts.says_something or self._json.length:
            self._left_out.discard("variables")
        names = {"text": self._texts, "JSON": self._json, "lines about files and links": self._lines}
        self.notes += [
            OurWords(f"of its {kept.length:,} characters of {name} only the beginning and the end were kept")
            for name, kept in names.items()
            if not kept.is_whole
        ]
        long = "were kept: together they are too long"
        self.notes += [OurWords(f"not all of its {name} {long}") for name in sorted(self._left_out)]


def _says(text: str, value: object) -> bool:
    """Return whether a text is the JSON of this value, in any order of keys. 1 and 1.0 are equal."""
    if text.lstrip()[:1] not in {"{", "["}:
        return False
    with contextlib.suppress(ValueError, RecursionError):
        return bool(parse_pasted(text) == value)
    return False
