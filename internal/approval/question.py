"""The question whether calls may run, as the user reads it: Markdown in which a person sees all, and nothing acts.

In: the calls that wait, and the query, whose script decides the language. Out: what the agent wants to do, and how to
answer. Values are code whose fence they cannot close and in which no character is invisible: what a person approves is
what a person sees. What could push the rest off the screen is shortened, with a count: long white space, the same
invisible character again and again, and marks that stack on one letter.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from internal.report.sentences import language_of
from internal.text.fairness import in_turns
from prompt import template

_INVISIBLE = re.compile(
    r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    r"\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3164"
    r"\ud800-\uf8ff\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001345f"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
    r"|(?<![\u2190-\u2bff\U0001f000-\U0001faff])\ufe0f"
)
"""Control and format characters, spaces but for the plain and the Japanese one, fillers, half surrogate pairs, private
use. U+FE0F stays behind a symbol, where it only asks for the coloured picture."""
_LOST_IN_A_LINE = re.compile(r"[\t\r\n]|\A | \Z|(?<= ) ")
"""Markdown and browsers take spaces away at the ends, and make one of several."""
_SHORT_ESCAPES = {"\t": r"\t", "\r": r"\r", "\n": r"\n"}
"""As in JSON and in Python, where redaction looks for secrets too."""
_MOST_BLANKS, _MOST_LINE_ENDS, _MOST_MARKS = 40, 4, 4
"""Side by side. Code is indented by less, and letters of all scripts have fewer marks."""
_BLANKS = re.compile(rf"\s{{{_MOST_LINE_ENDS + 1},}}")
_SAME = re.compile(rf"({_INVISIBLE.pattern})\1{{{_MOST_BLANKS},}}")
_MOST_IN_FOUR_DIGITS = 0xFFFF
_BACKTICKS = re.compile("`+")


def code(text: str) -> str:
    """The text as code: a block, which begins with a line end, if it has several lines, else a part of a line."""
    if "\n" not in text:
        return inline_code(text)
    shown = _INVISIBLE.sub(_escape, _shortened(text))
    fence = _fence(shown, 3)
    return f"\n\n{fence}\n{shown}\n{fence}\n"


def inline_code(text: str) -> str:
    """The text as code within a line; its line ends, tabs and second spaces are escapes too."""
    shown = _LOST_IN_A_LINE.sub(_escape, _INVISIBLE.sub(_escape, _shortened(text))) or '""'
    fence = _fence(shown, 1)
    # A backtick beside the fence would count as a part of it; Markdown takes these spaces away.
    padding = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{padding}{shown}{padding}{fence}"


def _shortened(text: str) -> str:
    text = _SAME.sub(lambda run: f"[{_escape(run)}×{len(run[0])}]", _BLANKS.sub(_short_blanks, text))
    return text if text.isascii() else "".join(_without_stacks(text))


def _short_blanks(run: re.Match[str]) -> str:
    """The count of long white space; one with line ends has a line of its own."""
    line_ends = run[0].count("\n")
    if len(run[0]) <= _MOST_BLANKS and line_ends <= _MOST_LINE_ENDS:
        return run[0]
    around = "\n" if line_ends else ""
    return f"{around}[␣×{len(run[0])}]{around}"


def _without_stacks(text: str) -> Iterator[str]:
    """The pieces of a text; of marks on one letter the first ones, and how many more there are."""
    for is_mark, run in groupby(text, key=lambda each: each > "\u02ff" and unicodedata.category(each) in {"Mn", "Me"}):
        piece = "".join(run)
        more = len(piece) - _MOST_MARKS if is_mark else 0
        yield f"{piece[:_MOST_MARKS]}[◌×{more}]" if more > 0 else piece


def _escape(found: re.Match[str]) -> str:
    """How a character is written out; of a run of the same one, its first."""
    character = found[0][0]
    number, short = ord(character), _SHORT_ESCAPES.get(character)
    return short or (f"\\u{number:04x}" if number <= _MOST_IN_FOUR_DIGITS else f"\\U{number:08x}")


def _fence(text: str, least: int) -> str:
    """More backticks than stand side by side in the text."""
    return "`" * max(least, 1 + max((len(run[0]) for run in _BACKTICKS.finditer(text)), default=0))


@dataclass(frozen=True)
class PendingCall:
    """A call that the user is asked about."""

    id: str
    """As ``identity.call_id`` makes it; the user may answer by it."""
    tool: str
    arguments: Mapping[str, Any]
    subtask: str | None = None
    """The subtask of a plan that it belongs to."""

    def as_variable(self) -> dict[str, Any]:
        """One item of the variable ``pending_calls``."""
        item = {"id": self.id, "tool": self.tool, "arguments": dict(self.arguments)}
        return item if self.subtask is None else {**item, "subtask": self.subtask}


def approval_question(calls: Sequence[PendingCall], query: str) -> str:
    """Ask for approval of these calls, at least one; how to answer in a chat is said by ``how_to_answer``."""
    language = language_of(query)
    request = template.APPROVAL_REQUEST_FOR_SEVERAL[language].format(count=len(calls))
    request = template.APPROVAL_REQUEST[language] if len(calls) == 1 else request
    shown = ["\n".join(_lines(call, language, is_alone=len(calls) == 1)).rstrip("\n") for call in in_turns(calls)]
    return "\n\n".join([request, *shown])


def how_to_answer(calls: Sequence[PendingCall], query: str) -> str:
    """The last line of the question in a chat; a form has buttons instead."""
    language = language_of(query)
    if len(calls) == 1:
        return template.HOW_TO_APPROVE[language]
    return template.HOW_TO_APPROVE_SEVERAL[language] + inline_code(_example(calls))


def _lines(call: PendingCall, language: str, *, is_alone: bool) -> Iterator[str]:
    name = f"**{inline_code(call.tool)}**"
    yield f"{name}\n" if is_alone else f"{name} ({inline_code(call.id)})\n"
    if call.subtask is not None:
        yield f"{template.SUBTASK_OF_CALL[language]}{inline_code(call.subtask)}\n"
    if not call.arguments:
        yield template.WITHOUT_ARGUMENTS[language]
    for argument, value in in_turns(call.arguments.items()):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        shown = code(text)
        yield f"- {inline_code(argument)}:{'' if shown.startswith('\n') else ' '}{shown}"


def _example(calls: Sequence[PendingCall]) -> str:
    """An answer call by call to the first two, approving one."""
    first, second = (call.id for call in calls[:2])
    return json.dumps({first: True, second: {"approved": False, "reason": "…"}}, ensure_ascii=False)
