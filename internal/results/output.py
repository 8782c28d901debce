"""The messages of a tool, turned into text for the model, files for the user, and sources.

In: the tool's messages as plain dicts from the wire, since the SDK's enum lacks types that Dify sends and one of them
would end its generator. Out: text, files to forward, sources. A tool may send any amount: what is kept is bounded, and
a note says so. Logs are not for the model; variables are, when the tool says nothing else.
"""

import contextlib
import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from internal.host.wire import WireMessage
from internal.report.files import UserFile
from internal.report.source_reading import read_source
from internal.report.sources import Source
from internal.results import files
from internal.results.files import IMAGE_TYPES, Told
from internal.results.variables import ToolVariables
from internal.text.fairness import in_turns
from internal.text.kept_text import MAX_KEPT_LENGTH, Excerpt, KeptText, joined
from internal.text.notes import OurWords, Quoting, Sentence
from internal.text.pasted import parse_pasted
from internal.text.redaction import BORDER, KnownSecrets

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
        elif kind in _LINKED_FILE_TYPES or (kind == "link" and files.is_hosted(address, meta)):
            return self._take_file(files.linked(kind, address, meta))
        elif kind == "link":
            self._add_line(f"link: {address}")
        elif kind == "blob":
            return self._take_file(files.blob(message.get("blob"), meta))
        elif kind == "file":
            return self._take_file(files.described(meta))
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
