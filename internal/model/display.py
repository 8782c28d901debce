"""Shows a turn while it streams. Text is held back until it is clearly the answer and not a remark before calls."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from internal.clock import in_turns
from internal.events import AnswerBreak, AnswerText, Shown, ThoughtText
from internal.flow import should_emit_response_text
from internal.memory.approval import ImitationGuard
from internal.model.text_calls import TextCalls
from internal.model.unparsed_calls import UnparsedCalls
from internal.text.texts import Pieces
from internal.text.thoughts import (
    MAX_STEP_LENGTH,
    OPENS_A_BLOCK,
    Piece,
    PieceKind,
    PlainThoughts,
    ThoughtSplitter,
    without_was_thought,
)

PLAINLY_AN_ANSWER = 240
"""Minimum letters of a text that is long enough to be the answer. The policy asks for remarks of one sentence, which
are shorter."""
_LETTERS_OF_A_WIDE_ONE = 4
"""Number of letters that a Chinese, Japanese or Korean character counts as, because it carries as much meaning and a
model takes as long to write it."""
_WIDE = r"[\u1100-\u11ff\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
_BEGINS_A_BLOCK = re.compile(r"^ {0,3}(?:#{1,6} |\||```|~~~)", re.MULTILINE)
"""The beginning of a heading, a table or a code fence. Lists are not included, because some remarks begin with one
(docs/model-facts.md, "Text before tool calls")."""

type CallReader = TextCalls | UnparsedCalls
"""Finds the calls that a model writes as text, on purpose or by mistake."""


@dataclass(frozen=True)
class DisplayRule:
    """The rules for showing a turn, and its position among the rounds of its loop."""

    show_thoughts: bool
    step: int
    """The number of the tool round that the turn may become, from 1; ``last_step`` if its calls do not run."""
    last_step: int
    """The number of the closing answer."""
    text_is_answer: bool = True
    """False if the answer must be a call: text is then never the answer."""
    is_seen: bool = True
    """False if the user does not see the model's text, as in a subtask."""
    holds_answer: bool = False
    """Whether an answer is judged before it is shown. An answer that was cut is always shown."""
    may_ask: bool = False
    """Whether a call of the turn may lead to a question for approval. Until the text is known to be the answer, nothing
    is shown that could hide the question."""
    may_bring: bool = False
    """Whether the result of a call may itself be the answer, so that text is shown only after the turn is known to have
    no such call."""

    ends_at_unparsed: bool = False
    """Whether a call that is written as text ends the run. The text before it is then the answer."""

    @property
    def may_call_tools(self) -> bool:
        """Whether calls are possible. Without tools and in the closing answer, text is never a remark before calls."""
        return self.step < self.last_step


