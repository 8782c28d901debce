"""A trace as OpenTelemetry spans, which follow OpenTelemetry's conventions for generative AI."""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from pydantic import HttpUrl, TypeAdapter

from devhost.errors import HostError, ParameterError
from devhost.text import worded
from devhost.trace.lines import Trace, TraceHeader
from devhost.trace.runs import Call, TracedRun, run_of, traced_runs, written_calls
from devhost.trace.timeline import Span, timeline

# The spans `invoke_agent`, `chat` and `execute_tool`, with tokens. Contents are included only on request.
#
# Names and attributes are those of the package opentelemetry-semantic-conventions. Groups of the log, such as rounds
# and subtasks, are not spans. Their calls are children of the span that contains the group.

type Attribute = str | int | float | bool | Sequence[str]
NANOSECONDS = 1_000_000_000
NAME = "devhost"
IDS = RandomIdGenerator()
RESOURCE = Resource.create({"service.name": NAME})
CONTENTS = frozenset(
    {
        *(gen_ai.GEN_AI_INPUT_MESSAGES, gen_ai.GEN_AI_OUTPUT_MESSAGES),
        *(gen_ai.GEN_AI_TOOL_CALL_ARGUMENTS, gen_ai.GEN_AI_TOOL_CALL_RESULT),
    }
)
"""Attributes that contain what users, models and tools write."""


def agent_spans(trace: Trace, *, contents: bool) -> list[ReadableSpan]:
    """Return a span for each run, and the spans of its calls."""
    return [span for run in traced_runs(trace) for span in _RunSpans(trace.header, run, contents)]


@dataclass
class _RunSpans:
    """The spans of one run in the exporter's form, made without a TracerProvider.

    As long as a provider exists, it starts threads in every forked child. Under gevent, the start of a thread lets
    another greenlet run, so that the child of one plugin's start would start the other plugins, too.
    """

    header: TraceHeader
    run: TracedRun
    contents: bool
    id: int = field(default_factory=IDS.generate_trace_id)

    def __iter__(self) -> Iterator[ReadableSpan]:
        run = self.run
        strategy = self.header.strategy
        model = self.header.model
        outcome = run_of(run, strategy)
        attributes: dict[str, Attribute] = {
            gen_ai.GEN_AI_AGENT_NAME: strategy,
            gen_ai.GEN_AI_PROVIDER_NAME: _provider(model.provider),
            gen_ai.GEN_AI_REQUEST_MODEL: model.name,
            **_tokens(outcome.calls.spent),
            gen_ai.GEN_AI_INPUT_MESSAGES: _message("user", [{"type": "text", "content": run.question}]),
            gen_ai.GEN_AI_OUTPUT_MESSAGES: _message("assistant", [{"type": "text", "content": outcome.outputs.text}]),
        }
        if outcome.error is None:
            error = None
        else:
            error = (outcome.error.kind, outcome.error.message)
        agent = self._span("invoke_agent", strategy, (run.began, run.finished), attributes, error)
        yield agent
        yield from self._inside(timeline(run), agent.context)

    def _inside(self, spans: Iterable[Span], parent: SpanContext) -> Iterator[ReadableSpan]:
        """Yield the spans inside `parent`. If one row has several calls, its children are under the last call."""
        for span in spans:
            around = parent
            for call in span.calls:
                operation = "execute_tool"
                attributes = _of_tool(call, span)
                if call.kind == "llm":
                    operation = "chat"
                    attributes = _of_model(call, self.header.model.provider)
                times = (call.began, self.run.finished if call.ended is None else call.ended)
                error = ("_OTHER", call.error) if call.error else None  # the conventions' type for an unknown error
                made = self._span(operation, call.name, times, attributes, error, parent)
                around = made.context
                yield made
            yield from self._inside(span.children, around)

    def _span(  # noqa: PLR0913, PLR0917 - the parts of a span
        self,
        operation: str,
        name: str,
        times: tuple[float, float],
        attributes: Mapping[str, Attribute],
        error: tuple[str, str] | None,
        parent: SpanContext | None = None,
    ) -> ReadableSpan:
        """Make a span. `times` are seconds since the trace began, and `error` is a type and a message.

        This is the only place where contents are left out.
        """
        began, ended = (int(self.header.started.timestamp() * NANOSECONDS) + int(at * NANOSECONDS) for at in times)
        known = {**attributes, gen_ai.GEN_AI_OPERATION_NAME: operation}
        status = Status(StatusCode.UNSET)
        if error is not None:
            known[ERROR_TYPE], words = error
            status = Status(StatusCode.ERROR, (words or None) if self.contents else None)
        flags = TraceFlags(TraceFlags.SAMPLED)
        return ReadableSpan(
            f"{operation} {name}",
            SpanContext(self.id, IDS.generate_span_id(), is_remote=False, trace_flags=flags),
            parent,
            RESOURCE,
            {key: value for key, value in known.items() if self.contents or key not in CONTENTS},
            kind=SpanKind.CLIENT if operation == "chat" else SpanKind.INTERNAL,
            status=status,
            start_time=began,
            end_time=ended,
            instrumentation_scope=InstrumentationScope(NAME),
        )


