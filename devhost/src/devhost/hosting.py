"""The options that commands share: how plugins run, which models answer, and where the trace is written."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from devhost.errors import ParameterError
from devhost.files import SENT, run_folder
from devhost.host.backwards import PluginStorage
from devhost.host.host import ToolHost
from devhost.limits import HostLimits
from devhost.model_plugin import ModelPlugin, ModelPlugins, PluginModel
from devhost.models.catalog import DEFAULT_MODEL
from devhost.models.scripted.script import ScriptedModelCard
from devhost.options import Declared, option
from devhost.plugin.declaration import PluginDeclaration
from devhost.process.program import TransportName
from devhost.process.session import Watcher
from devhost.scenario import pairs, parse_assignments
from devhost.script import Script
from devhost.text import Secrets, worded
from devhost.tools.setup import ToolSetup
from devhost.trace.flow import FlowNode

if TYPE_CHECKING:
    from devhost.models.openai_api.backend import OpenAIModel
    from devhost.models.openai_api.provider import Api
    from devhost.models.scripted.model import ScriptedModel

# Options that several commands have.

CREDENTIAL = "A credential of a tool provider; else the variable PROVIDER_KEY, upper case, is read. Repeatable."


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


def strategy_plugin(folder: Path, package: Path | None = None) -> PluginDeclaration:
    """Read the strategy plugin in a folder. `package` is the package from which the folder was unpacked."""
    declaration = PluginDeclaration.read(folder, is_unpacked=package is not None)
    if not declaration.strategies:
        remedy = "a plugin with tools is given with --tools DIR, unpacked"
        raise ParameterError(f"{package or folder} has no agent strategy; {remedy}")
    return declaration


# How the plugin's process is run.

STORAGE = "devhost-storage.json"
LIMITS = ", ".join(f"{name.replace('_', '-')}={str(value).lower()}" for name, value in HostLimits())
"""The names of the limits with their defaults."""


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
        """Return storage in the file given with --storage, or else in a file beside the trace, or else in memory.

        The trace must exist already. No storage is kept beside a trace that is a device.
        """
        beside = None
        if trace_file is not None and trace_file.is_file():
            beside = trace_file.with_name(STORAGE)
        return PluginStorage(self.storage or beside)


@contextmanager
def started[H: ToolHost](
    begin: Callable[..., H], name: str, options: HostOptions, trace_file: Path | None
) -> Iterator[H]:
    """Start a host. The files of its runs are kept beside the trace, if there is one."""
    limits = options.limits
    installs = not options.uninstalled
    with run_folder(name, trace_file) as files, begin(files=files, limits=limits, installs=installs) as host:
        if trace_file is not None and trace_file.is_file():
            host.server.copies = files / SENT
        yield host


# Which model answers: a model plugin's if one is given, a model behind an API if a key or a base URL is set, else the
# script's.
#
# `openai` is imported only if a real model is chosen, because the script does not need it.

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
        """Return the plugin's model. `name` is used if the options do not name a model."""
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
        """Return the model of a strategy. `asked` says how many times this question was asked before."""
        if script is None:
            options = self
        else:
            options = self.or_of_script(script.model)
        if not options.asks_the_script(environment):
            return options.open(environment)
        self.refuse_for_a_script()
        if script is None:
            raise ParameterError(f"no model is configured: give --example, --script or --model-plugin, or set {KEY}")
        return script.as_model(question, asked)

    def or_of_script(self, card: ScriptedModelCard) -> Self:
        """Return the options with the script's model plugin, if the command line chooses no model."""
        if card.plugin is None or self.model_plugin is not None or self.scripted:
            return self
        named = None
        if "name" in card.model_fields_set:
            named = card.name
        return replace(self, model_plugin=card.plugin, name=self.name or named)

    def open(self, environment: MutableMapping[str, str], name: str | None = None) -> "OpenAIModel | PluginModel":
        """Open a real model. `name` is used if the options do not name a model."""
        if self.model_plugin is not None:
            self._refuse("api", "features", reason="--model-plugin is given")
            return self.of_plugin(self.model_plugin, environment, name)
        try:
            from devhost.models.openai_api.backend import open_model  # noqa: PLC0415 - see above
        except ModuleNotFoundError as error:
            raise ParameterError(
                f"a model behind an API needs the package {error.name}: pip install 'dify-devhost[openai]'"
            ) from error
        if self.features is None:
            features = None
        else:
            features = tuple(filter(None, map(str.strip, self.features.split(","))))
        return open_model(
            key=environment.get(KEY, "").strip(),
            base_url=environment.get(BASE_URL, "").strip(),
            api=self.api or "responses",
            name=self.name or name,
            completion_params=parse_assignments(self.completion, option="--completion"),
            features=features,
        )

    def asks_the_script(self, environment: Mapping[str, str] = os.environ) -> bool:
        """Return whether the script answers: with --scripted, or without a model plugin, a key and a base URL."""
        return self.scripted or (
            self.model_plugin is None and not any(environment.get(name, "").strip() for name in (KEY, BASE_URL))
        )

    def refuse_for_a_script(self) -> None:
        """Raise ParameterError for an option that a scripted model would ignore."""
        if self.scripted:
            reason = "--scripted asks for the script"
        else:
            reason = f"neither {KEY} nor {BASE_URL} is set"
        self._refuse("model_plugin", "api", "name", "completion", "features", reason=reason)

    def _refuse(self, *names: str, reason: str) -> None:
        for name in names:
            if getattr(self, name):
                if name == "name":
                    written = "model"
                else:
                    written = name.replace("_", "-")
                raise ParameterError(f"--{written} is for a model behind an API, but {reason}")


