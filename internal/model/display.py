"""What of a turn the user sees while it streams.

In: pieces of text and thought, and at the end whether tool calls came with them. Out: events for the eye. Text is held
back until it is plainly the answer; what turns out to be a remark before tool calls is a thought, or for the log only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from internal.flow import should_emit_response_text
from internal.report.events import AnswerBreak, AnswerText, Shown, ThoughtText
from internal.text.fairness import in_turns
from internal.thoughts.thinking import MAX_STEP_LENGTH, Piece, PieceKind, ThoughtSplitter

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
        self._held: list[str] = []
        self._has_begun = False

    def feed(self, text: str) -> str:
        kept = text.rstrip()
        if not kept:
            if self._has_begun:
                self._held.append(text)
            return ""
        held, self._held = self._held, [text[len(kept) :]]
        if not self._has_begun:
            self._has_begun = True
            return kept.lstrip()
        return "".join([*held, kept])


class TurnDisplay:
    """Shows one turn; ``feed`` it chunks of raw text, then ``finish`` it once."""

    def __init__(self, rule: DisplayRule) -> None:
        self._rule = rule
        self._splitter = ThoughtSplitter()
        self._text_trimmer, self._thought_trimmer = Trimmer(), Trimmer()
        self._released: list[str] = []
        self._held: list[str] = []
        self._held_length = 0
        self._is_answer = rule.text_is_answer and not rule.may_call_tools
        self._may_become_answer = rule.text_is_answer
        self.is_answering = False
        """Whether text has been shown as the answer."""
        self._thoughts: list[str] = []
        self.has_shown = False
        """Whether anything of this turn was shown to whoever sees it."""

    @property
    def text(self) -> str:
        """The visible text so far, shown or held."""
        return "".join([*self._released, *self._held])

    @property
    def thought(self) -> str:
        return "".join(self._thoughts)

    def expect_calls(self) -> None:
        """Calls have come: text that follows them is no answer, however long."""
        self._may_become_answer = False

    def feed(self, chunk: str) -> Iterator[Shown]:
        yield from self._show_all(list(self._split(chunk)))

    def _split(self, chunk: str) -> Iterator[Piece]:
        for start in in_turns(range(0, len(chunk), MAX_STEP_LENGTH)):
            yield from self._splitter.feed(chunk[start : start + MAX_STEP_LENGTH])

    def finish(self, *, has_tool_calls: bool, is_cut: bool = False) -> Iterator[Shown]:
        """Show the rest, now that it is known what the turn was.

        The calls of a turn that was cut never run: what it says is no remark on the way to them.
        """
        yield from self._show_all(self._splitter.finish(calls_follow=has_tool_calls, is_cut=is_cut))
        if not self._rule.text_is_answer:
            if self._rule.show_thoughts:
                yield from self._release_as_thought()
            return
        is_remark = has_tool_calls and not is_cut
        is_last = self._rule.step >= self._rule.last_step
        if should_emit_response_text(
            has_tool_calls=is_remark,
            iteration_step=self._rule.step,
            max_iteration_steps=self._rule.last_step,
            emit_intermediate_thoughts=self._rule.show_thoughts,
        ):
            if is_remark and not is_last:
                yield from self._release_as_thought()
            else:
                yield from self._release_as_answer()

    def _show_all(self, pieces: Sequence[Piece]) -> Iterator[Shown]:
        """Show pieces that are there at once: text before the last WAS_THOUGHT among them waits for it."""
        last = max((at for at, piece in enumerate(pieces) if piece.kind is PieceKind.WAS_THOUGHT), default=-1)
        for at, piece in enumerate(in_turns(pieces)):
            match piece.kind:
                case PieceKind.THOUGHT:
                    yield from self._think(piece.text)
                case PieceKind.WAS_THOUGHT:
                    yield from self._think_what_is_held()
                case PieceKind.TEXT:
                    yield from self._say(piece.text, may_begin=at > last)

    def _say(self, raw: str, *, may_begin: bool) -> Iterator[Shown]:
        """``may_begin`` is whether the text may be the first that is shown."""
        text = self._text_trimmer.feed(raw)
        if not text:
            return
        self._held.append(text)
        self._held_length += len(text)
        is_answer = self._is_answer or (self._may_become_answer and self._held_length >= PLAINLY_AN_ANSWER)
        if is_answer and (may_begin or self._released):
            yield from self._release_as_answer()

    def _think(self, raw: str) -> Iterator[Shown]:
        text = self._thought_trimmer.feed(raw)
        if not text:
            return
        self._thoughts.append(text)
        if self._rule.show_thoughts:
            self.has_shown = True
            yield ThoughtText(text)

    def _think_what_is_held(self) -> Iterator[Shown]:
        """Text was a thought, as far as nobody has seen it."""
        text = self._take_held()
        if not self._released:
            self._text_trimmer = Trimmer()
        yield from self._think(f"{text}\n")

    def _release_as_answer(self) -> Iterator[Shown]:
        self._is_answer = True
        text = self._take_held()
        if text:
            self._released.append(text)
            if not self.is_answering:
                yield AnswerBreak()
            self.is_answering = self.has_shown = True
            yield AnswerText(text)

    def _release_as_thought(self) -> Iterator[Shown]:
        text = self._take_held()
        if text:
            self._released.append(text)
            self.has_shown = True
            yield ThoughtText(f"\n{text}" if self._thoughts else text)

    def _take_held(self) -> str:
        text, self._held = "".join(self._held), []
        self._held_length = 0
        return text
