"""A plugin directory as data: manifest.yaml → provider YAML → strategy and tool YAMLs.

Reads YAML only, never the plugin's code. Errors name the file and the key. Keys that devhost does not need are
ignored, as Dify ignores keys that it does not know.
"""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, Field, ValidationError

from devhost.errors import DeclarationError
from devhost.plugin.credentials import CredentialField
from devhost.plugin.keys import Declared, I18n, Manifest, Parameter, ToolParameter, as_sent
from devhost.plugin.nearest import plugin_in
from devhost.text import describe, load_yaml, real_path


class Identity(Declared):
    author: str
    name: str
    label: I18n
    icon: str = ""


class ToolDescription(Declared):
    human: I18n
    llm: str


class Strategy(Declared):
    identity: Identity
    description: I18n
    parameters: tuple[Parameter, ...] = ()
    output_schema: dict[str, Any] | None = None


class Tool(Declared):
    identity: Identity
    description: ToolDescription
    parameters: tuple[ToolParameter, ...] = ()
    output_schema: dict[str, Any] | None = None
    has_runtime_parameters: bool = False


class StrategyProvider(Declared):
    identity: Identity
    strategies: tuple[Strategy, ...]


class OAuthCredential(CredentialField):
    name: str


class OAuth(Declared):
    credentials_schema: tuple[OAuthCredential, ...] = ()


class ToolProvider(Declared):
    identity: Identity
    tools: tuple[Tool, ...]
    credentials_for_provider: dict[str, CredentialField] = Field(default_factory=dict)
    oauth_schema: OAuth | None = None

    @property
    def credentials(self) -> Mapping[str, CredentialField]:
        """Those of its form, or, without a form, those that Dify keeps after a login with OAuth."""
        if self.credentials_for_provider or self.oauth_schema is None:
            return self.credentials_for_provider
        return {each.name: each for each in self.oauth_schema.credentials_schema}

    @property
    def credential_type(self) -> str:
        """As Dify sends it; SDKs from 0.4.4 to 0.5.1 refuse `unauthorized`, so a provider without any has the first."""
        return "oauth2" if self.credentials and not self.credentials_for_provider else "api-key"


class PluginDeclaration(Declared):
    directory: Path
    manifest: Manifest
    strategy_providers: tuple[StrategyProvider, ...]
    tool_providers: tuple[ToolProvider, ...]

    @classmethod
    def read(cls, directory: Path) -> Self:
        directory = plugin_in(real_path(directory))
        manifest = _read(directory, "manifest.yaml", Manifest)
        return cls(
            directory=directory,
            manifest=manifest,
            strategy_providers=tuple(
                _read(directory, path, StrategyProvider, ("strategies", Strategy))
                for path in manifest.plugins.agent_strategies
            ),
            tool_providers=tuple(
                _read(directory, path, ToolProvider, ("tools", Tool)) for path in manifest.plugins.tools
            ),
        )

    @cached_property
    def strategies(self) -> Mapping[str, tuple[StrategyProvider, Strategy]]:
        return {
            strategy.identity.name: (provider, strategy)
            for provider in self.strategy_providers
            for strategy in provider.strategies
        }

    def provider_id(self, provider: ToolProvider) -> str:
        """How Dify names a plugin's tool provider: author/plugin/provider."""
        return f"{self.manifest.author}/{self.manifest.name}/{provider.identity.name}"


def _read[T: BaseModel](
    directory: Path, path: str, kind: type[T], children: tuple[str, type[BaseModel]] | None = None
) -> T:
    """One YAML file as a `kind`; `children` names the key whose paths are replaced by the files they lead to."""
    file = directory / path
    data: dict[str, Any] = as_sent(load_yaml(file))
    if children is not None:
        key, child = children
        paths = data.get(key)
        if not isinstance(paths, list) or not all(isinstance(item, str) for item in paths):
            raise DeclarationError(f"{file}: {key} must be a list of paths to YAML files")
        data = {**data, key: [_read(directory, item, child) for item in paths]}
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise DeclarationError(f"{file}: {describe(error)}") from error
