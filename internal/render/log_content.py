"""What a row of the log shows of a value: its beginning, without secrets and without values under a secret's name.

In: what a row would say, texts and JSON of any size. Out: JSON of at most MAX_PREVIEW_LENGTH characters for each value.
A name proves nothing, but the log hides one value too many rather than one too few; elsewhere names hide nothing. With
``LOG_CONTENT=off`` in the plugin's environment a row has nothing that a user, a model, a tool or a host said: numbers,
switches and names stay, so that a person still sees what happened.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from internal.host.failures import FailureKind, classify
from internal.host.wire import MAX_EXACT_INTEGER
from internal.report.tool_calls import ToolCall
from internal.text.notes import OurWords, Sentence
from internal.text.redaction import Redactor
from internal.text.secret_detection import REDACTED, looks_secret
from internal.tools.toolbox import Tool
from internal.tools.virtual_tools import RESERVED_NAMES

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