def _of_model(call: Call, provider: str) -> dict[str, Attribute]:
    """Return the attributes of a model call. `provider` is the trace's, for a request that names none."""
    text = "".join(call.texts)
    parts: list[object] = [{"type": "text", "content": text}] if text else []
    parts += [
        {"type": "tool_call", "id": each.id, "name": each.name, "arguments": each.values}
        for each in written_calls(call)
    ]
    return {
        gen_ai.GEN_AI_PROVIDER_NAME: _provider(str(call.request.get("provider") or provider)),
        gen_ai.GEN_AI_REQUEST_MODEL: call.name,
        gen_ai.GEN_AI_RESPONSE_MODEL: call.name,
        **_tokens(call.usage),
        **({gen_ai.GEN_AI_RESPONSE_FINISH_REASONS: [call.finish_reason]} if call.finish_reason else {}),
        gen_ai.GEN_AI_INPUT_MESSAGES: json.dumps(call.prompt, ensure_ascii=False),
        gen_ai.GEN_AI_OUTPUT_MESSAGES: _message("assistant", parts),
    }


def _of_tool(call: Call, span: Span) -> dict[str, Attribute]:
    given = span.data.get("tool_call_id")
    results = [piece.data for piece in call.pieces]
    return {
        gen_ai.GEN_AI_TOOL_NAME: call.name,
        gen_ai.GEN_AI_TOOL_TYPE: "function",
        **({gen_ai.GEN_AI_TOOL_CALL_ID: str(given)} if given else {}),
        gen_ai.GEN_AI_TOOL_CALL_ARGUMENTS: json.dumps(call.arguments, ensure_ascii=False),
        gen_ai.GEN_AI_TOOL_CALL_RESULT: json.dumps(results, ensure_ascii=False),
    }


def _tokens(usage: Mapping[str, object]) -> dict[str, Attribute]:
    sides = {gen_ai.GEN_AI_USAGE_INPUT_TOKENS: "prompt_tokens", gen_ai.GEN_AI_USAGE_OUTPUT_TOKENS: "completion_tokens"}
    return {key: count if isinstance(count := usage.get(name), int) else 0 for key, name in sides.items()}


def _provider(name: str) -> str:
    """Return the provider's name without Dify's prefix: `langgenius/openai/openai` becomes `openai`."""
    return name.rpartition("/")[2]


def _message(role: str, parts: Sequence[object]) -> str:
    """Format a message as the conventions define it."""
    return json.dumps([{"role": role, "parts": parts}], ensure_ascii=False)


def endpoint(url: str) -> str:
    """Return the endpoint's URL. An address without a path, such as `http://localhost:4318`, gets OTLP's own path.

    Raises ParameterError for a text that is not an HTTP address.
    """
    words = f"--otlp {url!r} is not the address of an OTLP server, such as http://localhost:4318"
    with worded(lambda _: ParameterError(words)):
        path = TypeAdapter(HttpUrl).validate_python(url).path or ""
    if path.strip("/"):
        return url
    return f"{url.rstrip('/')}/v1/traces"


def shown(address: str) -> str:
    """Return the address without a user name and a password."""
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def send(spans: Sequence[ReadableSpan], address: str) -> None:
    """Send the spans. Raises HostError if the server does not accept them within 10 seconds."""
    logging.getLogger(OTLPSpanExporter.__module__).disabled = True  # it logs the address with its password
    exporter = OTLPSpanExporter(endpoint=address, timeout=10)
    try:
        if exporter.export(spans) is not SpanExportResult.SUCCESS:
            raise HostError(f"--otlp: no OTLP server took the spans at {shown(address)}")
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call] # the SDK has no types
