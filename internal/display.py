"""What of a turn the user sees while it streams.

In: pieces of text and thought, and at the end whether tool calls came with them. Out: events for the eye. Text is held
back until it is plainly the answer; what turns out to be a remark before tool calls is a thought, or for the log only.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from internal.events import AnswerBreak, AnswerText, Shown, ThoughtText
from internal.flow import should_emit_response_text
from internal.thinking import Piece, PieceKind, ThoughtSplitter

PLAINLY_AN_ANSWER = 400
"""Visible characters after which text is no remark any more. A longer preamble is shown: a known departure."""


@dataclass(frozen=True)
class DisplayRule:
    """How the turns of a run are shown, and where in the run this turn stands."""

    show_thoughts: bool
    may_call_tools: bool
    """False where no call can follow (no tools, the closing call): then nothing is held back."""
    step: int
    """The turn's number among the run's model calls, from 1."""
    last_step: int
    """The closing call's number."""
    text_is_answer: bool = True
    """False where the answer has to be a call: then no text is ever taken for it."""
    is_seen: bool = True
    """False where the user sees nothing of what the model says, as in a subtask."""


class Trimmer:
    """Drops white space at the beginning and end of a text that comes in pieces."""

    def __init__(self) -> None:
        self._held = ""
        self._has_begun = False

    def feed(self, text: str) -> str:
        text = self._held + text
        if not self._has_begun:
            text = text.lstrip()
        kept = text.rstrip()
        self._has_begun = self._has_begun or bool(kept)
        self._held = text[len(kept) :]
        return kept


class TurnDisplay:
    """Shows one turn; ``feed`` it chunks of raw text, then ``finish`` it once."""

    def __init__(self, rule: DisplayRule) -> None:
        self._rule = rule
        self._splitter = ThoughtSplitter()
        self._text_trimmer, self._thought_trimmer = Trimmer(), Trimmer()
        self._held: list[str] = []
        self._is_answer = rule.text_is_answer and not rule.may_call_tools
        self._may_become_answer = rule.text_is_answer
        self.is_answering = False
        """Whether text has been shown as the answer."""
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._length = 0
        self.has_shown = False
        """Whether anything of this turn was shown to whoever sees it."""

    @property
    def text(self) -> str:
        """The visible text so far, shown or held."""
        return "".join(self._texts)

    @property
    def thought(self) -> str:
        return "".join(self._thoughts)

    def expect_calls(self) -> None:
        """Calls have come: text that follows them is no answer, however long."""
        self._may_become_answer = False

    def feed(self, chunk: str) -> Iterator[Shown]:
        for piece in self._splitter.feed(chunk):
            yield from self._show(piece)

    def finish(self, *, has_tool_calls: bool) -> Iterator[Shown]:
        """Show the rest, now that it is known what the turn was."""
        for piece in self._splitter.finish(calls_follow=has_tool_calls):
            yield from self._show(piece)
        if not self._rule.text_is_answer:
            if self._rule.show_thoughts:
                yield from self._release_as_thought()
            return
        is_last = self._rule.step >= self._rule.last_step
        if should_emit_response_text(
            has_tool_calls=has_tool_calls,
            iteration_step=self._rule.step,
            max_iteration_steps=self._rule.last_step,
            emit_intermediate_thoughts=self._rule.show_thoughts,
        ):
            if has_tool_calls and not is_last:
                yield from self._release_as_thought()
            else:
                yield from self._release_as_answer()

    def _show(self, piece: Piece) -> Iterator[Shown]:
        if piece.kind is PieceKind.THOUGHT:
            yield from self._show_thought(piece.text)
            return
        text = self._text_trimmer.feed(piece.text)
        if not text:
            return
        self._texts.append(text)
        self._held.append(text)
        self._length += len(text)
        if self._is_answer or (self._may_become_answer and self._length >= PLAINLY_AN_ANSWER):
            yield from self._release_as_answer()

    def _show_thought(self, raw: str) -> Iterator[Shown]:
        text = self._thought_trimmer.feed(raw)
        if not text:
            return
        self._thoughts.append(text)
        if self._rule.show_thoughts:
            self.has_shown = True
            yield ThoughtText(text)

    def _release_as_answer(self) -> Iterator[Shown]:
        self._is_answer = True
        text, self._held = "".join(self._held), []
        if text:
            if not self.is_answering:
                yield AnswerBreak()
            self.is_answering = self.has_shown = True
            yield AnswerText(text)

    def _release_as_thought(self) -> Iterator[Shown]:
        text, self._held = "".join(self._held), []
        if text:
            self.has_shown = True
            yield ThoughtText(f"\n{text}" if self._thoughts else text)
