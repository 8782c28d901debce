"""manifest.yaml: what a plugin is, what it may ask for, and the paths of its other files."""

from devhost.plugin.keys.base import Declared


class _Access(Declared):
    enabled: bool = False


class _ModelAccess(_Access):
    llm: bool = False
    text_embedding: bool = False
    rerank: bool = False
    tts: bool = False
    speech2text: bool = False
    moderation: bool = False


class _StorageAccess(_Access):
    size: int | None = None
    """In bytes."""


class Permission(Declared):
    """What the plugin may ask the host for; the daemon refuses the rest."""

    tool: _Access = _Access()
    model: _ModelAccess = _ModelAccess()
    node: _Access = _Access()
    app: _Access = _Access()
    storage: _StorageAccess = _StorageAccess()

    def allows(self, access: str) -> bool:
        """`access` is a key of resource.permission or of its model; the empty one is always allowed."""
        if access in _ModelAccess.model_fields:
            return self.model.enabled and bool(getattr(self.model, access))
        return not access or bool(getattr(self, access).enabled)


class _Resource(Declared):
    permission: Permission = Permission()


class _Runner(Declared):
    entrypoint: str


class _Meta(Declared):
    version: str
    runner: _Runner


class _Plugins(Declared):
    agent_strategies: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


class Manifest(Declared):
    author: str
    name: str
    version: str
    resource: _Resource = _Resource()
    plugins: _Plugins
    meta: _Meta
