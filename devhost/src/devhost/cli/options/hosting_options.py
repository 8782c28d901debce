"""The options about the plugin's process, the model, traces and spans, each group as one value."""

import functools
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import click

from devhost.errors import HostError, ParameterError, TraceError
from devhost.files import SENT, run_folder
from devhost.host.backwards import PluginStorage
from devhost.host.host import Host
from devhost.limits import HostLimits
from devhost.models.backend import ModelDescription
from devhost.models.catalog import DEFAULT_MODEL
from devhost.models.scripted.model import ScriptedModel
from devhost.models.scripted.script import Script
from devhost.process.session import Watcher
from devhost.process.transports.transport import TransportName
from devhost.protocol.wire import JsonObject
from devhost.scenario import Scenario, parse_assignments
from devhost.text import Secrets
from devhost.tools.setup import ToolSetup
from devhost.trace.lines import UNKNOWN_FACTS, TraceWriter, read_trace
from devhost.words import counted

if TYPE_CHECKING:
    from devhost.models.openai_api.backend import OpenAIModel
    from devhost.models.openai_api.provider import Api


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


# Which model answers: one behind an API if a key or a base URL is set, else the example's script.
#
# The script needs no `openai`, so that it is imported only where a real model is chosen.

KEY, BASE_URL = "OPENAI_API_KEY", "OPENAI_BASE_URL"


def model_options(command: Callable[..., int]) -> Callable[..., int]:
    """The options as one argument `model_options` of the command."""

    @click.option(
        "--api",
        type=click.Choice(["responses", "chat"]),
        help="OpenAI's Responses API (default), or Chat Completions, which other servers have too.",
    )
    @click.option("--model", "name", metavar="NAME", help=f"The model; with OpenAI itself {DEFAULT_MODEL} by default.")
    @click.option(
        "--completion",
        metavar="KEY=VALUE",
        multiple=True,
        help="A parameter of the model, such as reasoning_effort=low or reasoning_summary=auto; repeatable.",
    )
    @click.option(
        "--features",
        metavar="A,B",
        help="What the model supports, in Dify's names: tool-call, multi-tool-call, stream-tool-call, vision, …",
    )
    @click.option("--scripted", is_flag=True, help=f"Answer from the script even if {KEY} or {BASE_URL} is set.")
    @functools.wraps(command)
    def with_model_options(
        *,
        api: "Api | None",
        name: str | None,
        completion: tuple[str, ...],
        features: str | None,
        scripted: bool,
        **options: object,
    ) -> int:
        return command(**options, model_options=ModelOptions(api, name, completion, features, scripted))

    return with_model_options


@dataclass(frozen=True)
class ModelOptions:
    api: "Api | None" = None
    name: str | None = None
    completion: tuple[str, ...] = ()
    features: str | None = None
    scripted: bool = False

    def choose(
        self,
        script: Script | None,
        question: str,
        environment: Mapping[str, str] | None = None,
        *,
        asked: int = 0,
    ) -> "ScriptedModel | OpenAIModel":
        """`asked`: how often the conversation had this question before; a script may answer it differently."""
        environment = os.environ if environment is None else environment
        if not self.asks_the_script(environment):
            return self.open(environment)
        self.refuse_for_a_script()
        if script is None:
            raise ParameterError(f"no model is configured: give --example NAME or --script FILE, or set {KEY}")
        return ScriptedModel.from_script(script, query=question, asked=asked)

    def open(self, environment: Mapping[str, str], name: str | None = None) -> "OpenAIModel":
        """A model behind an API; `name` counts where the options name none."""
        try:
            from devhost.models.openai_api.backend import open_model  # noqa: PLC0415 - see above
        except ModuleNotFoundError as error:
            raise ParameterError(
                f"a model behind an API needs the package {error.name}: pip install 'dify-devhost[openai]'"
            ) from error
        return open_model(
            key=environment.get(KEY, "").strip(),
            base_url=environment.get(BASE_URL, "").strip(),
            api=self.api or "responses",
            name=self.name or name,
            completion_params=self._completion_params(),
            features=self._features(),
        )

    def asks_the_script(self, environment: Mapping[str, str] | None = None) -> bool:
        """Whether no API is called: --scripted is given, or neither a key nor a base URL is set."""
        environment = os.environ if environment is None else environment
        return self.scripted or not any(environment.get(name, "").strip() for name in (KEY, BASE_URL))

    def refuse_for_a_script(self) -> None:
        """ParameterError for an option that a scripted model would ignore."""
        given = {
            "--api": self.api,
            "--model": self.name,
            "--completion": self.completion,
            "--features": self.features,
        }
        for option, value in given.items():
            if value:
                reason = "--scripted asks for the script" if self.scripted else f"neither {KEY} nor {BASE_URL} is set"
                raise ParameterError(f"{option} is for a model behind an API, but {reason}")

    def _completion_params(self) -> dict[str, object]:
        return parse_assignments(self.completion, option="--completion")

    def _features(self) -> tuple[str, ...] | None:
        if self.features is None:
            return None
        return tuple(feature.strip() for feature in self.features.split(",") if feature.strip())


# --otlp and --otlp-contents: the run as OpenTelemetry spans, sent when it is over, whether it failed or not.


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
        try:
            from devhost.telemetry import endpoint  # noqa: PLC0415 - OpenTelemetry takes half a second to import
        except ModuleNotFoundError as error:
            raise ParameterError(f"--otlp needs the package {error.name}: pip install 'dify-devhost[otlp]'") from error

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
        from devhost.telemetry import agent_spans, send, shown  # noqa: PLC0415 - as above

        trace = read_trace(file)
        sent = send(agent_spans(trace, contents=self.contents), trace.header.started, address)
        click.echo(f"sent {counted(sent, 'span')} to {shown(address)}", err=True)


# --trace: writes the messages of a run to a file, without secrets.

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


def _described(model: ModelDescription) -> JsonObject:
    return {"name": model.name, "provider": model.provider, "scripted": model.scripted, "notice": model.notice}


def trace_secrets(scenario: Scenario, environment: Mapping[str, str] | None = None) -> Secrets:
    """The secret credentials and parameters of the tools, and the model's key."""
    return _secrets(scenario.tools, os.environ if environment is None else environment)


def _secrets(setups: Iterable[ToolSetup], environment: Mapping[str, str]) -> Secrets:
    return Secrets([*(value for setup in setups for value in setup.secrets), environment.get(KEY, "").strip()])
