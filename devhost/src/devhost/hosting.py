"""What a command is given: a scenario, a model, a host, and where the trace of the run goes."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

import click

from devhost.errors import ParameterError, about
from devhost.files import SENT, run_folder
from devhost.host.backwards import PluginStorage
from devhost.host.host import Host, ToolHost, find_strategy
from devhost.limits import HostLimits
from devhost.model_plugin import ModelPlugin, ModelPlugins, PluginModel
from devhost.models.backend import ModelDescription
from devhost.models.catalog import DEFAULT_MODEL
from devhost.models.scripted.model import ScriptedModel
from devhost.models.scripted.script import Script, ScriptedModelCard
from devhost.options import PLUGIN, Declared, option
from devhost.plugin.declaration import PluginDeclaration, nearest_strategy_plugin
from devhost.process.program import TransportName
from devhost.process.session import Watcher
from devhost.reach import allow_files_option, allow_http_option
from devhost.scenario import (
    AttachedFiles,
    Example,
    Scenario,
    examples_of,
    for_another_strategy,
    pairs,
    parse_assignments,
    read_tool_setups,
)
from devhost.text import Secrets, worded
from devhost.tools import mcp
from devhost.tools.setup import ToolSetup

if TYPE_CHECKING:
    from devhost.models.openai_api.backend import OpenAIModel
    from devhost.models.openai_api.provider import Api

# What is run: which strategy of which plugin, with which tools, by which script.

CREDENTIAL = "A credential of a tool provider; else the variable PROVIDER_KEY, upper case, is read. Repeatable."
EXAMPLES = "The folder of the examples; by default the plugin's examples/, or else those of devhost."


def credential_option(words: str = CREDENTIAL) -> Declared:
    return option("--credential PROVIDER.KEY=VALUE...", words, hidden=True)


def mcp_option(use: str = ", whose tools the agent gets as from Dify") -> Declared:
    words = (
        f"An MCP server{use}: a command that starts it, or its address. --credential NAME.KEY=VALUE gives the command "
        "a variable, or the address a header. Repeatable."
    )
    return option("--mcp [NAME=]COMMAND|URL...", words)


def uninstalled_option() -> Declared:
    return option(
        "--no-install", "Make no .venv in the folder of a plugin that needs packages which devhost's Python lacks."
    )


@dataclass(frozen=True)
class ScenarioOptions:
    example: str | None = option("--example NAME", "An example of examples/: its tools and its script.")
    scenario: str | None = option("--scenario NAME", "Another script of the example's scenarios/.")
    script: Path | None = option("--script FILE", "A script, instead of the example's.")
    tools: tuple[Path, ...] = option(
        "--tools DIR...", "A Dify tool plugin for the agent, beside the example's; repeatable."
    )
    servers: tuple[str, ...] = mcp_option()
    credentials: tuple[str, ...] = credential_option()
    settings: tuple[str, ...] = option(
        "--set TOOL.PARAM=VALUE...", "Fix a tool's parameter, as the node's panel does. Repeatable.", hidden=True
    )
    files: tuple[Path, ...] = option(
        "--file PATH...", "A file for the first question, instead of the script's. Repeatable."
    )
    strategy: str | None = option("--strategy NAME", "The strategy; the plugin's first one by default.")
    parameters: tuple[str, ...] = option("--param KEY=VALUE...", "Set a parameter of the strategy; repeatable.")
    variables: tuple[str, ...] = option("--variable NODE.NAME=VALUE...", "A variable of the workflow. Repeatable.")
    plugin: Path | None = option("--plugin DIR", PLUGIN)
    package: Path | None = option("--package FILE", "The strategy plugin as a .difypkg.")
    examples: Path | None = option("--examples DIR", EXAMPLES)
    http: bool = allow_http_option()
    folders: tuple[Path, ...] = allow_files_option()

    def read(
        self, *, limits: HostLimits, environment: MutableMapping[str, str] = os.environ, validated: bool = True
    ) -> Scenario:
        """Credentials are removed from the environment. An error has the name of the field that it is about."""
        if self.scenario is not None and (self.example is None or self.script is not None):
            raise ParameterError("--scenario names a script of an --example, and goes without --script")
        with about("plugin"):
            declaration = strategy_plugin(self.folder, self.package)
        with about("script"):
            example = self.read_example()
        script = self.read_script(self.strategy)
        written_for = None if script is None else script.first_strategy
        known = self.strategy or (written_for if written_for in declaration.strategies else None)
        with about("strategy"):
            _, strategy = find_strategy(declaration, known or next(iter(declaration.strategies)))
        notice = ""
        if known is None and script is not None:
            if written_for is None:
                script = self.read_script(strategy.identity.name)
            else:
                script, notice = for_another_strategy(script, strategy, written_for)
        with about("tools"):
            directories = self.tools if example is None else (example.directory, *self.tools)
            panel = {} if script is None else script.panel
            written = () if script is None else script.mcp
            servers, of_plugins = mcp.read_servers((*written, *self.servers), self.credentials)
            tools = read_tool_setups(directories, of_plugins, self.settings, environment, panel, validated=validated)
        with about("files"):
            attached = AttachedFiles.of(script, self.files, limits)
        return Scenario(
            name="" if example is None else example.name,
            script=script,
            plugin=declaration,
            strategy=strategy,
            tools=tuple(tools),
            servers=servers,
            given={},
            given_variables=parse_assignments(self.variables, option="--variable"),
            attached=attached,
            notice=notice,
        ).with_settings(self.parameters)

    def read_example(self) -> Example | None:
        if self.example is None:
            return None
        return Example.find(self.examples or examples_of(self.folder), self.example, self.scenario)

    def read_script(self, strategy: str | None) -> Script | None:
        """With its turns for this strategy; without one for the script's own."""
        with about("script"):
            example = None if self.script is not None else self.read_example()
            file = self.script or (None if example is None else example.file)
            if file is None:
                return None
            return Script.read(file, strategy)

    @property
    def sources(self) -> tuple[Path, ...]:
        """The files and folders that a person edits."""
        example = self.read_example()
        found = (self.folder, None if example is None else example.directory, *self.tools, self.script)
        return tuple(path for path in found if path is not None)

    @cached_property
    def folder(self) -> Path:
        """That of the strategy plugin; a package is unpacked until the command ends."""
        if self.package is None:
            if self.plugin is None:
                return nearest_strategy_plugin()
            return self.plugin
        if self.plugin is not None:
            raise ParameterError("--plugin and --package each name the strategy plugin: leave out one of them")
        from devhost.package import opened_package  # noqa: PLC0415 - with the rules of `devhost check`

        return click.get_current_context().with_resource(opened_package(self.package))


