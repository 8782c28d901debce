"""One model turn: the request, the stream, retries, and the fallback model when no retry helps."""

import contextlib
import json
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dify_plugin.entities.model.llm import LLMModelConfig
from dify_plugin.entities.model.message import PromptMessageTool

from internal.budget import Budget, Usage
from internal.call import ToolCall
from internal.clock import Clock, Deadline, SharedWait
from internal.errors import ModelCallFailed, OurWords, Quoting, Sentence, StopReason
from internal.events import Event, LogNote, ModelFinished, ModelStarted, SpanFinished, SpanStarted
from internal.host.failures import FailureKind, HostFailure
from internal.host.session import DeadlinePassed, HostSession, ModelRequest, new_request_id, without_opaque_body
from internal.model.display import CallReader, DisplayRule
from internal.model.reading import ModelTurn, Reading, TurnSpan
from internal.model.text_calls import TextCalls
from internal.model.unparsed_calls import UnparsedCalls
from internal.node.offered import with_short_descriptions
from internal.node.tools import Toolbox
from internal.text.secrets import KnownSecrets, texts_in
from internal.transcript.steps import SummaryMessage
from internal.transcript.summary import OlderMessages, Summaries
from internal.transcript.transcript import Transcript, Window

_UNSEEN = DisplayRule(show_thoughts=False, step=1, last_step=1, is_seen=False)
_MAX_LOGGED = 4_000
"""Maximum characters of a summary in the log."""
_REMEDY_SHARE = 0.75
"""Share of its size to which a prompt is shortened after the provider reports that it is too long."""
RETRY_WAITS = (1.0, 4.0)
"""Seconds before the second and the third try of a call that failed with a transient error."""
MOST_SILENCE = 3.0
"""If the first try fails after this many seconds without a chunk, only one more try follows: docs/model-facts.md,
"Retries in the plugins"."""
_RETURNED_NOTHING = "the model returned nothing, and a content filter may have stopped it"
_SHARED = frozenset({FailureKind.RATE_LIMITED, FailureKind.UNAVAILABLE})
"""Failures that would also affect the next request to the model, from any conversation."""
_TIME_WAS_UP = OurWords("the time was up before the answer was complete; the part that came is kept")
# Each provider words the refusal of a body differently, and some wordings are unknown.
_MAY_REFUSE_A_BODY = frozenset({FailureKind.INVALID_REQUEST, FailureKind.UNKNOWN})
# The parameters by which plugins switch thinking on and set its amount: docs/model-facts.md, "Thinking blocks".
_THINKING_SWITCHES = frozenset({"thinking", "enable_thinking", "thinking_mode", "reasoning_type"})
_THINKING_AMOUNTS = frozenset(
    {
        *("thinking_budget", "thinking_level", "thinking_display", "effort"),
        *("reasoning_budget", "reasoning_effort", "reasoning_summary", "exclude_reasoning_tokens"),
    }
)
_SWITCHED_OFF = {True: False, "enabled": "disabled"}


def without_thinking(model: LLMModelConfig, defaults: Mapping[str, Any]) -> LLMModelConfig:
    """Return the model with thinking switched off, or the model itself if no parameter switches it on.

    ``defaults`` are the default values of its declared parameters. A switch without an "off" value is omitted.
    """
    params = {name: value for name, value in model.completion_params.items() if value is not None}
    switches = {name: value for name, value in {**defaults, **params}.items() if name in _THINKING_SWITCHES}
    on = {name: value for name, value in switches.items() if value and value != "disabled"}
    amounts = _THINKING_AMOUNTS & params.keys()
    if not on and (switches or not amounts):
        return model
    then = {name: value for name, value in params.items() if name not in amounts | on.keys()}
    then |= {name: _SWITCHED_OFF[value] for name, value in on.items() if value in list(_SWITCHED_OFF)}
    if then == params:
        return model
    return model.model_copy(update={"completion_params": then})


