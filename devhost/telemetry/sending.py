"""Sends spans to an OTLP server over HTTP, with the OpenTelemetry SDK's own exporter."""

from collections.abc import Iterable
from datetime import datetime
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from devhost.errors import ParameterError, TelemetryError
from devhost.telemetry.spans import AgentSpan

PATH = "/v1/traces"
NANOSECONDS = 1_000_000_000
PATIENCE = 10
"""Seconds for the server to take the spans."""
NAME = "devhost"


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
    provider = TracerProvider(resource=Resource.create({"service.name": NAME}))
    tracer = provider.get_tracer(NAME)
    finished: list[ReadableSpan] = []
    for span in spans:
        _make(span, tracer, int(began.timestamp() * NANOSECONDS), None, finished)
    exporter = OTLPSpanExporter(endpoint=address, timeout=PATIENCE)
    try:
        if exporter.export(finished) is not SpanExportResult.SUCCESS:
            raise TelemetryError(f"--otlp: no OTLP server took the spans at {shown(address)}")
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call] # the SDK's
    return len(finished)


def _make(span: AgentSpan, tracer: Tracer, began: int, parent: Span | None, finished: list[ReadableSpan]) -> None:
    made = tracer.start_span(
        span.name,
        context=None if parent is None else set_span_in_context(parent),
        kind=SpanKind.CLIENT if span.is_client else SpanKind.INTERNAL,
        attributes=dict(span.attributes),
        start_time=began + int(span.began * NANOSECONDS),
    )
    for child in span.children:
        _make(child, tracer, began, made, finished)
    if span.error is not None:
        made.set_status(Status(StatusCode.ERROR, span.error or None))
    made.end(began + int(span.ended * NANOSECONDS))
    if isinstance(made, ReadableSpan):
        finished.append(made)