# The models that answer instead of a script: models behind an API, or models of a model plugin.


def selected_name(node: FlowNode) -> str | None:
    """Return the name of the model that the node selects in the DSL."""
    match node.data:
        case {"model": {"name": str(name)}}:
            return name
        case {"agent_parameters": dict(parameters)}:
            for parameter in parameters.values():
                match parameter:
                    case {"value": {"type": "model-selector", "model": str(name)}} if name:
                        return name
    return None


class ModelsBehindAnApi:
    """One model for each node, with the name from the node or from --model. Thread-safe."""

    def __init__(self, options: ModelOptions, environment: MutableMapping[str, str]) -> None:
        self._options = options
        kept: MutableMapping[str, str] = {name: environment.get(name, "") for name in (KEY, BASE_URL)}
        if options.model_plugin is not None:  # the model plugin removes its credentials from the environment
            kept = environment
        self._environment = kept
        self._models: dict[str, OpenAIModel | PluginModel] = {}
        self._opening = threading.Lock()

    def __call__(self, node: FlowNode) -> "OpenAIModel | PluginModel":
        with self._opening:
            if node.id not in self._models:
                self._models[node.id] = self.opened(node)
            return self._models[node.id]

    def opened(self, node: FlowNode) -> "OpenAIModel | PluginModel":
        """Open a new model, whose usage is counted from zero."""
        return self._options.open(self._environment, selected_name(node))

    @property
    def notice(self) -> str:
        names = "with the names in the file"
        if self._options.name:
            names = f"with the name {self._options.name}"
        plugin = self._options.model_plugin
        if plugin is None:
            where = "behind an API"
        else:
            where = f"through {plugin.name}"
        return f"the models of the nodes are called {where}, {names}: that costs money; see --scripted"


def models_behind_an_api(options: ModelOptions, environment: MutableMapping[str, str]) -> ModelsBehindAnApi | None:
    """Return the models, or None if the script answers.

    Raises ParameterError for an option that the script would ignore.
    """
    if not options.asks_the_script(environment):
        return ModelsBehindAnApi(options, environment)
    options.refuse_for_a_script()
    return None


# The trace of a run, without secrets.


@contextmanager
def trace_written(
    file: Path | None, secrets: Secrets, facts: Mapping[str, object], notices: Iterable[str] = ()
) -> Iterator[Watcher]:
    if file is None:
        yield Watcher()
        return
    from devhost.trace.lines import TraceWriter  # noqa: PLC0415 - many classes, which only a traced run needs

    with TraceWriter(file, secrets, facts) as writer:
        for notice in notices:
            writer.notice(notice)
        yield writer


def secrets_of(setups: Iterable[ToolSetup], others: Iterable[str] = ()) -> Secrets:
    """Return the secrets to hide, which include the model's key."""
    return Secrets([*(value for setup in setups for value in setup.secrets), *others, os.environ.get(KEY, "").strip()])
