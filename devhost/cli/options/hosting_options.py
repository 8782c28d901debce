"""How the plugin is run and checked: --transport, --limit, --raw, --strict, as one value."""

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import get_args

import click

from devhost.errors import ParameterError
from devhost.files.run_folder import SENT, run_folder
from devhost.host.host import Host
from devhost.host.storage import PluginStorage
from devhost.limits import HostLimits
from devhost.process.transports.transport import TransportName
from devhost.process.watcher import Watcher
from devhost.scenario.scenario import Scenario
from devhost.scenario.settings import parse_assignments

STORAGE = "devhost-storage.json"
MOST_BYTES = 2**40
FOREVER = int(threading.TIMEOUT_MAX)
"""Seconds; no lock waits longer."""


def host_options(command: Callable[..., int]) -> Callable[..., int]:
    """`runtime_options` and --raw."""

    @runtime_options
    @click.option("--raw", is_flag=True, help="Send the parameters as they are given, not cast as Dify casts them.")
    @functools.wraps(command)
    def with_raw(*, raw: bool, host_options: HostOptions, **options: object) -> int:
        return command(**options, host_options=replace(host_options, raw=raw))

    return with_raw


def runtime_options(command: Callable[..., int]) -> Callable[..., int]:
    """The options as one argument `host_options` of the command."""

    @click.option(
        "--transport",
        type=click.Choice(get_args(TransportName.__value__)),
        default="stdio",
        help="How the plugin is run: locally (stdio), as in remote debugging (tcp) or serverless (http).",
    )
    @click.option(
        "--limit",
        "limits",
        metavar="NAME=NUMBER",
        multiple=True,
        help=f"Change a limit of the host's; repeatable. {_limits_and_defaults()}",
    )
    @click.option(
        "--storage",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help=f"Where plugins keep what they store; by default {STORAGE} beside the trace, else until the end.",
    )
    @click.option("--strict", is_flag=True, help="Exit with 1 if the run breaks a rule of Dify.")
    @functools.wraps(command)
    def with_host_options(
        *, transport: TransportName, limits: tuple[str, ...], storage: Path | None, strict: bool, **options: object
    ) -> int:
        chosen = HostOptions(transport, _limits(limits), raw=False, strict=strict, storage=storage)
        return command(**options, host_options=chosen)

    return with_host_options


@dataclass(frozen=True)
class HostOptions:
    transport: TransportName
    limits: HostLimits
    raw: bool
    strict: bool
    storage: Path | None = None

    def storage_beside(self, trace_file: Path | None) -> PluginStorage:
        """That of --storage, else one beside the trace, else one that ends with the command.

        The trace has been begun; one that is a device has nothing beside it.
        """
        beside = trace_file.with_name(STORAGE) if trace_file is not None and trace_file.is_file() else None
        return PluginStorage(self.storage or beside)


def _limits(assignments: tuple[str, ...]) -> HostLimits:
    given = {}
    known = {field.name: field for field in fields(HostLimits)}
    for name, value in parse_assignments(assignments, option="--limit").items():
        field = known.get(name.replace("-", "_"))
        if field is None:
            raise ParameterError(f"--limit {name}: unknown limit. {_limits_and_defaults()}")
        kind, words, most = (int, "whole number", MOST_BYTES) if field.type is int else (int | float, "number", FOREVER)
        # NaN is between no two numbers.
        if isinstance(value, bool) or not isinstance(value, kind) or not 0 < value <= most:
            raise ParameterError(f"--limit {name}={value!r} must be a {words} above 0, and {most:,} at most")
        given[field.name] = value
    return HostLimits(**given)


def _limits_and_defaults() -> str:
    names = ", ".join(f"{field.name.replace('_', '-')}={field.default}" for field in fields(HostLimits))
    return f"There are: {names}."


@contextmanager
def started_host(
    scenario: Scenario, options: HostOptions, watcher: Watcher, storage: PluginStorage, trace_file: Path | None
) -> Iterator[Host]:
    with (
        run_folder(scenario.name or "run", trace_file) as files,
        Host.start(
            scenario.plugin,
            tools=scenario.tools,
            files=files,
            limits=options.limits,
            transport=options.transport,
            watcher=watcher,
            storage=storage,
        ) as host,
    ):
        if trace_file is not None and trace_file.is_file():
            host.server.copies = files / SENT
        yield host
