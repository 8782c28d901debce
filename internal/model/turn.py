"""One model turn: the request, the stream, and another try when it fails.

In: a transcript. Out: events while it streams, then a ModelTurn, or TimeIsUp. A failed call is tried again while the
user has seen nothing of the turn (recovery), and at last with the fallback model (in_use); an answer that stalls after
that is kept as far as it has come.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace

from dify_plugin.entities.model.llm import LLMModelConfig, LLMResultChunk

from internal.budget import Budget
from internal.conversation.transcript import Transcript
from internal.conversation.window import Window
from internal.errors import ModelCallFailed
from internal.host.clock import Clock
from internal.host.failures import FailureKind, HostFailure
from internal.host.invocations import new_request_id
from internal.host.read_ahead import DeadlinePassed
from internal.host.request import ModelRequest
from internal.host.session import HostSession
from internal.model.given_secrets import given_secrets
from internal.model.in_use import ModelInUse, name_of
from internal.model.reading import ModelTurn, Reading, TurnSpan
from internal.model.recovery import Recovery
from internal.report.events import Event, ModelFinished, ModelStarted, Noted, RequestRepeated, StopReason
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
class _Failed:
    """The model's side failed for good."""

    failure: ModelCallFailed
    was_shown: bool
    """Whether the user has seen anything of the turn."""


