"""A user's approval of tool calls: the question, the id of a waiting call, and the user's decision."""

import hashlib
import html
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from dify_plugin.file.file import File

from internal.call import WaitingCall, canonical_json
from internal.node.tools import Tool
from internal.text.language import language_of
from internal.text.texts import cut_to_size, wellformed
from internal.tooling import MAX_ARGUMENTS_LENGTH, refuse_constant
from prompt import template, user_texts
from prompt.approval_words import APPROVAL_WORDS

# The user's decision about the waiting calls. Only a text that means nothing but yes, or JSON's ``true`` under the
# call's id, approves a call.

MAX_REASON_LENGTH = 4_000
"""Maximum characters of the user's text that a call's result quotes."""
_NOTHING = frozenset({"", "null", "None", "[]"})
"""Texts that Dify writes for a variable without a value (docs/host-facts.md, "Values of parameters")."""
_MAX_WORDS_LENGTH = 200
"""Maximum characters of a text that is compared with the list of words."""
_SEPARATORS = re.compile(r"[\s,、.!。]+")
"""White space, and punctuation that does not change the meaning. A question mark changes it, and so does a tilde, which
stretches a word or strikes it out."""
_HESITATES = re.compile(r"[,、.。]\s*[,、.。]")
"""Several dots or commas in a row. An ellipsis has already become three dots."""
_QUOTES = "\"'“”‘’„«»‹›「」『』"
_EMPHASIS = re.compile(r"(\*{1,3}|_{1,3})(?![*_\s])(.+)(?<![*_\s])\1")
"""Markdown emphasis around a whole text."""
_FENCED_JSON = re.compile(r"```json[ \t]*\r?\n(.*)\n[ \t]*```", re.DOTALL)


@dataclass(frozen=True)
class Verdict:
    """The user's decision about one call, and the reason that was given."""

    approved: bool
    reason: str = ""


@dataclass(frozen=True)
class Decision:
    """The user's answers to individual calls, by their ids, and one answer to all other calls."""

    others: Verdict
    answers: Mapping[str, Verdict] = field(default_factory=dict)

    def verdict(self, call_id: str) -> Verdict:
        return self.answers.get(call_id, self.others)


def read_decision(approval: str) -> Decision | None:
    """Parse the ``approval`` parameter; None if it is empty."""
    text = approval.strip().removeprefix("\ufeff").strip()
    if text in _NOTHING:
        return None
    if len(text) <= _MAX_WORDS_LENGTH and _says_yes(text):
        return Decision(Verdict(approved=True))
    fenced = _FENCED_JSON.fullmatch(text)
    answers = _read_object(fenced[1].strip() if fenced else text)
    if answers is None:
        return Decision(Verdict(approved=False, reason=text))
    by_call = {call_id: _read_answer(answer) for call_id, answer in answers.items()}
    return Decision(Verdict(approved=False), by_call)


def not_approved_text(reason: str) -> str:
    """Return the result of a call that the user did not approve, with the reason if there is one."""
    said = cut_to_size(reason.strip(), MAX_REASON_LENGTH, note=template.CHARACTERS_NOT_KEPT.format)
    if said:
        return template.NOT_APPROVED_BECAUSE.format(reason=said)
    return template.NOT_APPROVED


def _says_yes(text: str) -> bool:
    """Return whether the whole text is an approving word, possibly emphasized or with a sign after it."""
    folded = _folded(text)
    if _HESITATES.search(folded):
        return False
    emphasised = _EMPHASIS.fullmatch(folded.strip())
    words = _comparable(emphasised[2] if emphasised else folded)
    return words in _APPROVING or any(words.removesuffix(sign).rstrip() in _APPROVING for sign in _SIGNS)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _comparable(folded: str) -> str:
    """Return the text without irrelevant differences: punctuation between and after words, and quotes around it."""
    return _SEPARATORS.sub(" ", folded).strip(" " + _QUOTES)


_APPROVING = frozenset(_comparable(_folded(words)) for of_language in APPROVAL_WORDS.values() for words in of_language)
_SIGNS = tuple(_folded(sign) for sign in APPROVAL_WORDS["any"])


