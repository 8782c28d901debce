"""What may leave a run: texts and JSON without known secrets, and what a row of the log shows of them."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

from internal.call import ToolCall
from internal.errors import AgentError, OurWords, Sentence
from internal.events import AnswerText, Event, Noted, Remark, Shown, ShownTogether, ThoughtText
from internal.host.failures import FailureKind, classify
from internal.host.session import MAX_EXACT_INTEGER
from internal.memory.records import State
from internal.memory.state import encode
from internal.node.tools import Tool
from internal.node.virtual_tools import RESERVED_NAMES
from internal.text.secrets import REDACTED, KnownSecrets, Redactor, looks_secret, without_named
from internal.text.texts import wellformed

# What a row of the log shows of a value: its beginning, without secrets and without values under a secret's name.
#
# A name proves nothing, but the log hides one value too many rather than one too few; elsewhere names hide nothing.
# With ``LOG_CONTENT=off`` in the plugin's environment a row has nothing that a user, a model, a tool or a host said:
# numbers, switches and names stay, so that a person still sees what happened.

VARIABLE = "LOG_CONTENT"
MAX_PREVIEW_LENGTH = 2_000
"""Characters of one value; Dify stores every row twice (docs/host-facts.md, "Log entries")."""
_MAX_LOOK_LENGTH = 10 * MAX_PREVIEW_LENGTH
"""Characters of a value that are read."""
_NAMES = frozenset({"status", "stop_reason", "finish_reason"})
"""Fields of a row's data whose texts are words of ours."""
_TOOLS = frozenset({"tool", "tool_calls"})
"""Fields with names of tools, which a model can invent."""
_KINDS = frozenset(FailureKind)

# In JSON within JSON, backslashes stand before a quote; the value's quote then looks like the name's.
_QUOTED_NAME = r"""(?P<quote>\\{0,15}["'])(?P<name>[^"'\\\n]{1,100})(?P=quote)"""
_BARE_NAME = r"(?<![\w.-])(?P<bare>[\w.-]{1,100}+)"
_NAME = re.compile(rf"{_QUOTED_NAME}\s*:\s*")
_ANY_NAME = re.compile(
    rf"""
    (?:
        {_QUOTED_NAME}    # "api_key":    \"api_key\":
      | {_BARE_NAME}      # api_key=      db.password:
    )
    \s*[:=]\s*
    """,
    re.VERBOSE,
)
_BARE_VALUE = re.compile(r"""[^\s,;&}\]"'\\]*""")
_written = json.JSONEncoder(ensure_ascii=False).encode
_SAYS_NOTHING = ("null", "true", "false", '""', "[]", "{}")


