"""What the user decided about the calls that wait.

In: the text of the parameter ``approval``. Out: a decision, which has a verdict for each call. It fails closed: only a
whole text that says nothing but yes, or JSON's ``true`` under a call's id, approves.

Texts come in here, because JSON can escape what a text must not hold: reasons are made well-formed.
"""

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from internal.text.wellformed import wellformed
from internal.tooling import refuse_constant
from prompt import template
from prompt.approval_words import APPROVAL_WORDS

MAX_REASON_LENGTH = 4_000
"""Characters of what the user said that stand in a call's result."""
_NOTHING = frozenset({"", "null", "None", "[]"})
"""What Dify writes for a variable without a value (docs/host-facts.md, "Values of parameters")."""
_MAX_WORDS_LENGTH = 200
"""Characters; a longer text is not compared with the list of words."""
_MAX_JSON_LENGTH = 1_000_000
_SEPARATORS = re.compile(r"[\s,、.!。~〜…]+")
"""White space, and punctuation that changes no meaning. A question mark does."""
_QUOTES = "\"'“”‘’„«»‹›「」『』"
_EMPHASIS = re.compile(r"(\*{1,3}|_{1,3})(?![*_\s])(.+)(?<![*_\s])\1")
"""Markdown around a whole text. Two tildes strike a text out: they never are around words that approve."""
_STRUCK_OUT = re.compile(rf"[\s{_QUOTES}*_]*[~〜]{{2}}")
_FENCED_JSON = re.compile(r"```json[ \t]*\r?\n(.*)\n[ \t]*```", re.DOTALL)


@dataclass(frozen=True)
class Verdict:
    """What the user decided about one call."""

    approved: bool
    reason: str = ""
    """What the user said to it, whole; "" where nothing was said."""


_NOT_APPROVED = Verdict(approved=False)


@dataclass(frozen=True)
class Approved:
    """Every call is approved."""

    def verdict(self, _call_id: str) -> Verdict:
        return Verdict(approved=True)


@dataclass(frozen=True)
class ByCall:
    """Each call has an answer of its own; a call without one is not approved."""

    answers: Mapping[str, Verdict]
    """By the call's id."""

    def verdict(self, call_id: str) -> Verdict:
        return self.answers.get(call_id, _NOT_APPROVED)


@dataclass(frozen=True)
class Rejected:
    """No call is approved; the user said this instead."""

    text: str
    """Without white space around it."""

    def verdict(self, _call_id: str) -> Verdict:
        return Verdict(approved=False, reason=self.text)


type Decision = Approved | ByCall | Rejected


def read_decision(approval: str) -> Decision | None:
    """Read the parameter; None if nothing was said."""
    text = approval.strip().removeprefix("\ufeff").strip()
    if text in _NOTHING:
        return None
    if len(text) <= _MAX_WORDS_LENGTH and _says_yes(text):
        return Approved()
    fenced = _FENCED_JSON.fullmatch(text)
    answers = _read_object(fenced[1].strip() if fenced else text)
    if answers is None:
        return Rejected(text)
    return ByCall({call_id: _read_answer(answer) for call_id, answer in answers.items()})


def not_approved_text(reason: str) -> str:
    """What the model reads as the result of a call that the user did not approve, for this reason or for none."""
    said = reason.strip()
    if len(said) > MAX_REASON_LENGTH:
        said = said[:MAX_REASON_LENGTH] + template.CHARACTERS_NOT_KEPT.format(count=len(said) - MAX_REASON_LENGTH)
    return template.NOT_APPROVED_BECAUSE.format(reason=said) if said else template.NOT_APPROVED


def _says_yes(text: str) -> bool:
    """Whether the whole text is one of the approving words; one of the signs may follow it, and emphasis be around."""
    folded = _folded(text)
    if _STRUCK_OUT.match(folded):
        return False
    emphasised = _EMPHASIS.fullmatch(folded.strip())
    words = _comparable(emphasised[2] if emphasised else folded)
    return words in _APPROVING or any(words.removesuffix(sign).rstrip() in _APPROVING for sign in _SIGNS)


def _folded(text: str) -> str:
    """The text without differences of width and case."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _comparable(folded: str) -> str:
    """The text without what makes no difference: punctuation between and after words, quotes around."""
    return _SEPARATORS.sub(" ", folded).strip(" " + _QUOTES)


_APPROVING = frozenset(_comparable(_folded(words)) for of_language in APPROVAL_WORDS.values() for words in of_language)
_SIGNS = tuple(_folded(sign) for sign in APPROVAL_WORDS["any"])


def _read_object(text: str) -> dict[str, object] | None:
    """The JSON object that the text is, else None; a name that stands twice has an empty list."""
    if not text.startswith("{") or len(text) > _MAX_JSON_LENGTH:
        return None
    try:
        value = json.loads(text, object_pairs_hook=_with_repeated_names, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _with_repeated_names(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A list is neither a boolean nor an object, so that a call with two answers is not approved."""
    values: dict[str, object] = {}
    for name, value in pairs:
        values[name] = [] if name in values else value
    return values


def _read_answer(answer: object) -> Verdict:
    """``true``, or an object with ``approved`` and perhaps a ``reason``; anything else does not approve."""
    if not isinstance(answer, dict):
        return Verdict(approved=answer is True)
    reason = answer.get("reason")
    is_understood = answer.keys() <= {"approved", "reason"} and isinstance(reason, str | None)
    return Verdict(
        approved=is_understood and answer.get("approved") is True,
        reason=wellformed(reason).strip() if isinstance(reason, str) else "",
    )