def strategy_plugin(folder: Path, package: Path | None = None) -> PluginDeclaration:
    """`package`: the package from which the folder was unpacked."""
    declaration = PluginDeclaration.read(folder, is_unpacked=package is not None)
    if not declaration.strategies:
        remedy = "a plugin with tools is given with --tools DIR, unpacked"
        raise ParameterError(f"{package or folder} has no agent strategy; {remedy}")
    return declaration


# How the plugin's process is run.

STORAGE = "devhost-storage.json"
LIMITS = ", ".join(f"{name.replace('_', '-')}={str(value).lower()}" for name, value in HostLimits())
"""With their defaults."""


def _limits(assignments: tuple[str, ...]) -> HostLimits:
    given = parse_assignments(assignments, option="--limit")
    with worded(lambda why: ParameterError(f"--limit: {why}. There are: {LIMITS}")):
        return HostLimits.model_validate({name.replace("-", "_"): value for name, value in given.items()})


@dataclass(frozen=True)
class HostOptions:
    transport: TransportName = option(
        "--transport [stdio|tcp|http]",
        "How the plugin is run: locally (stdio), as in remote debugging (tcp) or serverless (http).",
        default="stdio",
    )
    limits: HostLimits = option(
        "--limit NAME=NUMBER...",
        f"Change a limit of the host's; repeatable. There are: {LIMITS}.",
        callback=lambda _context, _option, given: _limits(given),
    )
    storage: Path | None = option(
        "--storage FILE",
        f"Where plugins keep what they store; by default {STORAGE} beside the trace, else until the end.",
    )
    uninstalled: bool = uninstalled_option()
    strict: bool = option("--strict", "Exit with 1 if the run breaks a rule of Dify, or a tool its output_schema.")

    def storage_beside(self, trace_file: Path | None) -> PluginStorage:
        """That of --storage, else one beside the trace, else one that ends with the command.

        The trace has been begun; one that is a device has nothing beside it.
        """
        beside = trace_file.with_name(STORAGE) if trace_file is not None and trace_file.is_file() else None
        return PluginStorage(self.storage or beside)