@dataclass(frozen=True)
class ModelCaller:
    """Calls the model of one run."""

    host: HostSession
    toolbox: Toolbox
    models: ModelInUse
    window: Window
    clock: Clock
    secrets: KnownSecrets
    budget: Budget
    stop: tuple[str, ...] = ()
    """Stop words for the node's own model; a hit discards tool calls, so only a run that offers no tool has any."""

    def offering(self, tool: Tool) -> "ModelCaller":
        """The same with one more tool in every request, behind the others."""
        toolbox = self.toolbox.with_tool(tool)
        return replace(self, toolbox=toolbox, window=replace(self.window, tools=toolbox.prompt_tools))

    def take_turn(self, transcript: Transcript, span: TurnSpan) -> Generator[Event, None, ModelTurn | TimeIsUp]:
        """Have the model take a turn; if it fails for good, have the fallback model take it.

        Raises:
            ModelCallFailed: nothing is left to try, or something of the turn was shown already.
            PromptTooLarge: the request cannot be made to fit.
        """
        model = self.models.now
        outcome = yield from self._ask(model, Recovery(transcript, self.window, self.clock, span))
        if not isinstance(outcome, _Failed):
            return outcome
        if outcome.was_shown or not self.models.can_replace(model):
            raise self.models.told(model, outcome.failure)
        yield from self._use_fallback(transcript, span, outcome)
        beside = replace(span, key=f"{span.key}_fallback")
        once = Recovery(transcript, self.window, self.clock, beside, is_used_up=True)
        second = yield from self._ask(self.models.now, once)
        if isinstance(second, _Failed):
            raise outcome.failure.then(second.failure)
        return second

    def _use_fallback(self, transcript: Transcript, span: TurnSpan, failed: _Failed) -> Generator[Event, None, None]:
        """Go on with the fallback model in all conversations of the run; it has no use for another's opaque bodies."""
        self.models.use_fallback(failed.failure)
        transcript.drop_opaque_bodies()
        second = name_of(self.models.now)
        note = f"the model failed ({failed.failure.kind}); the run goes on with the fallback model {second}"
        yield Noted(OurWords(note), span.round_key)

    def _ask(self, model: LLMModelConfig, recovery: Recovery) -> Generator[Event, None, ModelTurn | TimeIsUp | _Failed]:
        """Have this model take the turn, with as many tries as recovery allows; one row of the log."""
        span, request_id = recovery.span, new_request_id()
        yield ModelStarted(span.key, model.model, request_id)
        started, spent = self.clock.now(), Usage()
        while True:
            reading = Reading(span)
            outcome = yield from self._try(model, request_id, reading, recovery)
            spent += self._used(reading, recovery.transcript)
            if isinstance(outcome, _AskAgain):
                request_id = new_request_id()
                yield RequestRepeated(span.key, request_id)
                continue
            if reading.was_cut_off:
                yield Noted(OurWords("the stream was cut before its usage came; its tokens are estimated"), span.key)
            finished = _finished(reading, self.clock.now() - started, spent)
            if isinstance(outcome, HostFailure):
                failure = ModelCallFailed.of(model, outcome)
                yield replace(finished, error=failure.detail)
                return _Failed(failure, reading.has_shown)
            error = OurWords("no answer in the time that was left") if isinstance(outcome, TimeIsUp) else None
            yield replace(finished, error=error)
            return outcome

    def _try(
        self, model: LLMModelConfig, request_id: str, reading: Reading, recovery: Recovery
    ) -> Generator[Event, None, ModelTurn | TimeIsUp | HostFailure | _AskAgain]:
        """Send the request and read the stream to its end."""
        span, transcript = recovery.span, recovery.transcript
        for note in self.window.fit(transcript):
            yield Noted(note, span.key)
        stop = self.stop if model is self.models.first else ()
        request = ModelRequest(model, transcript.messages(), self.window.tools, stop)
        try:
            batches = self.host.stream_model(request, request_id, reading.seconds_left, span.end.left())
            yield from self._stream(batches, reading)
        except DeadlinePassed:
            if not reading.is_answering:
                return TimeIsUp(reading.words)
            return (yield from _kept(reading, _TIME_WAS_UP))
        except HostFailure as failure:
            if not reading.has_shown and (yield from self._prepare(failure, request, recovery)):
                return _AskAgain()
            is_stalled = failure.kind is FailureKind.TIMEOUT and (reading.is_answering or bool(reading.words))
            if not is_stalled:
                return failure
            said = f"{failure.kind}: {failure.reason}; what had come of the answer is kept"
            return (yield from _kept(reading, Quoting(said)))
        return (yield from self._ended(reading, request, recovery))

    def _ended(
        self, reading: Reading, request: ModelRequest, recovery: Recovery
    ) -> Generator[Event, None, ModelTurn | HostFailure | _AskAgain]:
        """What a stream that ended without an error has brought."""
        if reading.chunks == 0:
            silent = HostFailure("the stream ended without a single chunk: stream cut off")
            if (yield from self._prepare(silent, request, recovery)):
                return _AskAgain()
            if self.models.can_replace(request.config):
                return silent
        if (yield from recovery.repeat_if_lost(reading)):
            return _AskAgain()
        return (yield from reading.finish())

    def _prepare(self, failure: HostFailure, request: ModelRequest, recovery: Recovery) -> Generator[Event, None, bool]:
        """Whether another try of the same model makes sense; not when the run goes on with the fallback already."""
        return request.config is self.models.now and (yield from recovery.prepare(failure, request))

    def _stream(self, batches: Iterator[list[LLMResultChunk]], reading: Reading) -> Generator[Event, None, None]:
        """Read to the end; what the model passes on as a secret is known before more of its text is shown."""
        try:
            for chunks in batches:
                yield from reading.take(chunks)
        finally:
            for call in reading.calls:
                self.secrets.learn(given_secrets(call, self.toolbox))

    def _used(self, reading: Reading, transcript: Transcript) -> Usage:
        """What a try has cost: as reported, or estimated if the stream was cut before.

        The run's budget counts an estimate of whatever the provider did not report.
        """
        usage, prompt, completion = reading.usage, 0, 0
        reported = usage.total_tokens
        if reading.chunks and reported <= usage.completion_tokens:
            prompt = self.window.weigh(transcript).tokens
        if reading.chunks and reported <= usage.prompt_tokens:
            completion = reading.estimated_tokens()
        missing = prompt + completion
        self.budget.spend(reported + missing, is_estimate=missing > 0)
        return (
            Usage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=missing)
            if (reading.was_cut_off)
            else usage
        )


def _finished(reading: Reading, elapsed: float, spent: Usage) -> ModelFinished:
    return ModelFinished(
        key=reading.span.key,
        elapsed_seconds=elapsed,
        usage=spent,
        text=reading.display.text,
        thought=reading.display.thought,
        calls=tuple(call.name for call in reading.calls),
        finish_reason=reading.finish_reason,
        round=reading.span.round,
    )


def _kept(reading: Reading, note: Sentence) -> Generator[Event, None, ModelTurn]:
    """An answer that stalled, as far as it has come; the note says why it ends there."""
    turn = yield from reading.finish(StopReason.TIME_LIMIT)
    yield Noted(note, reading.span.key)
    return turn
