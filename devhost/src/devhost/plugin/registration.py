"""How a plugin registers over TCP: its key, its manifest, its strategies, its assets, and an end.

In: the handshake's messages, one after another, in the daemon's order of checks. Out: a `PluginDeclaration`, once the
last has come; `RegistrationError` for what the daemon hangs up on.
"""

import base64
import binascii
from typing import Any

from devhost.errors import RegistrationError
from devhost.plugin.declaration import Manifest, PluginDeclaration, StrategyProvider, as_sent
from devhost.plugin.rules import check
from devhost.protocol.wire import JsonObject

DECLARATIONS = frozenset(
    f"{kind}_declaration" for kind in ("tool", "model", "endpoint", "agent_strategy", "datasource", "trigger")
)


class Registration:
    def __init__(self, key: str, files: PluginDeclaration) -> None:
        """`files`: the plugin's YAML, for fields that the plugin does not send."""
        self._key = key
        self._files = files
        self.knows_key = False
        self._manifest: JsonObject | None = None
        self._declared: dict[str, list[JsonObject]] = {}
        self._assets: set[str] = set()

    def add(self, message: JsonObject) -> PluginDeclaration | None:
        """The declaration, if this message ends the handshake; else None."""
        match message:
            case {"type": "handshake", "data": {"key": str(key)}}:
                self._check_key(key)
            case {"type": str(kind)} if not self.knows_key:
                raise RegistrationError(f"a {kind} message came before the handshake's key")
            case {"type": "manifest_declaration", "data": dict(manifest)}:
                self._manifest = as_sent(manifest)
                check("manifest", self._manifest, "manifest_declaration")
            case {"type": str(kind)} if self._manifest is None:
                raise RegistrationError(f"a {kind} message came before the manifest_declaration")
            case {"type": str(kind), "data": list(providers)} if kind in DECLARATIONS:
                self._declare(kind, providers)
            case {"type": "asset_chunk", "data": dict(chunk)}:
                self._add_asset(chunk)
            case {"type": "end"} if self._manifest is not None:
                return self._end(self._manifest)
            case _:
                raise RegistrationError(f"not a message of the handshake: {str(message)[:200]}")
        return None

    def _check_key(self, key: str) -> None:
        if key != self._key:
            sentence = "the key is wrong: REMOTE_INSTALL_KEY must be the one that the host gave out"
            raise RegistrationError(sentence, "invalid key")
        self.knows_key = True

    def _declare(self, kind: str, providers: list[Any]) -> None:
        if kind in self._declared:
            raise RegistrationError(f"{kind} came twice")
        self._declared[kind] = as_sent(providers)
        if kind == "agent_strategy_declaration":
            for number, provider in enumerate(self._declared[kind]):
                check("agent_strategies", provider, f"{kind}[{number}]")

    def _add_asset(self, chunk: JsonObject) -> None:
        name, data = chunk.get("filename"), chunk.get("data")
        try:
            base64.b64decode(str(data), validate=True)
        except binascii.Error as error:
            raise RegistrationError(f"asset_chunk of {name}: data is not base64: {error}") from error
        if chunk.get("end"):
            self._assets.add(str(name))

    def _end(self, manifest: JsonObject) -> PluginDeclaration:
        if not self._declared:
            raise RegistrationError("no registration transferred: the plugin declares nothing")
        strategies = self._declared.get("agent_strategy_declaration", [])
        if strategies and len(self._declared) > 1:
            others = ", ".join(sorted(set(self._declared) - {"agent_strategy_declaration"}))
            raise RegistrationError(f"agent_strategy_declaration cannot share a plugin with {others}")
        holders = {"manifest_declaration": manifest}
        for number, provider in enumerate(strategies):
            holders[f"agent_strategy_declaration[{number}].identity"] = provider["identity"]
        for holder, fields in holders.items():
            for icon in (fields.get("icon"), fields.get("icon_dark")):
                if icon and icon not in self._assets:
                    assets = sorted(self._assets)
                    raise RegistrationError(f"{holder}.icon is {icon!r}, which is not among the assets: {assets}")
        return self._files.model_copy(
            update={
                "manifest": Manifest.model_validate(manifest),
                "strategy_providers": tuple(self._provider(provider) for provider in strategies),
            }
        )

    def _provider(self, declared: JsonObject) -> StrategyProvider:
        """The SDK leaves `output_schema` out. An installed plugin has it, so the files' is taken."""
        provider = StrategyProvider.model_validate(declared)
        files = self._files.strategies
        strategies = []
        for strategy in provider.strategies:
            schema = files[strategy.identity.name][1].output_schema if strategy.identity.name in files else None
            strategies.append(strategy.model_copy(update={"output_schema": schema}))
        return provider.model_copy(update={"strategies": tuple(strategies)})
