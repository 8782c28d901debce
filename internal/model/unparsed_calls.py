"""Calls that a model writes as text, in the markup of its template, because its server does not parse them.

Such calls never run. docs/text-calls.md, "Calls that a server does not parse", says what counts as a call.
"""

import re
from collections.abc import Container
from dataclasses import dataclass, field

from internal.text.thoughts import begun, fence_after
from prompt.call_markup import BEFORE_NAME, CLOSING_TAGS, NAME_KEYS

_OPENING = re.compile("|".join(map(re.escape, CLOSING_TAGS)))
_MAY_OPEN = re.compile(rf"(?:{'|'.join(map(begun, CLOSING_TAGS))})\Z")
_LONGEST_TAG = max(map(len, CLOSING_TAGS))
_NAME = rf'["\[]?(?:{BEFORE_NAME})?+(?P<name>[\w.-]{{1,80}}?)(?:\.call)?(?![\w.-]|\Z)'
_BEGINS_CALL = re.compile(rf"\s{{0,50}}(?:[\[{{<]|function<|{_NAME})")
_MAY_BEGIN_CALL = re.compile(r'\s{0,50}"?[\w.:-]{0,100}\Z')
_MAX_UNSETTLED = 200
"""Number of characters after an opening that decide whether a call may begin there."""
_NAMED = re.compile(rf"(?:{NAME_KEYS}|{_OPENING.pattern})\s*{_NAME}")
_CLOSING = rf"(?:{'|'.join(map(re.escape, set(CLOSING_TAGS.values())))})"
_PROSE_BEHIND = re.compile(rf"[\]}})>\n]\s{{0,50}}{_CLOSING}\s{{0,50}}(?!{_CLOSING}|[\s,;\[\]{{<]|\Z)")
_END = re.compile(rf"""(?:[\]}}>]|["'\d]\)|{_CLOSING})\s*\Z""")
_MAX_LINE = 200
"""Number of characters of a line that are checked for a code fence."""


@dataclass
class UnparsedCalls:
    """Splits the visible text of one turn, while it streams, into shown text and calls at the end.

    Markup in a code block, before prose, or for a tool that is not offered is a part of the answer.
    """

    tools: Container[str] = ()
    """Names of the tools that are offered."""
    is_cut: bool = False
    """Whether the turn was cut, so that a call may lack its end."""
    block: str = field(default="", init=False)
    """The text of the calls; "" before the end of the turn, or if there are none."""
    has_begun: bool = field(default=False, init=False)
    """Whether calls have begun, which is known only at the end of the turn."""
    _held: list[str] = field(default_factory=list, init=False)
    """The pieces of text that are not shown yet, from the first possible opening of a call."""
    _line: str = field(default="", init=False)
    """The beginning of the last line that was shown."""
    _fence: str = field(default="", init=False)
    """The fence of the open code block; "" outside of one."""

    def take_back(self) -> str:
        """Remove and return the text that is not shown, after all text so far turned out to be a thought."""
        taken = "".join(self._held)
        self._held = []
        self._line = ""
        self._fence = ""
        return taken

    def feed(self, text: str) -> str:
        """Process the next piece of text, and return the part that can now be shown."""
        self._held.append(text)
        if len(self._held[0]) > _MAX_UNSETTLED and len(self._held) > 1:
            return ""
        text = "".join(self._held)
        start = self._opening(text)
        self._held = [text[start:]]
        return text[:start]

    def finish(self) -> str:
        """Process the end of the text, and return the rest to show."""
        text = "".join(self._held)
        after = max((prose.end() for prose in _PROSE_BEHIND.finditer(text)), default=0)
        start = self._opening(text, after)
        names = [found["name"] for found in _NAMED.finditer(text, start)]
        is_named = any(name in self.tools for name in names) or (self.is_cut and not names)
        if is_named and _OPENING.match(text, start) and (self.is_cut or _END.search(text, start)):
            self.block = text[start:]
        return text.removesuffix(self.block)

    def _opening(self, text: str, after: int = 0) -> int:
        """Return the position where a call may begin, or the end of the text. The text before it is shown."""
        at = 0
        for opening in _OPENING.finditer(text):
            is_quoted = self._is_code_behind(text[at : opening.start()])
            at = opening.start()
            if at >= after and not is_quoted and self._may_begin(text, opening.end()):
                return at
        tag = _MAY_OPEN.search(text, max(at, len(text) - _LONGEST_TAG))
        end = len(text)
        if tag:
            end = tag.start()
        self._is_code_behind(text[at:end])
        return end

    def _may_begin(self, text: str, at: int) -> bool:
        """Return whether the text after an opening is, or may become, the beginning of a call of an offered tool."""
        if found := _BEGINS_CALL.match(text, at):
            return found["name"] is None or found["name"] in self.tools
        return _MAY_BEGIN_CALL.match(text, at) is not None

    def _is_code_behind(self, shown: str) -> bool:
        """Record shown text, and return whether the text after it is in a code block."""
        *lines, rest = (self._line + shown).split("\n")
        for line in lines:
            self._fence = fence_after(line, self._fence)
        self._line = rest[:_MAX_LINE]
        return bool(self._fence or fence_after(self._line, ""))
