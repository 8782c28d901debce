"""A model plugin between a strategy and its provider: credentials, models, and calls as Dify makes them."""

import json
import sys
import threading
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self, Unpack

import click

from devhost.errors import InvocationError, ParameterError, RunFailure, about, naming
from devhost.models.backend import ModelCallError, ModelDescription, ModelRequest
from devhost.models.usage import CountsSpending
from devhost.node.outputs.run import MODEL_ERRORS, RunError
from devhost.plugin.credentials import environment_name, filled_credentials, refuse_unknown
from devhost.plugin.declaration import LanguageModel, PluginDeclaration
from devhost.process.environment import start_in_own_python
from devhost.process.plugin_process import PluginProcess, StartOptions
from devhost.process.session import Watcher, Watchers
from devhost.protocol import structs
from devhost.protocol.failures import plugin_failure
from devhost.protocol.wire import JsonObject
from devhost.text import Secrets
from devhost.tools.setup import ask_about_credentials, ask_plugin, refuse

OPTION = "--model-credential "

VOCABULARY_SERVER = "openaipublic.blob.core.windows.net"
"""The server from which tiktoken downloads its vocabularies, unless its cache folder has them."""
NO_VOCABULARY = (
    "devhost: the plugin wanted to count tokens and tried to download a vocabulary of tiktoken, which Dify's daemon "
    "has in its image. Set TIKTOKEN_CACHE_DIR to a folder that has it: devhost/docs/model-plugins.md, Token counts"
)
NOT_VALIDATED = "its credentials are not validated, and lack what the plugin would add to them then"


class PluginModelError(ModelCallError):
    """A model plugin's failure. Dify passes on only the message of an error that it knows."""

    def __init__(self, failed: RunError) -> None:
        super().__init__(failed.kind, failed.message)
        self.failed = failed

    def as_dify_words_it(self) -> str:
        if self.error_type in MODEL_ERRORS:
            return self.message
        return plugin_failure(InvocationError(self.error_type, self.message, {"traceback": self.failed.traceback}))


