"""Prepares a tool plugin for an agent: credentials and the values in its panel."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self, Unpack

from devhost.errors import ParameterError, RunFailure, SetupError, about, naming
from devhost.plugin.casting import doubts
from devhost.plugin.credentials import credentials_in, filled_credentials
from devhost.plugin.declaration import PluginDeclaration, ProvidedTool
from devhost.process.environment import start_in_own_python
from devhost.process.plugin_process import PluginProcess, StartOptions
from devhost.process.session import Session
from devhost.protocol.wire import Invoked, JsonObject
from devhost.text import Secrets
from devhost.tools.entity import declared_entity, tool_entity, typed_values

type Texts = Mapping[str, Mapping[str, str]]
"""Texts by provider or tool, then by key."""


@dataclass(frozen=True)
class OfferedTool(ProvidedTool):
    entity: JsonObject = field(repr=False)
    fixed: Mapping[str, object] = field(repr=False)


@dataclass(frozen=True)
class ToolSetup:
    """A tool plugin with its credentials and fixed parameters, for `Host.start(tools=[…])`."""

    declaration: PluginDeclaration
    tools: tuple[OfferedTool, ...]
    credentials: Mapping[str, JsonObject] = field(repr=False)
    """The credentials of each provider."""
    left_out: tuple[str, ...] = ()
    """A sentence for each tool that cannot be part of a run."""
    is_validated: bool = True
    """Whether the plugin validates the credentials before a run."""

    @classmethod
    def read(cls, directory: Path, *, credentials: Texts | None = None, fixed: Texts | None = None) -> Self:
        """Reads a plugin's declaration and returns its setup.

        The keys of `fixed` are tool names, or provider/name. Without `credentials` those in the environment are used.
        """
        with about("tools"):
            declared = PluginDeclaration.read(directory)
            providers = {each.identity.name: each.credentials for each in declared.tool_providers}
            of_environment = {name: credentials_in(os.environ, name, fields) for name, fields in providers.items()}
            return cls.of(declared, of_environment if credentials is None else credentials, fixed or {})

    @classmethod
    def of(cls, declaration: PluginDeclaration, credentials: Texts, fixed: Texts) -> Self:
        if not declaration.tool_providers:
            raise ParameterError(f"{declaration.directory} is not a tool plugin: its manifest names no tools")
        offered = []
        left_out = []
        for tool in declaration.tools:
            name, with_provider, _ = tool.names
            values = typed_values(tool.declared, {**fixed.get(name, {}), **fixed.get(with_provider, {})})
            try:
                offered.append(OfferedTool(**vars(tool), entity=tool_entity(tool, values), fixed=values))
            except ParameterError as error:
                if values:
                    raise
                left_out.append(str(error))
        filled = {
            name: filled_credentials(name, provider.credentials, credentials.get(name, {}))
            for provider in declaration.tool_providers
            for name in [provider.identity.name]
        }
        return cls(declaration, tuple(offered), filled, tuple(left_out))

    def with_every_tool(self) -> Self:
        """Returns a copy with every tool and without panel values, for a flow.

        The nodes of a flow hold the panel's values, and a Tool node may use tools that an agent may not.
        """
        every = self.declaration.tools
        tools = tuple(OfferedTool(**vars(tool), entity=declared_entity(tool), fixed={}) for tool in every)
        return replace(self, tools=tools, left_out=())

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know before a run with these tools."""
        unasked = (
            f"provider {provider.identity.name}: its credentials are not validated"
            for provider in self.declaration.tool_providers
            if provider.credentials and not self.is_validated
        )
        doubtful = (
            f"{offered.name}.{doubt}"
            for offered in self.tools
            for doubt in doubts(offered.declared.parameters, offered.fixed)
        )
        return (*(f"left out: tool {sentence}" for sentence in self.left_out), *doubtful, *unasked)

    @property
    def secrets(self) -> list[str]:
        """Secret credentials and secret values of `--set`. As in Dify, a strategy receives these values unmasked."""
        of_parameters = (
            str(offered.fixed[parameter.name])
            for offered in self.tools
            for parameter in offered.declared.parameters
            if parameter.type == "secret-input" and parameter.name in offered.fixed
        )
        return [*self.secret_credentials, *of_parameters]

    @property
    def secret_credentials(self) -> list[str]:
        return [
            str(self.credentials[provider.identity.name][key])
            for provider in self.declaration.tool_providers
            for key, credential in provider.credentials.items()
            if credential.is_secret and key in self.credentials[provider.identity.name]
        ]


def start_tool_plugin(setup: ToolSetup, **options: Unpack[StartOptions]) -> PluginProcess:
    """Starts the plugin and makes the requests that Dify's settings pages make before an agent can use it.

    The requests validate the credentials, as Dify does when a person saves them, and fetch the options of dynamic
    selects, as Dify does when a person opens a picker.
    """
    plugin = start_in_own_python(setup.declaration, **options)
    try:
        _check(plugin, setup)
    except BaseException:
        plugin.stop()
        raise
    return plugin


def _check(plugin: PluginProcess, setup: ToolSetup) -> None:
    for provider in setup.declaration.tool_providers:
        if provider.credentials and setup.is_validated:
            name = provider.identity.name
            request = {
                "type": "tool",
                "action": "validate_tool_credentials",
                "user_id": "devhost",
                "provider": name,
                "credentials": setup.credentials[name],
            }
            ask_about_credentials(plugin, name, request, Secrets(setup.secret_credentials))
    for offered in setup.tools:
        for parameter in offered.declared.parameters:
            if parameter.type == "dynamic-select" and parameter.name in offered.fixed:
                _check_option(plugin, setup, offered, parameter.name)


def ask_about_credentials(plugin: PluginProcess, provider: str, request: JsonObject, secrets: Secrets) -> JsonObject:
    """Returns the plugin's answer. Raises `SetupError` with the plugin's reason if it refuses the credentials."""
    answers = ask_plugin(plugin, request, f"{provider} refuses its credentials", secrets)
    for answer in answers:
        if answer.get("result"):
            return answer
    raise SetupError(f"{provider} refuses its credentials without a reason")


def _check_option(plugin: PluginProcess, setup: ToolSetup, offered: OfferedTool, parameter: str) -> None:
    provider = offered.provider.identity.name
    where = f"{offered.name}.{parameter}"
    request = {
        "type": "dynamic_parameter",
        "action": "fetch_parameter_options",
        "user_id": "devhost",
        "provider": provider,
        "provider_action": offered.name,
        "credentials": setup.credentials[provider],
        "credential_type": offered.provider.credential_type,
        "parameter": parameter,
    }
    secrets = Secrets(setup.secret_credentials)
    answers = ask_plugin(plugin, request, f"the options of {where} cannot be read", secrets)
    options = [str(option.get("value")) for answer in answers for option in answer.get("options") or ()]
    fixed = offered.fixed[parameter]
    if any(str(chosen) not in options for chosen in (fixed if isinstance(fixed, list) else [fixed])):
        raise SetupError(f"{where} has no such option; {naming(options)}")


def ask_plugin(plugin: PluginProcess, request: JsonObject, otherwise: str, secrets: Secrets) -> list[JsonObject]:
    try:
        with plugin.open_session(request) as session:
            return list(session.messages(refuse, plugin.limits.call_seconds, limit="call-seconds"))
    except RunFailure as failure:  # not chained, because its cause may quote the credentials
        raise SetupError(f"{otherwise}: {secrets.masked(str(failure))}") from None


def refuse(session: Session, invoked: Invoked) -> None:
    session.answer(invoked.request_id, "error", message="devhost answers a plugin's backwards calls only in a run")