@dataclass
class ModelWithFallback:
    """The model that answers the requests of a run: the node's own model, or the fallback model once it has failed."""

    first: LLMModelConfig
    fallback: LLMModelConfig | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Default values of the parameters that the first model declares, by name."""
    _failure: ModelCallFailed | None = field(default=None, init=False)
    """The failure of the first model; None while it is in use. If it failed in several conversations, the first failure
    is kept."""
    takes_opaque_bodies: bool = field(default=True, init=False)
    _may_think: bool = field(default=True, init=False)
    _takes_long_descriptions: bool = field(default=True, init=False)
    writes_calls: bool = field(default=False, init=False)
    """Whether the model wrote a call as text again after it was told that such calls do not run."""
    wait: SharedWait = field(default_factory=SharedWait, init=False)

    @property
    def now(self) -> LLMModelConfig:
        if self.fallback and self._failure:
            return self.fallback
        return self.first

    def can_replace(self, model: LLMModelConfig) -> bool:
        """Return whether another model can be tried after this failure."""
        return self.fallback is not None and model is self.first

    def use_fallback(self, failure: ModelCallFailed) -> None:
        self._failure = self._failure or failure
        self.refuse_opaque_bodies()  # opaque bodies are useless to another model

    def refuse_opaque_bodies(self) -> None:
        self.takes_opaque_bodies = False

    def stop_thinking(self) -> None:
        self._may_think = False

    def cut_descriptions(self) -> None:
        """From now on, offer tools with descriptions that every provider accepts."""
        self._takes_long_descriptions = False

    def as_offered(self, tools: Sequence[PromptMessageTool]) -> Sequence[PromptMessageTool]:
        """Return the tools as requests offer them now."""
        if self._takes_long_descriptions:
            return tools
        return with_short_descriptions(tools)

    def as_sent(self, model: LLMModelConfig) -> LLMModelConfig:
        """Return the model with the parameters of its current requests."""
        if self._may_think:
            return model
        return self.without_thinking(model)

    def without_thinking(self, model: LLMModelConfig) -> LLMModelConfig:
        is_first = name_of(model) == name_of(self.first)
        return without_thinking(model, self.defaults if is_first else {})

    def explained(self, model: LLMModelConfig, failure: ModelCallFailed) -> ModelCallFailed:
        """Return the failure of this model. For the fallback model, the reason why it was in use is added."""
        if model is self.first or self._failure is None:
            return failure
        return self._failure.then(failure)


def name_of(model: LLMModelConfig) -> str:
    return f"{model.provider}/{model.model}"


@dataclass(frozen=True)
class TimeIsUp:
    """The deadline passed before the user saw anything of the turn."""

    words: str = ""
    """The text until then, if it may have been the beginning of an answer."""


@dataclass(frozen=True)
class ModelCaller:
    """Calls the model of one run."""

    host: HostSession
    toolbox: Toolbox
    models: ModelWithFallback
    window: Window
    clock: Clock
    secrets: KnownSecrets
    budget: Budget
    summaries: Summaries
    stop: tuple[str, ...] = ()
    """Stop words for the node's own model. A stop word discards tool calls, so only a run without tools has them."""
    calls_in_text: bool = False
    """Whether the model writes its calls as text, because it cannot make them natively."""
    thought_tags: tuple[str, ...] = ()
    """Tags that enclose the model's thoughts, in addition to ``<think>``."""

    def request(self, transcript: Transcript, model: LLMModelConfig, stop: tuple[str, ...]) -> ModelRequest:
        """Return the request. Without tools, earlier calls are sent as text too, because Bedrock then refuses calls."""
        if self.calls_in_text or not self.window.tools:
            return ModelRequest(model, transcript.request_in_text(name_of(model), self.window.tools), stop=stop)
        tools = self.models.as_offered(self.window.tools)
        return ModelRequest(model, transcript.request(name_of(model)), tools, stop)

    def offering(self, toolbox: Toolbox) -> "ModelCaller":
        """Return a copy that offers these tools in every request."""
        if toolbox is self.toolbox:
            return self
        return replace(self, toolbox=toolbox, window=replace(self.window, tools=toolbox.prompt_tools))

    def take_turn(self, transcript: Transcript, span: TurnSpan) -> Generator[Event, None, ModelTurn | TimeIsUp]:
        """Have the model take a turn. If it fails permanently, the fallback model gets one try.

        Raises ``ModelCallFailed``, even if something was already shown, and ``InvalidParameters`` if the request cannot
        be shortened enough.
        """
        yield from self.make_room(transcript, span, self.window.prompt_tokens)
        asked = _Asked(self, self.models.now, transcript, span)
        outcome = yield from asked.run()
        can_replace = self.models.can_replace(asked.model) and not asked.reading.has_shown
        if isinstance(outcome, ModelCallFailed) and can_replace:
            self.models.use_fallback(outcome)
            second = self.models.now
            note = f"the model failed ({outcome.kind}); the run continues with the fallback model"
            yield LogNote(OurWords(f"{note} {second.provider}/{second.model}"), span.round_key)
            asked = _Asked(self, second, transcript, replace(span, key=f"{span.key}_fallback"), has_one_try=True)
            outcome = yield from asked.run()
        if isinstance(outcome, ModelCallFailed):
            raise self.models.explained(asked.model, outcome)
        if isinstance(outcome, ModelTurn):
            self.budget.keep(outcome.weight)
            return replace(outcome, model=name_of(asked.model))
        return outcome

    def make_room(self, transcript: Transcript, span: TurnSpan, limit: float) -> Generator[Event, None, None]:
        """Have the model summarize the oldest part of a prompt that exceeds the limit (tokens), before it is cut."""
        yield from (LogNote(note, span.round_key) for note in self.window.leave_out_what_is_no_text(transcript, limit))
        while self.window.weigh(transcript).tokens > limit and self.budget.reached() is not StopReason.TOKEN_LIMIT:
            with self.summaries.slot:
                older = OlderMessages.of(transcript, self.window.weigh(transcript).tokens, limit)
                if older is None or self.summaries.has_failed:
                    return
                summary = self.summaries.known(older) or (yield from self._summary(older, span, limit))
            if summary:
                transcript.fold(older.stretch, summary)

    def _summary(
        self, older: OlderMessages, span: TurnSpan, limit: float
    ) -> Generator[Event, None, SummaryMessage | None]:
        """Ask for a summary once, in half of the turn's time; None if the model does not write one."""
        self.summaries.asked += 1
        key = f"{span.round_key}.summary{self.summaries.asked}"
        started = self.clock.now()
        yield SpanStarted(key, "SUMMARY")
        deadline = Deadline(self.clock, started + span.deadline.left() / 2)
        asking = replace(self.offering(Toolbox()), stop=())
        place = TurnSpan(f"{key}.model", key, _UNSEEN, deadline, deadline)
        request = older.request(limit, self.thought_tags)
        turn = yield from _Asked(asking, self.models.now, request, place, has_one_try=True).run()
        said = ""
        if isinstance(turn, ModelTurn) and turn.cut in (None, StopReason.LENGTH):
            said = turn.text
        summary = self.summaries.store(older, said)
        if summary is None:
            yield LogNote(
                OurWords("there was no summary: what is too long is left out, and none is asked for again"), key
            )
        data = {"messages": len(older.messages), "summary": said[:_MAX_LOGGED]}
        yield SpanFinished(key, self.clock.now() - started, data)
        return summary