class ModelPlugin:
    """A model plugin with its credentials. Its process starts when the first model is requested.

    It is a context manager that ends the process, and it is thread-safe.
    """

    def __init__(
        self,
        directory: Path,
        credentials: Mapping[str, str] | None = None,
        *,
        environment: MutableMapping[str, str] | None = None,
        validated: bool = True,
        asks: bool = False,
        **options: Unpack[StartOptions],
    ) -> None:
        """Credentials in `environment` are removed from it, because other plugins inherit it.

        `validated` means that the plugin validates the credentials. `asks` means that the user is asked at the terminal
        for missing required credentials.
        """
        self.declaration = PluginDeclaration.read(directory)
        if not self.declaration.model_providers:
            raise ParameterError(f"{directory} is not a model plugin: its manifest names no models")
        self.provider = self.declaration.model_providers[0]
        given = dict(credentials or {})
        held = {} if environment is None else environment
        refuse_unknown(self.provider.provider, self.provider.every_credential, given)
        names = {key: environment_name(self.provider.provider, key) for key in self.provider.every_credential}
        self._texts = {key: held.pop(name) for key, name in names.items() if name in held} | given
        self._validated = validated
        self._asks = asks
        self._options = options
        self._secrets = Secrets()
        self._process: PluginProcess | None = None
        self._filled: dict[str, JsonObject] = {}
        self._entities: dict[str, JsonObject] = {}
        self._preparing = threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.stop()

    @cached_property
    def language_models(self) -> Mapping[str, LanguageModel]:
        """The language models that the provider predefines."""
        return self.declaration.language_models(self.provider)

    def model(self, name: str | None = None, completion: Mapping[str, object] | None = None) -> "PluginModel":
        """Start the plugin, and ask it about the credentials and the model. `completion` has the node's parameters."""
        with about("model"):
            if name is None:
                raise ParameterError(f"which model? --model NAME; {self._there_are}")
            credentials = self._credentials(name)
            with self._preparing:
                entity = self._entities.get(name) or self._described(name, credentials)
                self._entities[name] = entity
        params = _parameters(name, completion or {}, entity)
        manifest = self.declaration.manifest
        notice = f"model plugin {manifest.author}/{manifest.name} {manifest.version}"
        description = ModelDescription(
            provider=self.declaration.provider_id(self.provider),
            name=name,
            notice=notice if self._validated else f"{notice}; {NOT_VALIDATED}",
            scripted=False,
            context_size=(entity.get("model_properties") or {}).get("context_size"),
            completion_params=tuple(params.items()),
            entity=entity,
            has_price=bool(entity.get("pricing")),
        )
        return PluginModel(self, description)

    def invoke(self, request: ModelRequest) -> Iterator[JsonObject]:
        """Yield the chunks as the daemon passes them on. Raises PluginModelError with the plugin's message."""
        sent = {
            **self._request("invoke_llm", request.model, self._credentials(request.model)),
            "prompt_messages": [message.model_dump(exclude_none=True) for message in request.prompt_messages],
            "model_parameters": request.completion_params,
            "tools": None if request.tools is None else [tool.model_dump() for tool in request.tools],
            "stop": request.stop,
            "stream": request.stream,
        }
        try:
            process = self._running()
            with process.open_session(sent) as session:
                seconds = process.limits.call_seconds
                said = session.messages(refuse, seconds, structs.model_chunk, limit="call-seconds")
                yield from map(self._secrets.masked, said)
        except RunFailure as failure:
            error = RunError.of(failure)
            if VOCABULARY_SERVER in error.message:
                self._options.get("watcher", Watcher()).printed(self.declaration.manifest.name, NO_VOCABULARY)
            raise PluginModelError(self._secrets.masked(error)) from None  # the cause may quote secrets

    @property
    def _there_are(self) -> str:
        known = ", ".join(self.language_models) or "none of its own"
        others = ""
        if self.provider.takes_any_model:
            others = "; and takes any other name"
        return f"{self.provider.provider} has {known}{others}"

    def _request(self, action: str, name: str, credentials: JsonObject) -> JsonObject:
        return {
            "type": "model",
            "action": action,
            "user_id": "devhost",
            "provider": self.provider.provider,
            "model_type": "llm",
            "model": name,
            "credentials": credentials,
        }

    def _credentials(self, name: str) -> JsonObject:
        """Return the provider's credentials for a predefined model, or else the model's own, as Dify keeps them."""
        of_provider = name in self.language_models and "predefined-model" in self.provider.configurate_methods
        if not of_provider and not self.provider.takes_any_model:
            raise ParameterError(f"there is no model {name!r}; {self._there_are}")
        with self._preparing:
            kept = name
            if of_provider:
                kept = ""
            if kept not in self._filled:
                self._filled[kept] = self._checked(name, of_provider=of_provider)
            return self._filled[kept]

    def _checked(self, name: str, *, of_provider: bool) -> JsonObject:
        fields = self.provider.credentials(self._texts, of_provider=of_provider)
        for key, field in fields.items():
            if self._asks and field.required and not (self._texts.get(key) or field.default):
                choice = None
                if field.options:
                    choice = click.Choice([each.value for each in field.options])
                asked = f"{self.provider.provider}: {field.variable}"
                self._texts[key] = str(click.prompt(asked, type=choice, hide_input=field.is_secret, err=True))
        given = {key: text for key, text in self._texts.items() if key in fields}
        credentials = filled_credentials(self.provider.provider, fields, given, OPTION)
        self._secrets = Secrets(
            [text for key, text in self._texts.items() if self.provider.every_credential[key].is_secret]
        )
        process = self._running()
        if self._validated and fields:
            action = "validate_model_credentials"
            if of_provider:
                action = "validate_provider_credentials"
            request = self._request(action, name, credentials)
            answer = ask_about_credentials(process, self.provider.provider, request, self._secrets)
            credentials = {**credentials, **(answer.get("credentials") or {})}
        return credentials

    def _described(self, name: str, credentials: JsonObject) -> JsonObject:
        request = self._request("get_ai_model_schemas", name, credentials)
        for answer in ask_plugin(self._running(), request, f"{name} cannot be described", self._secrets):
            if entity := answer.get("model_schema"):
                return dict(entity)
        raise ParameterError(f"the plugin knows no model {name!r}; {self._there_are}")

    def _running(self) -> PluginProcess:
        """Return the process. It is restarted if it has ended, so that a chat continues after a crash."""
        with self._preparing:
            if self._process is None or self._process.lost is not None:
                watcher = self._options.get("watcher", Watcher())
                watcher.starting([self.declaration.manifest.name])
                self._process = start_in_own_python(self.declaration, **self._options)
                watcher.starting([])
            self._process.printed.hide(self._secrets)
            return self._process