def _read_object(text: str) -> dict[str, object] | None:
    """Return the JSON object in the text, or None. A name that occurs twice gets an empty list as its value."""
    if not text.startswith("{") or len(text) > MAX_ARGUMENTS_LENGTH:
        return None
    try:
        value = json.loads(text, object_pairs_hook=_with_repeated_names, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        return value
    return None


def _with_repeated_names(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the object, with [] for repeated names: it is neither a boolean nor an object, so it approves nothing."""
    values: dict[str, object] = {}
    for name, value in pairs:
        if name in values:
            values[name] = []
        else:
            values[name] = value
    return values


def _read_answer(answer: object) -> Verdict:
    """Parse ``true`` or an object with ``approved`` and an optional ``reason``. Anything else does not approve."""
    if not isinstance(answer, dict):
        return Verdict(approved=answer is True)
    reason = answer.get("reason")
    is_understood = answer.keys() <= {"approved", "reason"} and isinstance(reason, str | None)
    said = ""
    if isinstance(reason, str):
        said = wellformed(reason).strip()
    return Verdict(approved=is_understood and answer.get("approved") is True, reason=said)


# The id of a waiting call is a number and a digest of everything that the user approves: the tool with its setting in
# the node, the checked arguments, and the files that they name. The digest guards against damage, mistakes and changes
# of the node, but not against forgery, because it needs no secret.

_SIGNATURE = frozenset({"timestamp", "nonce", "sign"})
"""Query parameters with which Dify signs the address of a file, and which do not identify the file."""


def call_id(number: int, tool: Tool, arguments: Mapping[str, Any], files: Mapping[str, File]) -> str:
    """Return the id of a waiting call. ``number`` counts the waiting calls of a conversation and makes ids unique."""
    return f"call_{number}_{_digest(tool, arguments, files)}"


def is_same_call(identifier: str, tool: Tool, arguments: Mapping[str, Any], files: Mapping[str, File]) -> bool:
    """Return whether the id belongs to this tool with these arguments and files, whatever its number."""
    return re.fullmatch(rf"call_[0-9]+_{_digest(tool, arguments, files)}", identifier) is not None


def _digest(tool: Tool, arguments: Mapping[str, Any], files: Mapping[str, File]) -> str:
    named = [_file_identity(files[name]) for name in tool.files_in(arguments) if name in files]
    canonical = canonical_json([tool.provider, tool.own_name, tool.setting, arguments, named])
    # Arguments may come from a state, so a lone surrogate in them must not raise an error.
    return hashlib.sha256(canonical.encode(errors="surrogatepass")).hexdigest()[:8]


def _file_identity(file: File) -> list[object]:
    """Return the values that identify a file: its address, which contains Dify's id, and its size."""
    try:
        address = urlsplit(file.url)
    except ValueError:
        return [file.url, file.size]
    query = [pair for pair in parse_qsl(address.query, keep_blank_values=True) if pair[0] not in _SIGNATURE]
    return [address.scheme, address.netloc, address.path, query, file.size]


# The question whether calls may run, as Markdown in which everything is visible and nothing is active. Values are code
# blocks that they cannot close and in which every character is visible. Text that could push the rest off the screen is
# shortened, with a count: long white space, repeated invisible characters, and marks that stack on one letter.

_INVISIBLE = re.compile(
    r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    r"\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3164"
    r"\ud800-\uf8ff\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffc\U000110bd\U000110cd\U00013430-\U0001345f"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff"
    r"\u2d7f\U0001107f\U00011a47\U00011a99\U00016fe4\U0001bc9d\U0001d159]"
    r"|(?<![\u2190-\u2bff\U0001f000-\U0001faff])\ufe0f"
)
"""Control and format characters, spaces except for the plain and the Japanese one, fillers, lone surrogates,
private use, and invisible signs of rare scripts (the last line in brackets). U+FE0F is kept after a symbol, where it
only selects the colored picture."""
_LOST_IN_A_LINE = re.compile(r"[\t\r\n]|\A | \Z|(?<= ) ")
"""White space that Markdown and browsers remove at the ends of a line, or collapse."""
_SHORT_ESCAPES = {"\t": r"\t", "\r": r"\r", "\n": r"\n"}
"""Escapes as in JSON and Python, so that redaction still finds secrets."""
_MOST_BLANKS = 40
_MOST_LINE_ENDS = 4
_MOST_MARKS = 4
"""Maximum numbers of consecutive blanks, line ends, and marks. Code is indented by less, and letters of all scripts
have fewer marks."""
_BLANKS = re.compile(rf"\s{{{_MOST_LINE_ENDS + 1},}}")
_SAME = re.compile(rf"({_INVISIBLE.pattern})\1{{{_MOST_BLANKS},}}")


def code(text: str) -> str:
    """Return the text as code: a block that begins with a line end if it has several lines, or else inline code."""
    if "\n" not in text:
        return inline_code(text)
    shown = _INVISIBLE.sub(_escape, _shortened(text))
    fence = _fence(shown, 3)
    return f"\n\n{fence}\n{shown}\n{fence}\n"


def inline_code(text: str) -> str:
    """Return the text as inline code, with escapes for line ends, tabs and repeated spaces."""
    shown = _LOST_IN_A_LINE.sub(_escape, _INVISIBLE.sub(_escape, _shortened(text))) or '""'
    fence = _fence(shown, 1)
    # A backtick next to the fence would count as a part of it. Markdown removes the spaces of the padding.
    padding = ""
    if shown.startswith("`") or shown.endswith("`"):
        padding = " "
    return f"{fence}{padding}{shown}{padding}{fence}"


def _shortened(text: str) -> str:
    text = _SAME.sub(lambda run: f"[{_escape(run)}×{len(run[0])}]", _BLANKS.sub(_short_blanks, text))
    if text.isascii():
        return text
    return "".join(_without_stacks(text))


def _short_blanks(run: re.Match[str]) -> str:
    """Return a note with the length of long white space, on its own line if the white space has line ends."""
    line_ends = run[0].count("\n")
    if len(run[0]) <= _MOST_BLANKS and line_ends <= _MOST_LINE_ENDS:
        return run[0]
    around = ""
    if line_ends:
        around = "\n"
    return f"{around}[␣×{len(run[0])}]{around}"


def _without_stacks(text: str) -> Iterator[str]:
    """Yield the pieces of a text, with only the first marks on each letter, and the number of the others."""
    for is_mark, run in groupby(text, key=lambda each: each > "\u02ff" and unicodedata.category(each) in {"Mn", "Me"}):
        piece = "".join(run)
        more = 0
        if is_mark:
            more = len(piece) - _MOST_MARKS
        yield f"{piece[:_MOST_MARKS]}[◌×{more}]" if more > 0 else piece


def _escape(found: re.Match[str]) -> str:
    """Return the escape of a character. A run of the same character gets a single escape."""
    character = found[0][0]
    number = ord(character)
    short = _SHORT_ESCAPES.get(character)
    return short or (f"\\u{number:04x}" if character <= "\uffff" else f"\\U{number:08x}")


def _fence(text: str, least: int) -> str:
    """Return a fence with more backticks than any run of backticks in the text."""
    return "`" * max(least, 1 + max(map(len, re.findall("`+", text)), default=0))


# The model's text may imitate a question, and show a harmless call right before the real one.

_HEADINGS = [
    (max(heading[language].split("{count}"), key=len), user_texts.NOT_THE_QUESTION[language])
    for heading in (user_texts.APPROVAL_REQUEST, user_texts.APPROVAL_REQUEST_FOR_SEVERAL)
    for language in heading
]
"""The longest constant part of each heading, and the remark that is written after an imitation."""
_READ_AS_ONE = re.compile(r"&#?\w{1,32};|\]\([^()\s]{0,200}\)|.", re.DOTALL)
"""An HTML character reference, the address of a link, or a single character."""
_NO_LETTERS = re.compile(r"[\W_]+")
_ALIKE = {
    "a": "\u0430\u0251\u03b1",
    "b": "\u044c",
    "d": "\u0501",
    "e": "\u0435\u03b5",
    "h": "\u04bb",
    "i": "\u0456\u0131\u03b9\u04cfl1|",
    "n": "\u0578\u043f",
    "o": "\u03bf\u043e0",
    "p": "\u0440\u03c1",
    "r": "\u0433",
    "s": "\u0455",
    "t": "\u0442\u03c4",
    "u": "\u03c5\u0446",
    "v": "\u0475\u03bd",
    "y": "\u0443\u03b3",
}
"""Characters that look like a letter of the English heading, by that letter: Cyrillic, Greek and Armenian letters, and
digits."""
_LOOKS_LIKE = {ord(other): letter for letter, others in _ALIKE.items() for other in others}
_WINDOW = 500
"""Maximum characters over which a heading may be spread."""


class ImitationGuard:
    """Marks imitations of a question's heading in a model's text that arrives in pieces."""

    def __init__(self) -> None:
        self._before = ""  # the end of the previous text, in which a heading may have begun

    def marked(self, text: str) -> str:
        """Return the piece with a remark after each imitation of a heading."""
        window = self._before + text
        start = len(self._before)
        written = list[str]()
        self._before = window[-_WINDOW:]
        if not _may_have_heading(window):
            return text
        for end, remark in sorted(_ends_of_headings(window)):
            if end > start:
                written += [window[start:end], remark]
                start = end
                self._before = window[start:][-_WINDOW:]
        return "".join([*written, window[start:]])


def _letters(text: str) -> str:
    """Return the letters of a text as a reader sees them, without differences of marks, width, case and look-alikes."""
    return _NO_LETTERS.sub("", unicodedata.normalize("NFKD", text).casefold().translate(_LOOKS_LIKE))


_SOUGHT = [(_letters(heading), f" {remark}") for heading, remark in _HEADINGS]


def _read(token: str) -> str:
    """Return the visible letters of a token."""
    if token.startswith("]("):
        return ""
    return _letters(html.unescape(token))


def _may_have_heading(text: str) -> bool:
    seen = _letters(text)
    if "&" in text or "](" in text:
        seen = "".join(map(_read, _READ_AS_ONE.findall(text)))
    return any(sought in seen for sought, _ in _SOUGHT)


def _ends_of_headings(text: str) -> Iterator[tuple[int, str]]:
    """Yield the positions where headings in a text end, and the remarks to insert there."""
    letters = list[str]()
    ends = list[int]()
    for token in _READ_AS_ONE.finditer(text):
        read = _read(token[0])
        letters += read
        ends += [token.end()] * len(read)
    seen = "".join(letters)
    for sought, remark in _SOUGHT:
        at = seen.find(sought)
        while at >= 0:
            yield ends[at + len(sought) - 1], remark
            at = seen.find(sought, at + len(sought))


def said_besides(text: str) -> str:
    """Return the text of the turn with the waiting calls, as a quotation after the question."""
    said = ImitationGuard().marked(text.strip())
    return re.sub(r"\A(?!\Z)|\r\n?|\n", r"\g<0>> ", said)


def approval_question(calls: Sequence[WaitingCall], query: str) -> str:
    """Return the question for approval of these calls, of which there is at least one.

    ``how_to_answer`` explains how to answer it in a chat.
    """
    language = language_of(query)
    is_alone = len(calls) == 1
    request = user_texts.APPROVAL_REQUEST_FOR_SEVERAL
    if is_alone:
        request = user_texts.APPROVAL_REQUEST
    shown = ["\n".join(_lines(call, language, is_alone=is_alone)).rstrip("\n") for call in calls]
    return "\n\n".join([request[language].format(count=len(calls)), *shown])


def how_to_answer(calls: Sequence[WaitingCall], query: str) -> str:
    """Return the last line of the question in a chat. A form has buttons instead."""
    language = language_of(query)
    if len(calls) == 1:
        return user_texts.HOW_TO_APPROVE[language]
    example = {calls[0].id: True, calls[1].id: {"approved": False, "reason": "…"}}
    return user_texts.HOW_TO_APPROVE_SEVERAL[language] + inline_code(json.dumps(example, ensure_ascii=False))


def _lines(call: WaitingCall, language: str, *, is_alone: bool) -> Iterator[str]:
    name = f"**{inline_code(call.tool.name)}**"
    yield f"{name}\n" if is_alone else f"{name} ({inline_code(call.id)})\n"
    if call.subtask is not None:
        yield f"{user_texts.SUBTASK_OF_CALL[language]}{inline_code(call.subtask)}\n"
    if not call.valid.arguments:
        yield user_texts.WITHOUT_ARGUMENTS[language]
    for argument, value in call.valid.arguments.items():
        about = ""
        given = value
        if reference := call.valid.references.get(argument):
            given = reference.shown
            results = [
                user_texts.REFERENCE_OF_CALL[language].format(
                    reference=inline_code(each), tool=inline_code(tool), length=f"{length:,}"
                )
                for each, tool, length in reference.results
            ]
            about = f" ({'; '.join(results)})"
        shown = code(given if isinstance(given, str) else json.dumps(given, ensure_ascii=False))
        if given == "":  # the text '""' would look the same as code
            shown = user_texts.EMPTY_TEXT[language]
        yield f"- {inline_code(argument)}{about}:{'' if shown.startswith('\n') else ' '}{shown}"
