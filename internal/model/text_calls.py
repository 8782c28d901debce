"""Calls that a model writes as text because it cannot make them natively (docs/text-calls.md).

A call is a fenced block with the info string ``tool_call`` at the end of a turn. The block contains an object with a
name and arguments.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from internal.call import MAX_CALL_NAME, MAX_CALLS, ToolCall, portable_id
from internal.clock import in_turns
from internal.text.texts import Pieces, has_lone_surrogate, without_escaped_nul
from internal.text.thoughts import fence_after
from internal.tooling import refuse_constant
from prompt import template

_BLANKS = r"[ \t]{0,50}"
_OPENING = re.compile(rf" {{0,3}}(?P<run>`{{3,50}}|~{{3,50}}){_BLANKS}{template.CALL_FENCE}{_BLANKS}", re.IGNORECASE)
_MAY_OPEN = re.compile(rf" {{0,3}}(?:(?:`{{1,50}}|~{{1,50}}){_BLANKS}\w{{0,20}}{_BLANKS})?")
"""The beginning of a line that may become the opening of a call."""
_MAX_BEGUN = 200
"""Number of characters of a line that are checked for a code fence."""
_NAME = re.compile(r'"name"\s*:\s*"(?P<name>[^"\\]{1,200})"')


@dataclass
class TextCalls:
    """Splits the visible text of one turn, while it streams, into its calls and the text before them.

    A block within another code block is a quotation and not a call. Text after the first call is not shown.
    """

    has_left_out: bool = field(default=False, init=False)
    """Whether the turn had more calls than the limit allows."""
    _block: Pieces = field(default_factory=Pieces, init=False)
    """The text from the first call on."""
    _line: str = field(default="", init=False)
    """The beginning of a line that may still open a call."""
    _begun: str = field(default="", init=False)
    """The part of the current line that was shown."""
    _fence: str = field(default="", init=False)
    """The fence of the open code block; "" outside of one."""

    @property
    def block(self) -> str:
        """The text from the first call on; "" if there is no call yet."""
        return str(self._block)

    @property
    def has_begun(self) -> bool:
        """Whether there is a call."""
        return bool(self._block)

    def take_back(self) -> str:
        """Remove and return the text that is not shown, after all text so far turned out to be a thought."""
        taken = self._block.taken() + self._line
        self._line = ""
        self._begun = ""
        self._fence = ""
        return taken

    def feed(self, text: str) -> str:
        """Process the next piece of text, and return the part that can now be shown."""
        if self._block:
            self._block.append(text)
            return ""
        *lines, rest = (self._line + text).split("\n")
        shown: list[str] = []
        for number, line in enumerate(lines):
            if self._opens(line):
                self._block.append("\n".join([*lines[number:], rest]))
                self._line = ""
                return "".join(shown)
            shown.append(f"{line}\n")
            self._fence = fence_after(self._begun + line, self._fence)
            self._begun = ""
        return "".join([*shown, self._settled(rest)])

    def finish(self) -> str:
        """Process the end of the text, and return the rest to show."""
        rest = self._line
        self._line = ""
        if self._block or not self._opens(rest):
            return rest
        self._block.append(rest)
        return ""

    def _settled(self, rest: str) -> str:
        """Return the part of the last line that can no longer become the opening of a call."""
        if not self._begun and not self._fence and _MAY_OPEN.fullmatch(rest):
            self._line = rest
            return ""
        self._line = ""
        self._begun = (self._begun + rest)[:_MAX_BEGUN]
        return rest

    def _opens(self, line: str) -> bool:
        return not self._fence and not self._begun and _OPENING.fullmatch(line) is not None

    def calls(self, fallback_id: str) -> tuple[ToolCall, ...]:
        """Return the calls, in their order."""
        written = list(islice(_blocks(self.block), MAX_CALLS + 1))
        self.has_left_out = len(written) > MAX_CALLS
        return tuple(
            _call(each, portable_id(f"{fallback_id}_{number}"))
            for number, each in enumerate(in_turns(written[:MAX_CALLS]), start=1)
        )


def _blocks(text: str) -> Iterator[str]:
    """Yield the content of each block. The last block may lack its end."""
    inside: list[str] | None = None
    fence = ""
    for line in in_turns(text.split("\n")):
        if inside is None:
            opening = _OPENING.fullmatch(line)
            if opening:
                fence = opening["run"]
                inside = []
        elif fence_after(line, fence) == "":
            yield "\n".join(inside)
            inside = None
        else:
            inside.append(line)
    if inside is not None:
        yield "\n".join(inside)


def _call(written: str, call_id: str) -> ToolCall:
    """Return the call in a block. If the block is not such an object, its text becomes the (invalid) arguments."""
    kept = without_escaped_nul(written)
    had_nul = kept != written
    try:
        value = json.loads(kept, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and _is_name(value.get("name")):
        return ToolCall(call_id, value["name"][:MAX_CALL_NAME], _arguments(value.get("arguments")), had_nul)
    named = _NAME.search(kept)
    name = ""
    if named:
        name = named["name"]
    return ToolCall(call_id, name, kept.strip() or "{}", had_nul)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and not has_lone_surrogate(value)


def _arguments(value: object) -> str:
    """Return the arguments as JSON text. The given value may already be text. Missing arguments are an empty object."""
    if value is None:
        return "{}"
    if isinstance(value, str):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=has_lone_surrogate(text))
