"""What the daemon checks of a plugin that registers over TCP, message by message, in its order of checks.

Assets are taken unread: `devhost check` looks at icons. The declaration that counts is that of the plugin's files: the
SDK sends the same without `output_schema`.
"""

from typing import Any

from devhost.errors import RegistrationError
from devhost.plugin.declaration import as_sent
from devhost.plugin.rules import check
from devhost.protocol.wire import JsonObject

STRATEGIES = "agent_strategy_declaration"
DECLARATIONS = frozenset(f"{kind}_declaration" for kind in ("tool", "model", "endpoint", "datasource", "trigger"))


class Registration:
    def __init__(self, key: str) -> None:
        self._key = key
        self.knows_key = False
        self._has_manifest = False
        self._declared: set[str] = set()

    def add(self, message: JsonObject) -> bool:
        """Whether this message ends the handshake; RegistrationError for what the daemon hangs up on."""
        match message:
            case {"type": "handshake", "data": {"key": str(key)}}:
                if key != self._key:
                    sentence = "the key is wrong: REMOTE_INSTALL_KEY must be the one that the host gave out"
                    raise RegistrationError(sentence, "invalid key")
                self.knows_key = True
            case {"type": str(kind)} if not self.knows_key:
                raise RegistrationError(f"a {kind} message came before the handshake's key")
            case {"type": "manifest_declaration", "data": dict(manifest)}:
                check("manifest", as_sent(manifest), "manifest_declaration")
                self._has_manifest = True
            case {"type": "agent_strategy_declaration", "data": list(providers)}:
                self._check_strategies(providers)
            case {"type": str(kind), "data": list()} if kind in DECLARATIONS:
                self._declared.add(kind)
            case {"type": "asset_chunk"}:
                pass
            case {"type": "end"} if self._has_manifest:
                self._check_kinds()
                return True
            case _:
                raise RegistrationError(f"not a message of the handshake at this place: {str(message)[:200]}")
        return False

    def _check_strategies(self, providers: list[Any]) -> None:
        self._declared.add(STRATEGIES)
        for number, provider in enumerate(as_sent(providers)):
            check("agent_strategies", provider, f"{STRATEGIES}[{number}]")

    def _check_kinds(self) -> None:
        if not self._declared:
            raise RegistrationError("no registration transferred: the plugin declares nothing")
        if STRATEGIES in self._declared and (others := sorted(self._declared - {STRATEGIES})):
            raise RegistrationError(f"{STRATEGIES} cannot share a plugin with {', '.join(others)}")