def started_host(
    scenario: Scenario, options: HostOptions, watcher: Watcher, storage: PluginStorage, trace_file: Path | None
) -> AbstractContextManager[Host]:
    begin = partial(Host.start, scenario.plugin, tools=scenario.tools, servers=scenario.servers)
    begin = partial(begin, transport=options.transport, watcher=watcher, storage=storage)
    return started(begin, scenario.name or "run", options, trace_file)


@contextmanager
def started[H: ToolHost](
    begin: Callable[..., H], name: str, options: HostOptions, trace_file: Path | None
) -> Iterator[H]:
    """With the files of its runs beside the trace, if there is one."""
    limits = options.limits
    installs = not options.uninstalled
    with run_folder(name, trace_file) as files, begin(files=files, limits=limits, installs=installs) as host:
        if trace_file is not None and trace_file.is_file():
            host.server.copies = files / SENT
        yield host


# Which model answers: one of a model plugin if there is one, one behind an API if a key or a base URL is set, else the
# script.
#
# The script needs no `openai`, so that it is imported only where a real model is chosen.

KEY = "OPENAI_API_KEY"
BASE_URL = "OPENAI_BASE_URL"


@dataclass(frozen=True)
class PluginModelOptions:
    name: str | None = option("--model NAME", f"The model; with OpenAI itself {DEFAULT_MODEL} by default.")
    completion: tuple[str, ...] = option("--completion KEY=VALUE...", "A parameter of the model; repeatable.")
    model_credentials: tuple[str, ...] = option(
        "--model-credential KEY=VALUE...",
        "A credential of the model plugin; else the variable PROVIDER_KEY, upper case, is read. Repeatable.",
        hidden=True,
    )
    unvalidated: bool = option("--no-validate", "Do not ask plugins whether their credentials are right.")
    uninstalled: bool = uninstalled_option()
    plugins: ModelPlugins = field(default_factory=ModelPlugins, repr=False, compare=False)

    def of_plugin(
        self, directory: Path, environment: MutableMapping[str, str] = os.environ, name: str | None = None
    ) -> PluginModel:
        """`name` counts where the options name none."""
        completion = parse_assignments(self.completion, option="--completion")
        return self.start(directory, environment).model(self.name or name, completion)

    @property
    def given_credentials(self) -> dict[str, str]:
        return dict(pairs(self.model_credentials, "--model-credential", hidden=True))

    def start(self, directory: Path, environment: MutableMapping[str, str] = os.environ) -> ModelPlugin:
        kept = {"validated": not self.unvalidated, "installs": not self.uninstalled}
        return self.plugins.start(directory, self.given_credentials, environment, **kept)