@dataclass(frozen=True)
class LogContent:
    """How much of a run's contents its log shows: all of it, or names, sizes and kinds."""

    is_shown: bool = True
    tools: Mapping[str, Tool] = field(default_factory=dict)
    """The tools that the model knows: no other name of a tool or an argument is one."""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> "LogContent":
        """From the environment, as main.py has settled it: any value but ``on`` keeps contents out."""
        return cls(environment.get(VARIABLE, "on") == "on")

    def data(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        return data if self.is_shown else {name: self._sized(name, value) for name, value in data.items()}

    def arguments(self, call: ToolCall) -> Mapping[str, Any] | str:
        """Only the size of each argument, whatever its type: a number may be an account's."""
        arguments = call.parsed.args if call.parsed.ok else call.arguments
        if self.is_shown:
            return arguments
        if isinstance(arguments, str):
            return size_of(arguments)
        tool = self.tools.get(call.name)
        known = tool.prompt_tool.parameters.get("properties", {}) if tool else {}
        return {name if name in known else f"a name of {size_of(name)}": size_of(arguments[name]) for name in arguments}

    def name(self, tool: str) -> str:
        return tool if self.is_shown or tool in self.tools or tool in RESERVED_NAMES else f"a name of {size_of(tool)}"

    def words(self, text: Sentence) -> str:
        return text if self.is_shown or isinstance(text, OurWords) else size_of(text)

    def error(self, error: str) -> str:
        """The error, or what kind of failure it is."""
        if self.is_shown or isinstance(error, OurWords):
            return error
        named = error.partition(":")[0]
        return named if named in _KINDS else classify(error).value

    def _sized(self, name: str, value: object) -> object:
        """A value whose texts are replaced by their sizes."""
        if isinstance(value, str):
            if name in _TOOLS:
                return self.name(value)
            return value if name in _NAMES or not value else size_of(value)
        if isinstance(value, Mapping):
            return {key: self._sized(key, item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._sized(name, item) for item in value]
        return value


def size_of(value: object) -> str:
    text = value if isinstance(value, str) else _written(value)
    return f"{len(text):,} character{'' if len(text) == 1 else 's'}"


def preview(value: object, redactor: Redactor, *, with_unquoted_names: bool = False) -> object:
    """A value for the log: as it is if it is small, else the beginning of its text.

    ``with_unquoted_names`` is for a text that should have been JSON: a value behind a bare name is hidden too.
    """
    text = value if isinstance(value, str) else _written(value)
    if len(text) <= MAX_PREVIEW_LENGTH and not isinstance(value, str):
        shown = _without_named(redactor.json(value))
        written = text if shown == value else _written(shown)
    else:
        names = _ANY_NAME if with_unquoted_names else _NAME
        shown = written = _without_named_in(redactor.head(text, _MAX_LOOK_LENGTH), names)
    if len(written) <= MAX_PREVIEW_LENGTH and len(text) <= _MAX_LOOK_LENGTH:
        return shown
    return f"{written[:MAX_PREVIEW_LENGTH]}… ({len(text):,} characters)"


def _without_named(value: object) -> object:
    """A copy without values under a secret's name; an integer that the host would round is a text."""
    if isinstance(value, str):
        return _without_named_in(value, _NAME)
    if isinstance(value, int):
        return value if abs(value) <= MAX_EXACT_INTEGER else str(value)
    if isinstance(value, Mapping):
        return {
            name: REDACTED
            if looks_secret(name) and not isinstance(item, bool) and item not in (None, "", [], {})
            else _without_named(item)
            for name, item in value.items()
        }
    return [_without_named(item) for item in value] if isinstance(value, list | tuple) else value


def _without_named_in(text: str, names: re.Pattern[str]) -> str:
    """A text in which JSON stands, whole or cut, without the values under secrets' names.

    That holds for its beginning, as far as a preview shows it; the rest stays as it is.
    """
    if names is _NAME and '"' not in text and "'" not in text:
        return text
    pieces, end, left = list[str](), 0, MAX_PREVIEW_LENGTH
    while left > 0 and (found := names.search(text, end, end + left)):
        start = found.end()
        kept, value, end = text[end:start], "", start
        if looks_secret(found["name"] or found.groupdict().get("bare", "")):
            end = _end_of_value(text, start)
            value, quote = text[start:end], found["quote"] or ""
            if value and value not in _SAYS_NOTHING:
                value = f"{quote}{REDACTED}{quote}"
        pieces += [kept, value]
        left -= len(kept) + len(value)
    return "".join([*pieces, text[end:]])


def _end_of_value(text: str, start: int) -> int:
    """Where the value that begins there ends; the text's end when that cannot be told."""
    quote = re.compile(r"""\\{0,15}["']""").match(text, start)
    if quote:
        closing = re.compile(rf"(?<!\\){re.escape(quote[0])}").search(text, quote.end())
        return closing.end() if closing else len(text)
    if text.startswith(("{", "["), start):
        try:
            return json.JSONDecoder().raw_decode(text, start)[1]
        except (ValueError, RecursionError):
            return len(text)
    bare = _BARE_VALUE.match(text, start)
    return bare.end() if bare else start


# Cleans texts on their way out: known secrets are replaced, and the text can be stored.
#
# Every message of a run is made of what stands here: ``redacted_text`` has the text that streams, in pieces cut
# anywhere, ``Outgoing`` everything else.

_ERROR_ENDS = 900, 100
"""Characters of a long error's beginning and end that are shown."""


def size_on_the_wire(value: object) -> int:
    """Bytes of a JSON value, with a comma."""
    return len(to_json(value)) + 1


@dataclass(frozen=True)
class Outgoing:
    """What may leave a run; ``secrets`` grow while it goes on."""

    secrets: KnownSecrets

    def text(self, text: str) -> str:
        return wellformed(self.secrets.for_people.text(text))

    def json(self, value: Any) -> Any:  # noqa: ANN401 - JSON in, JSON out
        """A JSON value of ours: its texts are redacted, its names and numbers stay."""
        return self.secrets.for_people.values(value)

    def of_others(self, value: Any) -> Any:  # noqa: ANN401 - as above
        """A JSON value that a model or a tool wrote: its names and numbers are redacted too."""
        return self.secrets.for_people.json(value)

    def words(self, text: str) -> str:
        """A sentence that may quote others, also without what has the shape of a credential."""
        return wellformed(self.secrets.for_people.error(text))

    def error(self, text: str) -> str:
        """What went wrong, also without what it calls a password and the like; a long one loses its middle."""
        shown = without_named(self.words(text))
        head, tail = _ERROR_ENDS
        return shown if len(shown) <= head + tail else f"{shown[:head]} … {shown[-tail:]}"

    def state(self, state: State) -> str:
        """A state as the text of a variable."""
        return encode(state.redacted(self.secrets.for_people))

    def preview(self, value: object) -> object:
        """What the log shows of a value."""
        return preview(wellformed(value) if isinstance(value, str) else value, self.secrets.for_people)

    def arguments(self, arguments: Mapping[str, Any] | str) -> object:
        """What the log shows of a call's arguments; a text is one that is not JSON, as the model wrote it."""
        if not isinstance(arguments, str):
            return self.preview(arguments)
        return preview(wellformed(arguments), self.secrets.for_people, with_unquoted_names=True)

    def clean(self, failure: Exception) -> None:
        """Replace the text of an exception on its way out; of any but ours ``errors.reported`` shows no text."""
        if isinstance(failure, AgentError):
            failure.args = (self.error(str(failure)),)


def redacted_text(events: Iterable[Event], out: Outgoing) -> Iterator[Event]:
    """Redact the texts of a run; if it fails, what was held back comes before the failure."""
    text = _StreamedText(out.secrets)
    try:
        for event in events:
            match event:
                case ShownTogether(parts):
                    shown = tuple(redacted for part in parts for redacted in text.take(part))
                    yield from (ShownTogether(shown),) if shown else ()
                case Noted():  # may come amid a text, and is for the log only
                    yield event
                case Remark(remark):
                    yield Remark(out.secrets.for_people.text(remark))
                case AnswerText() | ThoughtText():
                    yield from text.take(event)
                case _:
                    yield from text.rest()
                    yield event
    except Exception:
        yield from text.rest()
        raise
    yield from text.rest()


@dataclass
class _StreamedText:
    """The text or thought that is under way."""

    secrets: KnownSecrets
    _kind: type[AnswerText | ThoughtText] = field(default=AnswerText, init=False)
    _held: str = field(default="", init=False)

    def take(self, part: Shown) -> Iterator[Shown]:
        """What is certain of the text so far; whatever is not its continuation ends it."""
        if not isinstance(part, self._kind):
            yield from self.rest()
        if not isinstance(part, AnswerText | ThoughtText):
            yield part
            return
        self._kind = type(part)
        certain, self._held = self.secrets.for_people.split(self._held + part.text)
        if certain:
            yield self._kind(certain)

    def rest(self) -> Iterator[Shown]:
        held, self._held = self._held, ""
        if held:
            yield self._kind(self.secrets.for_people.text(held))
