"""Which model a run calls: the node's own, and its fallback from the moment when the first one has failed for good."""

import contextlib
import json
import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace

from dify_plugin.entities.model.llm import LLMModelConfig, LLMResultChunk

from internal.budget import Budget, Usage
from internal.call import ToolCall
from internal.clock import Clock
from internal.errors import ModelCallFailed, OurWords, Quoting, Sentence, StopReason
from internal.events import Event, ModelFinished, ModelStarted, Noted, RequestRepeated
from internal.host.failures import FailureKind, HostFailure, is_transient
from internal.host.session import DeadlinePassed, HostSession, ModelRequest, new_request_id
from internal.model.reading import ModelTurn, Reading, TurnSpan
from internal.node.tools import Toolbox
from internal.text.secrets import KnownSecrets, texts_in
from internal.transcript.transcript import Transcript, Window

# Which model a run calls: the node's own, and its fallback from the moment when the first one has failed for good.
#
# All loops of a run share one object.


@dataclass
class ModelInUse:
    """The model that answers a run's requests."""

    first: LLMModelConfig
    """The node's own."""
    fallback: LLMModelConfig | None = None
    _failure: ModelCallFailed | None = field(default=None, init=False)
    """How the first one failed; None while it is in use."""

    @property
    def now(self) -> LLMModelConfig:
        return self.fallback if self.fallback and self._failure else self.first

    def can_replace(self, model: LLMModelConfig) -> bool:
        """Whether another model can answer what this one did not."""
        return self.fallback is not None and model is self.first

    def use_fallback(self, failure: ModelCallFailed) -> None:
        """Use the fallback from now on; ``failure`` says why. Of several conversations the first one's counts."""
        self._failure = self._failure or failure

    def told(self, model: LLMModelConfig, failure: ModelCallFailed) -> ModelCallFailed:
        """How this model failed; of the fallback, with the reason for which it was in use."""
        return failure if model is self.first or self._failure is None else self._failure.then(failure)


def name_of(model: LLMModelConfig) -> str:
    return f"{model.provider}/{model.model}"


# Remedies for a failed model call: waiting, a shorter prompt, a prompt without opaque bodies.
#
# Each remedy is used a limited number of times, so a turn ends.

RETRY_WAITS = (1.0, 4.0)
"""Seconds before the second and the third try of a call that failed for a temporary reason."""
# Each provider refuses a body in its own words; some of those words are not known here.
_MAY_REFUSE_A_BODY = frozenset({FailureKind.INVALID_REQUEST, FailureKind.UNKNOWN})


@dataclass
class Recovery:
    """What has been done so far to save one turn."""

    transcript: Transcript
    window: Window
    clock: Clock
    span: TurnSpan
    is_used_up: bool = False
    """Whether the request is sent once, whatever comes of it."""
    _retries: int = 0
    _has_shrunk: bool = False
    _has_repeated: bool = False

    def prepare(self, failure: HostFailure, request: ModelRequest) -> Generator[Event, None, bool]:
        """Do what may let the next try succeed; False when nothing is left.

        Whether opaque bodies are to blame is judged by this request: another conversation of the run may have dropped
        them since it was sent.
        """
        if self.is_used_up:
            return False
        if failure.names_opaque_body and request.carries_opaque_body():
            return (yield from self._do_without_opaque_bodies())
        if is_transient(failure.kind) and (yield from self._wait(failure.kind)):
            return True
        if failure.kind is FailureKind.CONTEXT_LENGTH and not self._has_shrunk:
            self._has_shrunk = True
            if (yield from self._shrink()):
                return True
        if failure.kind in _MAY_REFUSE_A_BODY and request.carries_opaque_body():
            return (yield from self._do_without_opaque_bodies())
        return False

    def repeat_if_lost(self, reading: Reading) -> Generator[Event, None, bool]:
        """Whether a stream that was cut without an error has to be asked for again; a turn has one such repetition."""
        if not reading.was_cut_off:
            return False
        is_lost = not reading.calls and not reading.has_shown and self._use_repetition()
        consequence = "it is asked for once more" if is_lost else "what came last may be missing"
        note = OurWords(f"the stream ended with neither finish reason nor usage, so it was cut: {consequence}")
        yield Noted(note, self.span.key)
        return is_lost

    def _use_repetition(self) -> bool:
        if self._has_repeated or self.is_used_up:
            return False
        self._has_repeated = True
        return not self.span.deadline.has_passed()

    def _wait(self, kind: FailureKind) -> Generator[Event, None, bool]:
        wait = RETRY_WAITS[self._retries] if self._retries < len(RETRY_WAITS) else None
        if wait is None or wait >= self.span.deadline.left():
            return False
        self._retries += 1
        yield Noted(OurWords(f"{kind}; tried again after {wait:g} s"), self.span.key)
        self.clock.sleep(wait)
        return True

    def _shrink(self) -> Generator[Event, None, bool]:
        notes = list(self.window.shrink(self.transcript))
        for note in notes:
            yield Noted(note, self.span.key)
        return bool(notes)

    def _do_without_opaque_bodies(self) -> Generator[Event, None, bool]:
        self.transcript.drop_opaque_bodies()
        note = OurWords("the host refused the provider's opaque bodies; the run goes on without them")
        yield Noted(note, self.span.key)
        return True


# What the model gives to a tool's ``secret-input`` parameters.
#
# The model still reads them, because it had them before.

_VALUE = r"""(?:"((?:[^"\\]|\\.)*+)|'((?:[^'\\]|\\.)*+)|([^\s"'{}\[\],;]++))"""


def given_secrets(call: ToolCall, toolbox: Toolbox) -> Iterator[str]:
    """The values of these parameters; a call that will not run counts too."""
    tool = toolbox.tools.get(call.name)
    names = [parameter.name for parameter in tool.parameters.values() if parameter.is_secret] if tool else []
    if not names:
        return
    if call.parsed.ok:
        yield from texts_in([call.parsed.args.get(name) for name in names])
        return
    yield from _beside(names, call.arguments)


def _beside(names: Iterable[str], text: str) -> Iterator[str]:
    """What stands beside these names in a text that is not JSON: in double quotes, in single quotes, or bare."""
    written = "|".join(form for name in names for form in _forms(name))
    for found in re.finditer(rf"(?:{written})\s*[:=]\s*{_VALUE}", text):
        value = next(value for value in found.groups() if value is not None)
        yield value
        with contextlib.suppress(ValueError):
            yield json.loads(f'"{value}"')


def _forms(name: str) -> tuple[str, str, str]:
    bare = re.escape(name)
    # A bare name counts only at the beginning of a pair; elsewhere it is a word of a text.
    return re.escape(json.dumps(name)), f"'{bare}'", rf"(?:^|[{{,])\s*{bare}"


# One model turn: the request, the stream, and another try when it fails.
#
# A failed call is tried again while the user has seen nothing of the turn (recovery), and at last with the fallback
# model (in_use); an answer that stalls after that is kept as far as it has come.

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

    def offering(self, toolbox: Toolbox) -> "ModelCaller":
        """The same with these tools in every request."""
        return replace(self, toolbox=toolbox, window=replace(self.window, tools=toolbox.prompt_tools))

    def take_turn(self, transcript: Transcript, span: TurnSpan) -> Generator[Event, None, ModelTurn | TimeIsUp]:
        """Have the model take a turn; if it fails for good, have the fallback model take it.

        Raises:
            ModelCallFailed: nothing is left to try, or something of the turn was shown already.
            InvalidParameters: the request cannot be made to fit.
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
