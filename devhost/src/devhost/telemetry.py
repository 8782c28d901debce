"""A trace as OpenTelemetry spans, by OpenTelemetry's conventions for generative AI."""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai
from opentelemetry.semconv.attributes.error_attributes import ERROR_TYPE
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from devhost.errors import ParameterError, TelemetryError
from devhost.trace.lines import Trace
from devhost.trace.runs import Call, TracedRun, run_of, traced_runs, written_calls
from devhost.trace.timeline import Span, timeline

# The spans of a trace: `invoke_agent`, `chat` and `execute_tool`, with tokens; contents only where they are asked
# for.
#
# Names and attributes follow the semantic conventions for generative AI (the package opentelemetry-semantic-
# conventions). Groups of the log, such as rounds and subtasks, are not spans: their calls stand under what contains
# the group.

type Attribute = str | int | float | bool | Sequence[str]
FAILED = "_OTHER"
"""The conventions' error type where none is known."""


@dataclass(frozen=True)
class AgentSpan:
    """Times are seconds since the trace began."""

    name: str
    is_client: bool
    """Whether it calls out of the agent, as a model call does."""
    began: float
    ended: float
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    error: str | None = None
    """Its words, which are empty without contents; None if it did not fail."""
    children: tuple["AgentSpan", ...] = ()


def agent_spans(trace: Trace, *, contents: bool) -> tuple[AgentSpan, ...]:
    """A span for each run."""
    return tuple(_of_run(trace, run, contents=contents) for run in traced_runs(trace))


def _of_run(trace: Trace, run: TracedRun, *, contents: bool) -> AgentSpan:
    strategy = trace.header.strategy
    outcome = run_of(run, strategy)
    usage = outcome.calls.spent
    attributes: dict[str, Attribute] = {
        gen_ai.GEN_AI_OPERATION_NAME: "invoke_agent",
        gen_ai.GEN_AI_AGENT_NAME: strategy,
        gen_ai.GEN_AI_PROVIDER_NAME: _provider(trace.header.model.provider),
        gen_ai.GEN_AI_REQUEST_MODEL: trace.header.model.name,
        gen_ai.GEN_AI_USAGE_INPUT_TOKENS: _whole(usage.get("prompt_tokens")),
        gen_ai.GEN_AI_USAGE_OUTPUT_TOKENS: _whole(usage.get("completion_tokens")),
    }
    if contents:
        attributes[gen_ai.GEN_AI_INPUT_MESSAGES] = _messages("user", run.question)
        attributes[gen_ai.GEN_AI_OUTPUT_MESSAGES] = _messages("assistant", outcome.outputs.text)
    error = None
    if outcome.error is not None:
        attributes[ERROR_TYPE] = outcome.error.kind
        error = outcome.error.message if contents else ""
    children = tuple(_of_spans(timeline(run), trace, run.finished, contents=contents))
    return AgentSpan(f"invoke_agent {strategy}", False, run.began, run.finished, attributes, error, children)  # noqa: FBT003 - a field


def _of_spans(spans: Iterable[Span], trace: Trace, finished: float, *, contents: bool) -> Iterator[AgentSpan]:
    for span in spans:
        inner = tuple(_of_spans(span.children, trace, finished, contents=contents))
        if not span.calls:
            yield from inner
            continue
        *earlier, last = span.calls
        for call in earlier:
            yield _of_call(call, span, trace, finished, contents=contents)
        yield _of_call(last, span, trace, finished, contents=contents, children=inner)


def _of_call(  # noqa: PLR0913 - what surrounds a call
    call: Call, span: Span, trace: Trace, finished: float, *, contents: bool, children: tuple[AgentSpan, ...] = ()
) -> AgentSpan:
    is_model = call.kind == "llm"
    operation = "chat" if is_model else "execute_tool"
    attributes: dict[str, Attribute] = {gen_ai.GEN_AI_OPERATION_NAME: operation}
    attributes |= _of_model(call, trace, contents=contents) if is_model else _of_tool(call, span, contents=contents)
    error = None
    if call.error:
        attributes[ERROR_TYPE] = FAILED
        error = call.error if contents else ""
    ended = finished if call.ended is None else call.ended
    return AgentSpan(f"{operation} {call.name}", is_model, call.began, ended, attributes, error, children)


def _of_model(call: Call, trace: Trace, *, contents: bool) -> dict[str, Attribute]:
    usage = call.usage
    attributes: dict[str, Attribute] = {
        gen_ai.GEN_AI_PROVIDER_NAME: _provider(str(call.request.get("provider") or trace.header.model.provider)),
        gen_ai.GEN_AI_REQUEST_MODEL: call.name,
        gen_ai.GEN_AI_RESPONSE_MODEL: call.name,
        gen_ai.GEN_AI_USAGE_INPUT_TOKENS: _whole(usage.get("prompt_tokens")),
        gen_ai.GEN_AI_USAGE_OUTPUT_TOKENS: _whole(usage.get("completion_tokens")),
    }
    reasons = [str(reason) for piece in call.pieces if (reason := _delta(piece.data).get("finish_reason"))]
    if reasons:
        attributes[gen_ai.GEN_AI_RESPONSE_FINISH_REASONS] = reasons
    if contents:
        attributes[gen_ai.GEN_AI_INPUT_MESSAGES] = json.dumps(call.request.get("prompt_messages"), ensure_ascii=False)
        attributes[gen_ai.GEN_AI_OUTPUT_MESSAGES] = _answer(call)
    return attributes


