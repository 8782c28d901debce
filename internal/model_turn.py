"""One model turn: the request, the stream, and what is tried again when it fails.

In: a transcript. Out: events while it streams, then a ModelTurn, or TimeIsUp. What can be mended (a failure in passing,
a prompt too long, opaque bodies the host refuses) is tried again while the user has seen nothing of the turn.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

from dify_plugin.entities.model.llm import LLMResultChunk

from internal.deadline import Clock
from internal.errors import ModelCallFailed
from internal.events import Event, ModelFinished, ModelStarted, Noted, StopReason
from internal.failures import FailureKind, HostFailure, is_transient
from internal.given_secrets import given_secrets
from internal.model_selection import ModelSelection
from internal.reading import ModelTurn, Reading, TurnSpan
from internal.redaction import KnownSecrets
from internal.secret_detection import without_named
from internal.session import DeadlinePassed, HostSession, ModelRequest
from internal.toolbox import Toolbox
from internal.transcript import Transcript
from internal.usage import Usage
from internal.window import Window

RETRY_WAITS = (1.0, 4.0)
"""Seconds before the second and the third try of a call that failed in passing."""
_LONGEST_MESSAGE = 1_000


@dataclass(frozen=True)
class TimeIsUp:
    """The deadline passed before the user saw anything of the turn."""


@dataclass
class _Tried:
    """What was done already to save this turn."""

    retries: int = 0
    shrunk: bool = False
    usage: Usage = field(default_factory=Usage)
    """What the tries that failed had cost."""


@dataclass(frozen=True)
class ModelCaller:
    """Calls the model of one run."""

    host: HostSession
    toolbox: Toolbox
    model: ModelSelection
    window: Window
    clock: Clock
    secrets: KnownSecrets

    def take_turn(self, transcript: Transcript, span: TurnSpan) -> Generator[Event, None, ModelTurn | TimeIsUp]:
        """Have the model take a turn.

        Raises:
            ModelCallFailed: nothing is left to try, or something of the turn was shown already.
            PromptTooLarge: the request cannot be made to fit.
        """
        config = self.model.config
        yield ModelStarted(span.key, span.parent, config.model, config.provider)
        started, tried = self.clock.now(), _Tried()
        while True:
            reading = Reading(span)
            try:
                outcome = yield from self._read(transcript, span, reading)
            except HostFailure as failure:
                if not reading.has_shown and (yield from self._recover(failure, transcript, span, tried)):
                    tried.usage += reading.usage
                    continue
                message = f"{failure.kind}: {self._readable(failure.reason)}"
                yield self._finished(span, started, reading, tried, error=message)
                raise ModelCallFailed(f"model {config.provider}/{config.model}: {message}", failure.kind) from None
            if reading.chunks == 0 and isinstance(outcome, ModelTurn):
                silent = HostFailure("the stream ended without a single chunk: stream cut off")
                if (yield from self._recover(silent, transcript, span, tried)):
                    continue
            late = isinstance(outcome, TimeIsUp)
            error = "no answer in the time that was left" if late else None
            yield self._finished(span, started, reading, tried, error)
            return outcome

    def _read(
        self, transcript: Transcript, span: TurnSpan, reading: Reading
    ) -> Generator[Event, None, ModelTurn | TimeIsUp]:
        """One try: send the request and read the stream to its end."""
        for note in self.window.fit(transcript):
            yield Noted(note, span.key)
        request = ModelRequest(self.model.config, transcript.messages(), self.window.tools)
        chunks = self.host.stream_model(request, reading.seconds_left, span.end.left())
        try:
            yield from self._stream(chunks, reading)
        except DeadlinePassed:
            if not reading.is_answering:
                return TimeIsUp()
            yield from reading.finish(has_tool_calls=False, is_cut=True)
            return reading.turn(cut=StopReason.TIME_LIMIT)
        turn = reading.turn()
        yield from reading.finish(has_tool_calls=bool(turn.calls), is_cut=turn.cut is not None)
        return reading.turn()

    def _stream(self, chunks: Iterator[LLMResultChunk], reading: Reading) -> Generator[Event, None, None]:
        """Read to the end; what the model passes on as a secret is known before more of its text is shown."""
        try:
            for chunk in chunks:
                yield from reading.take(chunk)
        finally:
            for call in reading.calls():
                self.secrets.learn(given_secrets(call, self.toolbox))

    def _recover(
        self, failure: HostFailure, transcript: Transcript, span: TurnSpan, tried: _Tried
    ) -> Generator[Event, None, bool]:
        """Do what may let the next try succeed; False when nothing is left."""
        wait = RETRY_WAITS[tried.retries] if tried.retries < len(RETRY_WAITS) else None
        if is_transient(failure.kind) and wait is not None and wait < span.deadline.left():
            tried.retries += 1
            yield Noted(f"{failure.kind}; tried again after {wait:g} s", span.key)
            self.clock.sleep(wait)
            return True
        if failure.kind is FailureKind.CONTEXT_LENGTH and not tried.shrunk:
            tried.shrunk = True
            notes = list(self.window.shrink(transcript))
            for note in notes:
                yield Noted(note, span.key)
            if notes:
                return True
        if failure.kind in {FailureKind.INVALID_REQUEST, FailureKind.UNKNOWN} and transcript.carries_opaque_body():
            transcript.drop_opaque_bodies()
            yield Noted("the host refused the provider's opaque bodies; the run goes on without them", span.key)
            return True
        return False

    def _finished(
        self, span: TurnSpan, started: float, reading: Reading, tried: _Tried, error: str | None
    ) -> ModelFinished:
        return ModelFinished(
            key=span.key,
            elapsed_seconds=self.clock.now() - started,
            usage=tried.usage + reading.usage,
            text=reading.display.text,
            thought=reading.display.thought,
            calls=tuple(call.name for call in reading.calls()),
            finish_reason=reading.finish_reason,
            error=error,
        )

    def _readable(self, message: str) -> str:
        return without_named(self.secrets.redactor.error(message))[:_LONGEST_MESSAGE]
