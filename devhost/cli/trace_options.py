"""--trace: writes the messages of a run to a file, without secrets."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import click

from devhost.cli.model_options import KEY
from devhost.models.backend import ModelDescription
from devhost.process.transports.transport import TransportName
from devhost.process.watcher import Watcher
from devhost.scenario.scenario import Scenario
from devhost.text.secrets import Secrets
from devhost.trace.writer import TraceWriter

trace_option = click.option(
    "--trace",
    "trace_file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write every message both ways to a file of JSON lines, without credentials, for replay and report.",
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
        "model": {
            "name": model.name,
            "provider": model.provider,
            "scripted": model.scripted,
            "notice": model.notice,
        },
        "query": query,
    }
    with TraceWriter(file, trace_secrets(scenario), facts) as writer:
        for guess in guesses:
            writer.notice(guess)
        yield writer


def trace_secrets(scenario: Scenario, environment: Mapping[str, str] | None = None) -> Secrets:
    """The secret credentials and parameters of the tools, and the model's key."""
    environment = os.environ if environment is None else environment
    of_tools = [value for setup in scenario.tools for value in setup.secrets]
    return Secrets([*of_tools, environment.get(KEY, "").strip()])