def _of_tool(call: Call, span: Span, *, contents: bool) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {gen_ai.GEN_AI_TOOL_NAME: call.name, gen_ai.GEN_AI_TOOL_TYPE: "function"}
    if given := span.data.get("tool_call_id"):
        attributes[gen_ai.GEN_AI_TOOL_CALL_ID] = str(given)
    if contents:
        parameters, results = call.request.get("tool_parameters"), [piece.data for piece in call.pieces]
        attributes[gen_ai.GEN_AI_TOOL_CALL_ARGUMENTS] = json.dumps(parameters, ensure_ascii=False)
        attributes[gen_ai.GEN_AI_TOOL_CALL_RESULT] = json.dumps(results, ensure_ascii=False)
    return attributes


def _provider(name: str) -> str:
    """Dify's `langgenius/openai/openai` is `openai`."""
    return name.rpartition("/")[2]


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _delta(data: Mapping[str, object]) -> Mapping[str, object]:
    delta = data.get("delta")
    return delta if isinstance(delta, dict) else {}


def _messages(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}], ensure_ascii=False)


def _answer(call: Call) -> str:
    """In the conventions' form: one message, whose parts are its text and its tool calls."""
    contents = [_content(_delta(piece.data).get("message")) for piece in call.pieces]
    parts: list[dict[str, object]] = [{"type": "text", "content": text}] if (text := "".join(contents)) else []
    parts += [
        {"type": "tool_call", "id": each.id, "name": each.name, "arguments": each.values}
        for each in written_calls(call)
    ]
    return json.dumps([{"role": "assistant", "parts": parts}], ensure_ascii=False)


def _content(message: object) -> str:
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, str) else ""


# Sends spans to an OTLP server over HTTP, with the OpenTelemetry SDK's own exporter.

PATH = "/v1/traces"
NANOSECONDS = 1_000_000_000
PATIENCE = 10
"""Seconds for the server to take the spans."""
NAME = "devhost"
IDS = RandomIdGenerator()


def endpoint(url: str) -> str:
    """`http://localhost:4318` gets OTLP's own path; ParameterError for what is not an HTTP address."""
    try:
        parts = urlsplit(url)
        if parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0:
            return url if parts.path.strip("/") else f"{url.rstrip('/')}{PATH}"
    except ValueError:
        pass  # a port that is not a number
    raise ParameterError(f"--otlp {url!r} is not the address of an OTLP server, such as http://localhost:4318")


def shown(address: str) -> str:
    """Without a name and a password."""
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def send(spans: Iterable[AgentSpan], began: datetime, address: str) -> int:
    """How many spans were sent; TelemetryError if the server did not take them."""
    resource = Resource.create({"service.name": NAME})
    origin = int(began.timestamp() * NANOSECONDS)
    finished: list[ReadableSpan] = []
    for span in spans:
        finished += _Export(resource, origin, IDS.generate_trace_id()).of(span)
    logging.getLogger(OTLPSpanExporter.__module__).disabled = True  # it shows an address with its password
    exporter = OTLPSpanExporter(endpoint=address, timeout=PATIENCE)
    try:
        if exporter.export(finished) is not SpanExportResult.SUCCESS:
            raise TelemetryError(f"--otlp: no OTLP server took the spans at {shown(address)}")
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call] # the SDK's
    return len(finished)


@dataclass(frozen=True)
class _Export:
    """The spans of one run as the exporter takes them, made without a TracerProvider.

    A provider starts threads in every child of a fork for as long as it lives. Under gevent, the start of a thread
    lets another greenlet run, and the child of one plugin's start would go on to start the other plugins too.
    """

    resource: Resource
    origin: int
    """Nanoseconds since 1970."""
    trace_id: int

    def of(self, span: AgentSpan, parent: SpanContext | None = None) -> Iterator[ReadableSpan]:
        """The span and all that is inside it."""
        sampled = TraceFlags(TraceFlags.SAMPLED)
        context = SpanContext(self.trace_id, IDS.generate_span_id(), is_remote=False, trace_flags=sampled)
        yield ReadableSpan(
            span.name,
            context,
            parent,
            self.resource,
            dict(span.attributes),
            kind=SpanKind.CLIENT if span.is_client else SpanKind.INTERNAL,
            status=Status(StatusCode.UNSET) if span.error is None else Status(StatusCode.ERROR, span.error or None),
            start_time=self.origin + int(span.began * NANOSECONDS),
            end_time=self.origin + int(span.ended * NANOSECONDS),
            instrumentation_scope=InstrumentationScope(NAME),
        )
        for child in span.children:
            yield from self.of(child, context)
