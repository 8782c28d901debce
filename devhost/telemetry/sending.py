"""Sends spans to an OTLP server over HTTP, with the OpenTelemetry SDK's own exporter."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from devhost.errors import ParameterError, TelemetryError
from devhost.telemetry.spans import AgentSpan

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