@dataclass
class _Asked:
    """The tries of one model for one turn, and the remedies between them, each used a limited number of times."""

    caller: ModelCaller
    model: LLMModelConfig
    transcript: Transcript
    span: TurnSpan
    has_one_try: bool = False
    reading: Reading = field(init=False)
    """The reading of the last try."""
    _waits: tuple[float, ...] = field(default=RETRY_WAITS, init=False)
    _retries: int = field(default=0, init=False)
    _asked_at: float = field(default=0.0, init=False)
    """The time when the last try began."""
    _refusals_before: int = field(default=0, init=False)
    _marks: dict[str, str] = field(default_factory=dict, init=False)
    _has_shrunk: bool = field(default=False, init=False)
    _has_repeated: bool = field(default=False, init=False)

    def run(self) -> Generator[Event, None, ModelTurn | TimeIsUp | ModelCallFailed]:
        """Run the turn as one row of the log, and retry as long as another try may help."""
        span = self.span
        clock = self.caller.clock
        spent = Usage.of()
        started = clock.now()
        if waited := self.caller.models.wait.pause(span.deadline):
            yield LogNote(OurWords(f"the model refused another request; waited {waited:.1f} s for it"), span.round_key)
        while True:
            request_id = new_request_id()
            yield ModelStarted(span.key, self.model.model, request_id)
            self.reading = reading = Reading(span, self._text_calls(), self.transcript.length, self.caller.thought_tags)
            self._asked_at = clock.now()
            self._refusals_before = self.caller.models.wait.refusals
            outcome = yield from self._try(request_id)
            spent += self._used()
            if outcome is not None:
                break
        if reading.was_cut_off:
            yield self._note("the stream was cut before its usage came; its tokens are estimated")
        result: ModelTurn | TimeIsUp | ModelCallFailed
        if isinstance(outcome, HostFailure):
            result = ModelCallFailed.of(self.model, outcome)
        else:
            result = outcome
        if self._silence() > MOST_SILENCE:
            self._marks["nothing_came_for"] = f"{self._silence():.0f} s"
        late = None
        if isinstance(outcome, TimeIsUp):
            late = "no answer in the time that was left"
        yield ModelFinished(
            key=span.key,
            elapsed_seconds=clock.now() - started,
            usage=spent,
            text=reading.display.text,
            thought=reading.display.thought,
            calls=tuple(call.name for call in reading.calls),
            finish_reason=reading.finish_reason,
            round=span.round,
            error=result.detail if isinstance(result, ModelCallFailed) else late,
            marks=self._marks,
        )
        return result

    def _text_calls(self) -> CallReader:
        """Return the reader for calls in the turn's text, for a model that writes them as text."""
        tools = self.caller.toolbox.tools
        if self.caller.calls_in_text and tools:
            return TextCalls()
        return UnparsedCalls(tools)

    def _try(self, request_id: str) -> Generator[Event, None, ModelTurn | TimeIsUp | HostFailure | None]:
        """Send the request and read the whole stream; None if another try should follow."""
        caller = self.caller
        reading = self.reading
        if not caller.models.takes_opaque_bodies:
            self.transcript.shorten(without_opaque_body)
        for note in caller.window.fit(self.transcript):
            yield LogNote(note, self.span.key)
        stop: tuple[str, ...] = ()
        if self.model is caller.models.first:
            stop = caller.stop
        request = caller.request(self.transcript, caller.models.as_sent(self.model), stop)
        try:
            yield from self._read(request, request_id)
        except DeadlinePassed:
            if not reading.is_answering:
                return TimeIsUp(reading.words)
            return (yield from self._kept(_TIME_WAS_UP))
        except HostFailure as failure:
            if not reading.has_shown and (yield from self._remedy(failure, request)):
                return None
            if failure.kind is not FailureKind.TIMEOUT or not (reading.is_answering or reading.words):
                return failure
            why = f"{failure.kind}: {failure.reason}; the part of the answer that came is kept"
            return (yield from self._kept(Quoting(why)))
        return (yield from self._ended())

    def _ended(self) -> Generator[Event, None, ModelTurn | HostFailure | None]:
        """Return the result of a stream that ended without an error; None if another try should follow."""
        reading = self.reading
        if reading.is_full:
            return (yield from reading.finish(StopReason.SIZE_LIMIT))
        why = self._loss()
        if why:
            is_tried = self._has_repeated or self.has_one_try or self.span.deadline.has_passed()
            is_lost = not (is_tried or reading.calls or reading.has_shown)
            if is_lost:
                self._has_repeated = True
                yield self._note(f"{why}: it is asked for once more")
                return None
            yield self._note(f"{why}: it is taken as it came")
        if reading.is_empty and self.caller.models.can_replace(self.model):
            return HostFailure(_RETURNED_NOTHING)
        return (yield from reading.finish())

    def _loss(self) -> str:
        """Return the reason why a part of the turn is missing; "" if it is complete."""
        if self.reading.was_cut_off:
            return "the stream ended with neither finish reason nor usage, so it was cut"
        if self.reading.lost_calls:
            return "the finish reason says that the turn has tool calls, and none came"
        if self.reading.is_empty:
            return _RETURNED_NOTHING
        return ""

    def _read(self, request: ModelRequest, request_id: str) -> Iterator[Event]:
        """Read the whole stream. Secrets that the model passes on are registered before more of its text is shown."""
        caller = self.caller
        reading = self.reading
        try:
            for chunks in caller.host.stream_model(request, request_id, reading.seconds_left, self.span.end.left()):
                if reading.began_at is None:
                    reading.began_at = self.caller.clock.now()
                    self.caller.models.wait.served(self._refusals_before)
                yield from reading.read(chunks)
                if reading.is_full:
                    yield self._note("the turn is as long as one turn may be (docs/limits.md): the rest is not read")
                    break
        finally:
            for call in reading.calls:
                caller.secrets.learn(given_secrets(call, caller.toolbox))

    def _kept(self, note: Sentence) -> Generator[Event, None, ModelTurn]:
        """Keep the beginning of an answer that stalled. The note says why the answer ends early."""
        turn = yield from self.reading.finish(StopReason.TIME_LIMIT)
        yield LogNote(note, self.span.key)
        return turn

    def _remedy(self, failure: HostFailure, request: ModelRequest) -> Generator[Event, None, bool]:
        """Wait, shorten the prompt or descriptions, or drop thinking or opaque bodies, so that a retry may succeed.

        Returns whether a retry makes sense. A retry makes no sense if the run has switched to the fallback model in the
        meantime. The request shows whether thinking or opaque bodies were sent: another conversation of the run may
        have dropped them since.
        """
        caller = self.caller
        if self.has_one_try or self.model is not caller.models.now:
            return False
        if failure.misses_thinking:
            return (yield from self._stop_thinking(request))
        if failure.refuses_long_description and with_short_descriptions(request.tools) is not request.tools:
            caller.models.cut_descriptions()
            yield self._note("the provider refused a long description of a tool; long descriptions are cut from now on")
            return True
        may_blame_body = failure.names_opaque_body or failure.kind in _MAY_REFUSE_A_BODY
        if may_blame_body and any(without_opaque_body(each) is not each for each in request.messages):
            caller.models.refuse_opaque_bodies()
            yield self._note("the host refused the provider's opaque bodies; the run continues without them")
            return True
        if failure.is_transient and (yield from self._wait(failure)):
            return True
        if failure.kind is FailureKind.CONTEXT_LENGTH and not self._has_shrunk:
            self._has_shrunk = True
            return (yield from self._shorten())
        return False

    def _wait(self, failure: HostFailure) -> Generator[Event, None, bool]:
        """Wait before another try, and return True; return False if no try or no time is left."""
        is_silent = not self.reading.chunks and self._silence() > MOST_SILENCE
        if is_silent and self._retries == 0:  # clients do not retry after the first chunk
            self._waits = RETRY_WAITS[:1]
        waits = self._waits[self._retries :]
        shared = SharedWait(self._refusals_before)
        if failure.kind in _SHARED:
            shared = self.caller.models.wait
        wait = shared.refused(self._refusals_before, waits, self.caller.clock)
        if shared.has_given_up or not waits or wait >= self.span.deadline.left():
            return False
        self._retries += 1
        said = str(failure.kind)
        if is_silent:
            said = f"{said}; nothing came for {self._silence():.0f} s"
        yield self._note(f"{said}; tried again after {wait:.2g} s")
        shared.pause(self.span.deadline)
        return not shared.has_given_up

    def _silence(self) -> float:
        """Return the seconds that the last try waited for its first chunk."""
        return (self.reading.began_at or self.caller.clock.now()) - self._asked_at

    def _stop_thinking(self, request: ModelRequest) -> Generator[Event, None, bool]:
        """Turn thinking off for the rest of the run if it was on in the refused request."""
        models = self.caller.models
        if models.without_thinking(request.config) is request.config:
            return False
        models.stop_thinking()
        yield self._note(
            "the provider wants thinking back that the request does not have; the run continues without thinking"
        )
        return True

    def _shorten(self) -> Generator[Event, None, bool]:
        """Summarize or cut a prompt that was too long, and return whether it is shorter now."""
        caller = self.caller
        tokens = caller.window.weigh(self.transcript).tokens
        yield from caller.make_room(self.transcript, self.span, tokens * _REMEDY_SHARE)
        if caller.window.weigh(self.transcript).tokens <= tokens * _REMEDY_SHARE:
            return True
        notes = list(caller.window.shrink(self.transcript))
        yield from (LogNote(note, self.span.key) for note in notes)
        return bool(notes)

    def _note(self, words: str) -> LogNote:
        return LogNote(OurWords(words), self.span.key)

    def _used(self) -> Usage:
        """Return the usage of the last try. The run's budget also counts an estimate of unreported tokens."""
        reading = self.reading
        usage = Usage.of(self.reading.usage)
        prompt = 0
        completion = 0
        if reading.chunks:
            reported = usage.total_tokens - usage.completion_tokens
            estimated = self.caller.window.weigh(self.transcript).tokens
            if 2 * reported < estimated:
                prompt = estimated - reported
                self._marks["prompt_tokens_too_small"] = f"limits count an estimate of {estimated:,}"
        if reading.chunks and usage.total_tokens <= usage.prompt_tokens:
            completion = reading.estimated_tokens()
        missing = prompt + completion
        self.caller.budget.spend(usage.total_tokens + missing, is_estimate=missing > 0)
        estimate = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": missing}
        if reading.was_cut_off:
            return Usage.of().model_copy(update=estimate)
        return usage


