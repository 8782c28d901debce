"""--otlp and --otlp-contents: the run as OpenTelemetry spans, sent when it is over, whether it failed or not."""

import functools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from devhost.errors import HostError, ParameterError, TraceError
from devhost.text.counted import counted
from devhost.trace.reader import read_trace


def otlp_options(command: Callable[..., int]) -> Callable[..., int]:
    """The options as one argument `otlp_options` of the command."""

    @click.option(
        "--otlp",
        "url",
        metavar="URL",
        help="Send the run as OpenTelemetry spans to an OTLP server, such as http://localhost:4318, when it is over.",
    )
    @click.option(
        "--otlp-contents", "contents", is_flag=True, help="With --otlp: send prompts, answers and results, too."
    )
    @functools.wraps(command)
    def with_otlp_options(*, url: str | None, contents: bool, **options: object) -> int:
        return command(**options, otlp_options=OtlpOptions.of(url, contents=contents))

    return with_otlp_options


@dataclass(frozen=True)
class OtlpOptions:
    endpoint: str | None
    """None for no server."""
    contents: bool = False

    @classmethod
    def of(cls, url: str | None, *, contents: bool) -> "OtlpOptions":
        if url is None:
            if contents:
                raise ParameterError("--otlp-contents goes with --otlp URL")
            return cls(None)
        from devhost.telemetry.sending import endpoint  # noqa: PLC0415 - OpenTelemetry takes half a second to import

        return cls(endpoint(url), contents)

    @contextmanager
    def sending(self, trace_file: Path | None) -> Iterator[Path | None]:
        """The file for the trace: without one, a temporary one, because the spans are made of the trace."""
        if self.endpoint is None:
            yield trace_file
            return
        with tempfile.TemporaryDirectory(prefix="devhost-otlp-") as folder:
            file = trace_file or Path(folder) / "trace.jsonl"
            try:
                yield file
            except TraceError:  # then the file has no trace of this run
                raise
            except BaseException:
                self._try_to_send(file, self.endpoint)
                raise
            self._send(file, self.endpoint)

    def _try_to_send(self, file: Path, address: str) -> None:
        """After a failure, which the failure to send must not replace."""
        try:
            self._send(file, address)
        except HostError as error:
            click.echo(str(error), err=True)

    def _send(self, file: Path, address: str) -> None:
        from devhost.telemetry.sending import send, shown  # noqa: PLC0415 - as above
        from devhost.telemetry.spans import agent_spans  # noqa: PLC0415 - as above

        trace = read_trace(file)
        sent = send(agent_spans(trace, contents=self.contents), trace.header.started, address)
        click.echo(f"sent {counted(sent, 'span')} to {shown(address)}", err=True)