@dataclass(frozen=True)
class ModelOptions(PluginModelOptions):
    model_plugin: Path | None = option("--model-plugin DIR", "A Dify model plugin, whose model --model names, answers.")
    api: "Api | None" = option("--api [responses|chat]", "Responses (default), or Chat Completions.")
    features: str | None = option("--features A,B", "What the model supports, in Dify's names: tool-call, vision, …")
    scripted: bool = option("--scripted", f"Answer from the script even if {KEY} or {BASE_URL} is set.")

    def choose(
        self,
        script: Script | None,
        question: str,
        environment: MutableMapping[str, str] = os.environ,
        *,
        asked: int = 0,
    ) -> "ScriptedModel | OpenAIModel | PluginModel":
        """`asked`: how often the conversation had this question before; a script may answer it differently."""
        options = self if script is None else self.or_of_script(script.model)
        if not options.asks_the_script(environment):
            return options.open(environment)
        self.refuse_for_a_script()
        if script is None:
            raise ParameterError(f"no model is configured: give --example, --script or --model-plugin, or set {KEY}")
        return ScriptedModel.from_script(script, query=question, asked=asked)

    def or_of_script(self, card: ScriptedModelCard) -> Self:
        """With the script's model plugin, where the command line chooses no model."""
        if card.plugin is None or self.model_plugin is not None or self.scripted:
            return self
        named = card.name if "name" in card.model_fields_set else None
        return replace(self, model_plugin=card.plugin, name=self.name or named)

    def open(self, environment: MutableMapping[str, str], name: str | None = None) -> "OpenAIModel | PluginModel":
        """A real model; `name` counts where the options name none."""
        if self.model_plugin is not None:
            self._refuse("api", "features", reason="--model-plugin is given")
            return self.of_plugin(self.model_plugin, environment, name)
        try:
            from devhost.models.openai_api.backend import open_model  # noqa: PLC0415 - see above
        except ModuleNotFoundError as error:
            raise ParameterError(
                f"a model behind an API needs the package {error.name}: pip install 'dify-devhost[openai]'"
            ) from error
        features = None if self.features is None else tuple(filter(None, map(str.strip, self.features.split(","))))
        return open_model(
            key=environment.get(KEY, "").strip(),
            base_url=environment.get(BASE_URL, "").strip(),
            api=self.api or "responses",
            name=self.name or name,
            completion_params=parse_assignments(self.completion, option="--completion"),
            features=features,
        )

    def asks_the_script(self, environment: Mapping[str, str] = os.environ) -> bool:
        """Whether no provider is called: --scripted is given, or there is no model plugin, no key and no base URL."""
        return self.scripted or (
            self.model_plugin is None and not any(environment.get(name, "").strip() for name in (KEY, BASE_URL))
        )

    def refuse_for_a_script(self) -> None:
        """ParameterError for an option that a scripted model would ignore."""
        reason = "--scripted asks for the script" if self.scripted else f"neither {KEY} nor {BASE_URL} is set"
        self._refuse("model_plugin", "api", "name", "completion", "features", reason=reason)

    def _refuse(self, *names: str, reason: str) -> None:
        for name in names:
            if getattr(self, name):
                written = "model" if name == "name" else name.replace("_", "-")
                raise ParameterError(f"--{written} is for a model behind an API, but {reason}")


# The messages of a run in a file, without secrets.


def traced(  # noqa: PLR0913 - the facts of a trace's first line
    file: Path | None,
    scenario: Scenario,
    model: ModelDescription,
    transport: TransportName,
    *,
    command: Literal["run", "chat"],
    query: str | None = None,
) -> AbstractContextManager[Watcher]:
    """A `TraceWriter`; without a file, a watcher that does nothing. It hides credentials, and the model's key."""
    facts = {
        "command": command,
        "example": scenario.name,
        "description": scenario.written.description,
        "strategy": scenario.strategy.identity.name,
        "transport": transport,
        "model": model.facts,
        "query": query,
    }
    return trace_written(file, secrets_of(scenario.tools, others=mcp.secrets_of(scenario.servers)), facts)


@contextmanager
def trace_written(
    file: Path | None, secrets: Secrets, facts: Mapping[str, object], notices: Iterable[str] = ()
) -> Iterator[Watcher]:
    if file is None:
        yield Watcher()
        return
    from devhost.trace.lines import TraceWriter  # noqa: PLC0415 - many classes, for a run that is traced

    with TraceWriter(file, secrets, facts) as writer:
        for notice in notices:
            writer.notice(notice)
        yield writer


def secrets_of(setups: Iterable[ToolSetup], others: Iterable[str] = ()) -> Secrets:
    """Also hides the model's key."""
    return Secrets([*(value for setup in setups for value in setup.secrets), *others, os.environ.get(KEY, "").strip()])