class TurnDisplay:
    """Shows one turn. Pass chunks of raw text to ``feed``, then call ``finish`` once."""

    def __init__(self, rule: DisplayRule, calls: CallReader | None = None, tags: tuple[str, ...] = ()) -> None:
        """Create the display. ``calls`` finds calls in the text, which are not shown. ``tags`` enclose thoughts."""
        self._rule = rule
        self._text_calls = calls
        self._splitter = ThoughtSplitter(tags)
        self._text_trimmer = Trimmer()
        self._thought_trimmer = Trimmer()
        self._plain = PlainThoughts()
        if rule.text_is_answer:
            self._is_answer = None if rule.may_call_tools else True
        else:
            self._is_answer = False
        """Whether the visible text is shown as it arrives. None means that it may still be a remark and is held
        back."""
        self._shown = Pieces()
        """The visible text that was shown."""
        self._held = Pieces()
        """The visible text that is held back."""
        self._thoughts = Pieces()
        self._guard: ImitationGuard | None = None
        if rule.may_ask:
            self._guard = ImitationGuard()
        self._may_hide = rule.may_ask and rule.may_call_tools
        """Whether a question may follow the text, which could hide it."""
        self._holds_answer = rule.holds_answer or (rule.may_bring and rule.may_call_tools)
        self._has_opened = False
        """Whether the held-back text may open a block that hides the text after it."""

    @property
    def text(self) -> str:
        """The visible text so far, shown or held back."""
        return f"{self._shown}{self._held}"

    @property
    def held_back(self) -> str:
        """The visible text that the user should see and has not seen yet."""
        if not self._rule.is_seen:
            return ""
        return str(self._held)

    @property
    def thought(self) -> str:
        return str(self._thoughts)

    @property
    def is_answering(self) -> bool:
        """Whether the answer has begun: its text has been shown, or would have been."""
        return bool(self._is_answer and (self._shown or (self._holds_some and self._held)))

    @property
    def has_shown(self) -> bool:
        """Whether anything of this turn was shown."""
        return bool(self._shown) or (self._rule.show_thoughts and bool(self._thoughts))

    @property
    def _holds_some(self) -> bool:
        """Whether an answer's text may have to wait for the end of the turn."""
        return self._holds_answer or self._may_hide

    def expect_calls(self) -> None:
        """Record that calls have arrived, so that held-back text counts as a remark before them."""
        if self._is_answer is None or (self._holds_some and not self._shown):
            self._is_answer = False

    def feed(self, text: str) -> Iterator[Shown]:
        """Process the next piece of the turn's text, and show as much as possible."""
        yield from self._show(self._splitter.feed(text))

    def finish(self, *, has_tool_calls: bool, is_cut: bool = False, is_judged: bool = True) -> Iterator[Shown]:
        """Show the rest, now that the turn is over.

        If a turn was cut off, its calls never run, so its text is not a remark that introduces them. An answer that is
        held back is shown only if ``is_judged`` says that there will be no judgement.
        """
        yield from self._show(self._splitter.finish(calls_follow=has_tool_calls, is_cut=is_cut))
        if self._text_calls:
            yield from self._show_text(self._text_calls.finish())
            has_tool_calls = has_tool_calls or bool(self._text_calls.block)
        rule = self._rule
        if rule.ends_at_unparsed and isinstance(self._text_calls, UnparsedCalls) and self._text_calls.block:
            has_tool_calls = False
            is_judged = False
        is_answer = rule.text_is_answer and should_emit_response_text(
            has_tool_calls=has_tool_calls and not is_cut,
            iteration_step=rule.step,
            max_iteration_steps=rule.last_step,
            emit_intermediate_thoughts=False,
        )
        if is_answer and not (rule.holds_answer and is_judged):
            yield from self._show_as_answer(self._take_held())
        elif not is_answer and rule.show_thoughts and (text := self._take_held()):
            self._shown.append(text)
            remark = text.lstrip()  # the beginning may already be visible
            yield from _steps(ThoughtText, f"\n{remark}" if self._thoughts else remark)

    def _show(self, pieces: list[Piece]) -> Iterator[Shown]:
        """Show pieces that arrived together, and hold back those whose kind is not known yet."""
        if not self._shown and any(piece.kind is PieceKind.WAS_THOUGHT for piece in pieces):
            pieces = without_was_thought([Piece(PieceKind.TEXT, self._take_back()), *pieces])
        for piece in in_turns(pieces):
            match piece.kind:
                case PieceKind.THOUGHT:
                    if text := self._thought_trimmer.feed(self._plain.feed(piece.text)):
                        self._thoughts.append(text)
                        yield from _steps(ThoughtText, text) if self._rule.show_thoughts else ()
                case PieceKind.TEXT:
                    yield from self._show_text(self._without_calls(piece.text))
                case PieceKind.WAS_THOUGHT:
                    pass  # the user has already read the text as the answer

    def _take_back(self) -> str:
        """Remove and return all visible text so far, which was not shown and turned out to be a thought."""
        before = self._take_held() + self._text_trimmer.held
        if self._text_calls:
            before += self._text_calls.take_back()
        self._text_trimmer = Trimmer()
        if self._may_hide and self._is_answer:
            self._is_answer = None
            self._has_opened = False
        return before

    def _without_calls(self, words: str) -> str:
        """Return the visible text that is not part of a call. If there is a call, the text is a remark."""
        if self._text_calls is None:
            return words
        shown = [
            self._text_calls.feed(words[start : start + MAX_STEP_LENGTH])
            for start in in_turns(range(0, len(words), MAX_STEP_LENGTH))
        ]
        if self._text_calls.has_begun:
            self.expect_calls()
        return "".join(shown)

    def _show_text(self, words: str) -> Iterator[Shown]:
        """Show visible words, or hold them back."""
        if text := self._text_trimmer.feed(words):
            self._held.append(text)
            yield from self._show_early()

    def _show_early(self) -> Iterator[Shown]:
        """Show the held-back text if it is plainly the answer, up to a block that could hide a question."""
        if self._is_answer is None and is_plainly_an_answer(str(self._held)):
            self._is_answer = True
        if not self._is_answer or self._holds_answer or self._has_opened:
            return
        text = self._take_held()
        opening = None
        if self._may_hide:
            opening = OPENS_A_BLOCK.search(text)
        if opening:
            end = len(text[: opening.start()].rstrip())
        else:
            end = len(text)
        self._has_opened = opening is not None and opening["whole"] is not None
        yield from self._show_as_answer(text[:end])
        self._held.append(text[end:])

    def _show_as_answer(self, text: str) -> Iterator[Shown]:
        self._is_answer = True
        if text:
            if not self._shown:
                yield AnswerBreak()
            self._shown.append(text)
            for step in _steps(AnswerText, text):
                yield self._marked(step)

    def _marked(self, step: AnswerText) -> AnswerText:
        if self._guard is None:
            return step
        return AnswerText(self._guard.marked(step.text))

    def _take_held(self) -> str:
        return self._held.taken()


class Trimmer:
    """Drops white space at the beginning and end of a text that arrives in pieces."""

    def __init__(self) -> None:
        self.held = ""
        self._has_begun = False

    def feed(self, text: str) -> str:
        if self._has_begun:
            text = self.held + text
        else:
            text = text.lstrip()
        kept = text.rstrip()
        self.held = text[len(kept) :]
        self._has_begun = self._has_begun or bool(kept)
        return kept


def _steps[S: (AnswerText, ThoughtText)](kind: type[S], text: str) -> Iterator[S]:
    return (kind(text[at : at + MAX_STEP_LENGTH]) for at in range(0, len(text), MAX_STEP_LENGTH))


def is_plainly_an_answer(text: str) -> bool:
    """Return whether a text is as long as an answer, or formatted like one. More text does not change the result."""
    if len(text) >= PLAINLY_AN_ANSWER or _BEGINS_A_BLOCK.search(text):
        return True
    if text.isascii():
        wide = 0
    else:
        wide = len(re.findall(_WIDE, text))
    return len(text) + (_LETTERS_OF_A_WIDE_ONE - 1) * wide >= PLAINLY_AN_ANSWER
