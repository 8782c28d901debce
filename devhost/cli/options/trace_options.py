"""--trace: writes the messages of a run to a file, without secrets."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import click

from devhost.cli.options.model_options import KEY
from devhost.errors import HostError
from devhost.flow.traces.writing import FlowTrace
from devhost.flow.view.facts import FlowFacts
from devhost.models.backend import ModelDescription
from devhost.process.transports.transport import TransportName
from devhost.process.watcher import Watcher
from devhost.protocol.wire import JsonObject
from devhost.scenario.scenario import Scenario
from devhost.text.secrets import Secrets
from devhost.tools.setup import ToolSetup
from devhost.trace.writer import UNKNOWN_FACTS, TraceWriter

TRACE = click.Path(dir_okay=False, path_type=Path)
trace_argument = click.argument("trace_file", metavar="TRACE", type=TRACE)
trace_option = click.option(
    "--trace",
    "trace_file",
    metavar="FILE",
    type=TRACE,
    help="Write every message both ways to a file of JSON lines, without credentials, for replay and report.",
)
tool_trace_option = click.option(
    "--trace",
    "trace_file",
    metavar="FILE",
    type=TRACE,
    help="Write every message both ways to a file of JSON lines, without credentials; only runs can be replayed.",
)


@contextmanager
def traced(  # noqa: PLR0913 - the facts of a trace's first line
    file: Path | None,
    scenario: Scenario,
    model: ModelDescription,
    transport: TransportName,
    *,
    command: Literal["run", "chat"],
    query: str | None = None,
    guesses: Iterable[str] = (),
) -> Iterator[Watcher]:
    """A `TraceWriter`, told of the guesses; without a file, a watcher that does nothing."""
    if file is None:
        yield Watcher()
        return
    facts = {
        "command": command,
        "example": scenario.name,
        "description": scenario.description,
        "strategy": scenario.strategy.identity.name,
        "transport": transport,
        "model": _described(model),
        "query": query,
    }
    with TraceWriter(file, trace_secrets(scenario), facts) as writer:
        for guess in guesses:
            writer.notice(guess)
        yield writer


@contextmanager
def tool_traced(
    file: Path | None, tool: str, setup: ToolSetup, model: ModelDescription, transport: TransportName
) -> Iterator[Watcher]:
    """As `traced`, of one call of a tool; the trace says why there was none."""
    if file is None:
        yield Watcher()
        return
    facts = {"command": "tool", "tool": tool, "transport": transport, "model": _described(model)}
    with TraceWriter(file, _secrets([setup], os.environ), {**UNKNOWN_FACTS, **facts}) as writer:
        for notice in setup.notices:
            writer.notice(notice)
        try:
            yield writer
        except HostError as error:
            writer.notice(f"the call did not come to its end: {error}")
            raise


@contextmanager
def flow_traced(
    file: Path | None, facts: FlowFacts, secrets: Iterable[str], transport: TransportName, notices: Iterable[str]
) -> Iterator[FlowTrace]:
    """Told of the notices; without a file it does nothing."""
    if file is None:
        yield FlowTrace()
        return
    header = {"command": "flow", "example": facts.name, "transport": transport, "query": facts.query}
    hidden = Secrets([*secrets, os.environ.get(KEY, "").strip()])
    with TraceWriter(file, hidden, {**UNKNOWN_FACTS, **header}) as writer:
        for notice in notices:
            writer.notice(notice)
        yield FlowTrace(writer)


def _described(model: ModelDescription) -> JsonObject:
    return {"name": model.name, "provider": model.provider, "scripted": model.scripted, "notice": model.notice}


def trace_secrets(scenario: Scenario, environment: Mapping[str, str] | None = None) -> Secrets:
    """The secret credentials and parameters of the tools, and the model's key."""
    return _secrets(scenario.tools, os.environ if environment is None else environment)


def _secrets(setups: Iterable[ToolSetup], environment: Mapping[str, str]) -> Secrets:
    return Secrets([*(value for setup in setups for value in setup.secrets), environment.get(KEY, "").strip()])