def given_secrets(call: ToolCall, toolbox: Toolbox) -> Iterator[str]:
    """Yield the model's values for a tool's ``secret-input`` parameters, even in a call that will not run."""
    tool = toolbox.tools.get(call.name)
    secret = []
    if tool:
        secret = [parameter for parameter in tool.parameters.values() if parameter.is_secret]
    names = list(dict.fromkeys(name for parameter in secret for name in (parameter.name, parameter.own_name)))
    if call.parsed.ok:
        yield from texts_in([call.parsed.args.get(name) for name in names])
    elif names:
        # A bare name counts only at the beginning of a pair; elsewhere it is a word of a text.
        name = "|".join(map(re.escape, names))
        written = rf"""(?:(?P<quote>["'])(?:{name})(?P=quote)|(?:^|[{{,])\s*(?:{name}))\s*[:=]\s*"""
        value = r"""(?:"(?P<text>(?:[^"\\]|\\.)*+)|'(?P<python>(?:[^'\\]|\\.)*+)|(?P<bare>[^\s"'{}\[\],;]++))"""
        for found in re.finditer(written + value, call.arguments):
            given = found["text"] or found["python"] or found["bare"] or ""
            yield given
            with contextlib.suppress(ValueError):
                yield json.loads(f'"{given}"')