def _parameters(model: str, completion: Mapping[str, object], entity: JsonObject) -> JsonObject:
    """Return the parameters for the plugin. Its SDK checks the values, but would silently drop unknown parameters."""
    kinds = {rule["name"]: rule["type"] for rule in entity.get("parameter_rules") or ()}
    for name in completion:
        if name not in kinds:
            with about(f"completion.{name}"):
                raise ParameterError(f"--completion {name}: {model} takes no such parameter; {naming(kinds)}")
    # The command line parses values as JSON, but Dify expects a text if the parameter is a text.
    return {
        name: json.dumps(value) if kinds[name] == "text" and not isinstance(value, str) else value
        for name, value in completion.items()
    }


class PluginModel(CountsSpending):
    """One model of a plugin, as a `ModelBackend`. A call that names another model of the plugin uses that model."""

    def __init__(self, plugin: ModelPlugin, description: ModelDescription) -> None:
        super().__init__()
        self.description = description
        self._plugin = plugin

    def invoke(self, request: ModelRequest, /) -> Iterator[JsonObject]:
        usage: JsonObject | None = None
        for chunk in self._plugin.invoke(request):
            usage = chunk["delta"]["usage"] or usage
            yield chunk
        self.count(usage)


class _OnStderr(Watcher):
    """Prints to stderr until there is a view of a run."""

    def starting(self, plugins: Sequence[str]) -> None:
        if plugins:
            click.echo(f"starting {', '.join(plugins)} …", err=True)

    def printed(self, plugin: str, text: str) -> None:
        click.echo(f"{plugin} | {text}", err=True)


class _Relay(Watcher):
    """Passes on what model plugins print. Their messages contain credentials and are not written to traces."""

    def __init__(self) -> None:
        self.to: Watcher = _OnStderr()

    def starting(self, plugins: Sequence[str]) -> None:
        self.to.starting(plugins)

    def printed(self, plugin: str, text: str) -> None:
        self.to.printed(plugin, text)


class ModelPlugins:
    """The model plugins that the command has started. They end with the command. Thread-safe."""

    def __init__(self) -> None:
        self._started: dict[Path, ModelPlugin] = {}
        self._relay = _Relay()
        self._starting = threading.Lock()
        if (context := click.get_current_context(silent=True)) is not None:
            context.call_on_close(self.end)

    def start(
        self,
        directory: Path,
        credentials: Mapping[str, str],
        environment: MutableMapping[str, str],
        *,
        validated: bool = True,
        installs: bool = False,
    ) -> ModelPlugin:
        with self._starting, about("model_plugin"):
            if directory not in self._started:
                self._started[directory] = ModelPlugin(
                    directory,
                    credentials,
                    environment=environment,
                    validated=validated,
                    asks=sys.stdin.isatty(),
                    watcher=self._relay,
                    installs=installs,
                )
            return self._started[directory]

    def tell(self, *watchers: Watcher) -> Watcher:
        """Pass on what the plugins print from now on to these watchers, and return the watchers as one."""
        self._relay.to = Watchers(*watchers)
        return self._relay.to

    def end(self) -> None:
        for plugin in self._started.values():
            plugin.__exit__()
