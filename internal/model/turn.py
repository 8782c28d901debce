"""One model turn: the request, the stream, and another try when it fails.

In: a transcript. Out: events while it streams, then a ModelTurn, or TimeIsUp. A failed call is tried again while the
user has seen nothing of the turn (recovery); an answer that stalls after that is kept as far as it has come.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace

from dify_plugin.entities.model.llm import LLMResultChunk

from internal.budget import Budget
from internal.conversation.transcript import Transcript
from internal.conversation.window import Window
from internal.errors import ModelCallFailed
from internal.host.clock import Clock
from internal.host.failures import FailureKind, HostFailure, remedy_for
from internal.host.read_ahead import DeadlinePassed
from internal.host.request import ModelRequest
from internal.host.session import HostSession
from internal.model.given_secrets import given_secrets
from internal.model.reading import ModelTurn, Reading, TurnSpan
from internal.model.recovery import Recovery
from internal.node.model_selection import ModelSelection
from internal.report.events import Event, ModelFinished, ModelStarted, Noted, StopReason
from internal.report.usage import Usage
from internal.text.notes import OurWords, Quoting, Sentence
from internal.text.redaction import KnownSecrets
from internal.tools.toolbox import Tool, Toolbox

_TIME_WAS_UP = OurWords("the time was up before the answer had ended; what had come of it is kept")


@dataclass(frozen=True)
class TimeIsUp:
    """The deadline passed before the user saw anything of the turn."""

    words: str = ""
    """What the model had said until then, if it may have been the beginning of an answer."""


@dataclass(frozen=True)
class _AskAgain:
    """The try failed, and another may succeed."""


@dataclass(frozen=True)
class ModelCaller:
    """Calls the model of one run."""

    host: HostSession
    toolbox: Toolbox
    model: ModelSelection
    window: Window
    clock: Clock
    secrets: KnownSecrets
    budget: Budget
    stop: tuple[str, ...] = ()
    """Stop words of every request; a hit discards tool calls, so only a run that offers no tool has any."""

    def offering(self, tool: Tool) -> "ModelCaller":
        """The same with one more tool in every request, behind the others."""
        toolbox = self.toolbox.with_tool(tool)
        return replace(self, toolbox=toolbox, window=replace(self.window, tools=toolbox.prompt_tools))

    def take_turn(self, transcript: Transcript, span: TurnSpan) -> Generator[Event, None, ModelTurn | TimeIsUp]:
        """Have the model take a turn.

        Raises:
            ModelCallFailed: nothing is left to try, or something of the turn was shown already.
            PromptTooLarge: the request cannot be made to fit.
        """
        config = self.model.config
        yield ModelStarted(span.key, config.model)
        started, spent = self.clock.now(), Usage()
        recovery = Recovery(transcript, self.window, self.clock, span)
        while True:
            reading = Reading(span)
            outcome = yield from self._try(transcript, span, reading, recovery)
            spent += reading.usage
            self._count(reading, transcript)
            if isinstance(outcome, _AskAgain):
                continue
            elapsed = self.clock.now() - started
            if isinstance(outcome, HostFailure):
                message = self._sentence(outcome)
                yield self._finished(span, elapsed, reading, spent, error=message)
                raise ModelCallFailed(f"model {config.provider}/{config.model}: {message}", outcome.kind)
            error = OurWords("no answer in the time that was left") if isinstance(outcome, TimeIsUp) else None
            yield self._finished(span, elapsed, reading, spent, error)
            return outcome

    def _try(
        self, transcript: Transcript, span: TurnSpan, reading: Reading, recovery: Recovery
    ) -> Generator[Event, None, ModelTurn | TimeIsUp | HostFailure | _AskAgain]:
        """Send the request and read the stream to its end."""
        for note in self.window.fit(transcript):
            yield Noted(note, span.key)
        request = ModelRequest(self.model.config, transcript.messages(), self.window.tools, self.stop)
        try:
            batches = self.host.stream_model(request, reading.seconds_left, span.end.left())
            yield from self._stream(batches, reading)
        except DeadlinePassed:
            if not reading.is_answering:
                return TimeIsUp(reading.words)
            return (yield from _kept(reading, _TIME_WAS_UP))
        except HostFailure as failure:
            if not reading.has_shown and (yield from recovery.prepare(failure, request)):
                return _AskAgain()
            is_stalled = failure.kind is FailureKind.TIMEOUT and (reading.is_answering or bool(reading.words))
            if not is_stalled:
                return failure
            return (
                yield from _kept(reading, Quoting(f"{self._sentence(failure)}; what had come of the answer is kept"))
            )
        if (yield from self._ended_early(reading, request, recovery)):
            return _AskAgain()
        return (yield from reading.finish())

    def _stream(self, batches: Iterator[list[LLMResultChunk]], reading: Reading) -> Generator[Event, None, None]:
        """Read to the end; what the model passes on as a secret is known before more of its text is shown."""
        try:
            for chunks in batches:
                yield from reading.take(chunks)
        finally:
            for call in reading.calls:
                self.secrets.learn(given_secrets(call, self.toolbox))

    def _ended_early(self, reading: Reading, request: ModelRequest, recovery: Recovery) -> Generator[Event, None, bool]:
        """Whether a stream that ended without an error has to be asked for again."""
        if reading.chunks == 0:
            silent = HostFailure("the stream ended without a single chunk: stream cut off")
            return (yield from recovery.prepare(silent, request))
        if not reading.was_cut_off:
            return False
        is_lost = not reading.calls and not reading.has_shown and recovery.use_repetition()
        consequence = "it is asked for once more" if is_lost else "what came last may be missing"
        note = OurWords(f"the stream ended with neither finish reason nor usage, so it was cut: {consequence}")
        yield Noted(note, reading.span.key)
        return is_lost

    def _count(self, reading: Reading, transcript: Transcript) -> None:
        """Count the tokens of a try against the run's budget; what the provider did not report is estimated."""
        if reported := reading.usage.total_tokens:
            self.budget.spend(reported)
        elif reading.chunks:
            self.budget.spend(self.window.weigh(transcript).tokens + reading.estimated_tokens(), is_estimate=True)

    def _finished(
        self, span: TurnSpan, elapsed: float, reading: Reading, spent: Usage, error: str | None
    ) -> ModelFinished:
        return ModelFinished(
            key=span.key,
            provider=self.model.config.provider,
            elapsed_seconds=elapsed,
            usage=spent,
            text=reading.display.text,
            thought=reading.display.thought,
            calls=tuple(call.name for call in reading.calls),
            finish_reason=reading.finish_reason,
            error=error,
        )

    @staticmethod
    def _sentence(failure: HostFailure) -> str:
        """The kind of failure, what the provider said, and what helps where that is known."""
        remedy = remedy_for(failure)
        return f"{failure.kind}: {failure.reason}{f' ({remedy})' if remedy else ''}"


def _kept(reading: Reading, note: Sentence) -> Generator[Event, None, ModelTurn]:
    """An answer that stalled, as far as it has come; the note says why it ends there."""
    turn = yield from reading.finish(StopReason.TIME_LIMIT)
    yield Noted(note, reading.span.key)
    return turn
