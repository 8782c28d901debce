"""A tool plugin made ready for an agent: which tools it offers, with which credentials and which values in the panel.

In: a plugin directory, credentials and fixed values as texts. Out: a `ToolSetup`, or the one sentence that says what
is missing or unknown; nothing is started yet.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from devhost.errors import ParameterError
from devhost.plugin.credentials import filled_credentials, invalid_defaults
from devhost.plugin.declaration import PluginDeclaration, Tool, ToolProvider
from devhost.plugin.guesses import guesses
from devhost.protocol.wire import JsonObject
from devhost.tools.entity import declared_entity, tool_entity, why_left_out
from devhost.tools.environment import own_python
from devhost.tools.typed import typed_values

type Texts = Mapping[str, Mapping[str, str]]
"""By provider or tool, then by key."""
CREDENTIAL_TYPE = "api-key"
"""As Dify sends it, also for a provider without credentials; SDKs from 0.4.4 to 0.5.1 refuse `unauthorized`."""


@dataclass(frozen=True)
class OfferedTool:
    provider: ToolProvider
    declared: Tool
    entity: JsonObject = field(repr=False)
    fixed: Mapping[str, object] = field(repr=False)


@dataclass(frozen=True)
class ToolSetup:
    """A tool plugin with its credentials and fixed parameters, for `Host.start(tools=[…])`."""

    declaration: PluginDeclaration
    tools: tuple[OfferedTool, ...]
    credentials: Mapping[str, JsonObject] = field(repr=False)
    """By provider."""
    left_out: tuple[str, ...] = ()
    """A sentence for each tool that cannot be part of a run."""

    @classmethod
    def read(cls, directory: Path, *, credentials: Texts | None = None, fixed: Texts | None = None) -> Self:
        """`fixed` is by tool: its name, or provider/name."""
        return cls.of(PluginDeclaration.read(directory), credentials or {}, fixed or {})

    @classmethod
    def of(cls, declaration: PluginDeclaration, credentials: Texts, fixed: Texts) -> Self:
        if not declaration.tool_providers:
            raise ParameterError(f"{declaration.directory} is not a tool plugin: its manifest names no tools")
        offered, left_out = [], []
        for provider in declaration.tool_providers:
            for tool in provider.tools:
                name = tool.identity.name
                texts = {**fixed.get(name, {}), **fixed.get(f"{provider.identity.name}/{name}", {})}
                values = typed_values(tool, texts)
                if reason := why_left_out(tool, values):
                    left_out.append(reason)
                    continue
                entity = tool_entity(declaration.provider_id(provider), provider, tool, values)
                offered.append(OfferedTool(provider, tool, entity, values))
        filled = {
            provider.identity.name: filled_credentials(
                provider.identity.name,
                provider.credentials_for_provider,
                credentials.get(provider.identity.name, {}),
            )
            for provider in declaration.tool_providers
        }
        return cls(declaration, tuple(offered), filled, tuple(left_out))

    def with_every_tool(self) -> Self:
        """For a flow: its nodes hold the panel's values, and a Tool node may have what an agent may not."""
        tools = tuple(
            OfferedTool(
                provider, tool, declared_entity(self.declaration.provider_id(provider), provider, tool), fixed={}
            )
            for provider in self.declaration.tool_providers
            for tool in provider.tools
        )
        return replace(self, tools=tools, left_out=())

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know before a run with these tools."""
        guessed = (
            guess
            for offered in self.tools
            for guess in guesses(
                offered.declared.parameters, offered.fixed, f"parameter {offered.declared.identity.name}."
            )
        )
        defaults = (
            sentence
            for provider in self.declaration.tool_providers
            for sentence in invalid_defaults(
                provider.identity.name,
                provider.credentials_for_provider,
                self.credentials[provider.identity.name],
            )
        )
        return (*(f"left out: tool {sentence}" for sentence in self.left_out), *guessed, *defaults)

    @property
    def python(self) -> Path | None:
        """The Python of the plugin's own .venv; None if it has none."""
        return own_python(self.declaration.directory)

    @property
    def secrets(self) -> list[str]:
        return [*self.secret_credentials, *self.secret_parameters]

    @property
    def secret_credentials(self) -> list[str]:
        return [
            str(self.credentials[provider.identity.name][key])
            for provider in self.declaration.tool_providers
            for key, credential in provider.credentials_for_provider.items()
            if credential.is_secret and key in self.credentials[provider.identity.name]
        ]

    @property
    def secret_parameters(self) -> list[str]:
        """Secret values of `--set`. The strategy gets them unmasked, as from Dify."""
        return [
            str(offered.fixed[parameter.name])
            for offered in self.tools
            for parameter in offered.declared.parameters
            if parameter.type == "secret-input" and parameter.name in offered.fixed
        ]
