"""The daemon's rules for the manifest of a plugin that registers, rule by rule.

In: the manifest as JSON without nulls. Out: nothing, or a `RegistrationError` that names every field at fault.
"""

import re
from datetime import datetime
from typing import Annotated, Any, Literal

from packaging.version import InvalidVersion
from packaging.version import Version as PythonVersion
from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StrictInt, StrictStr
from pydantic_core import PydanticCustomError

from devhost.plugin.rules.fields import Checked, Fault, I18n, Path, Tag, check, faults
from devhost.protocol.wire import JsonObject


def _rfc3339(value: object) -> object:
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$", value):
        return datetime.fromisoformat(value)
    raise PydanticCustomError("rfc3339", "{value} is not a time as in RFC 3339", {"value": repr(value)})


def _pep440(version: str) -> str:
    try:
        PythonVersion(version)
    except InvalidVersion:
        context = {"version": repr(version)}
        raise PydanticCustomError(
            "pep440", "{version} is not a version by PEP 440, as which Dify reads it", context
        ) from None
    return version


def _not_a_uuid(author: str) -> str:
    if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", author):
        raise PydanticCustomError("uuid", "a UUID stands for a plugin under remote debugging; give a name")
    return author


def _dotted(version: str) -> str:
    if not re.fullmatch(r"\d{1,4}(\.\d{1,4}){2}(-\w{1,16})?", version):
        context = {"version": repr(version)}
        raise PydanticCustomError("version", "{version} is not a version such as 0.2.0 or 0.2.0-beta1", context)
    return version


type Version = Annotated[StrictStr, AfterValidator(_dotted)]


class _Access(Checked):
    enabled: StrictBool = False


class _Models(_Access):
    llm: StrictBool = False
    text_embedding: StrictBool = False
    rerank: StrictBool = False
    tts: StrictBool = False
    speech2text: StrictBool = False
    moderation: StrictBool = False


class _Storage(_Access):
    size: Annotated[StrictInt, Field(ge=1024, le=1024**3)]
    """Checked even if the storage is not enabled."""


class _Permission(Checked):
    tool: _Access | None = None
    model: _Models | None = None
    node: _Access | None = None
    endpoint: _Access | None = None
    app: _Access | None = None
    storage: _Storage | None = None


class _Resource(Checked):
    memory: Annotated[StrictInt, Field(gt=0)]
    permission: _Permission | None = None


class _Plugins(Checked):
    agent_strategies: tuple[Path, ...] = ()
    tools: tuple[Path, ...] = ()
    models: tuple[Path, ...] = ()
    endpoints: tuple[Path, ...] = ()
    datasources: tuple[Path, ...] = ()
    triggers: tuple[Path, ...] = ()


class _Runner(Checked):
    language: Literal["python"]
    version: Path
    entrypoint: Annotated[StrictStr, Field(min_length=1, max_length=256)]


class _Meta(Checked):
    version: Version
    arch: Annotated[list[Literal["amd64", "arm64"]], Field(min_length=1)]
    runner: _Runner
    minimum_dify_version: StrictStr | None = None


class _Manifest(Checked):
    version: Annotated[Version, AfterValidator(_pep440)]
    type: Literal["plugin"]
    author: Annotated[StrictStr, Field(pattern=r"^[a-z0-9_-]{1,64}$"), AfterValidator(_not_a_uuid)]
    name: Annotated[StrictStr, Field(pattern=r"^[a-z0-9_-]{1,128}$")]
    label: I18n
    description: I18n
    icon: Path
    icon_dark: Annotated[StrictStr, Field(max_length=128)] = ""
    created_at: Annotated[datetime, BeforeValidator(_rfc3339)]
    resource: _Resource
    plugins: _Plugins
    meta: _Meta
    tags: tuple[Tag, ...] = ()
    verified: Any = None
    privacy: Any = None
    repo: Any = None
    contact: Any = None
    """This one the marketplace alone reads."""


def check_manifest(manifest: JsonObject) -> None:
    check(_Manifest, manifest, "manifest_declaration")


def manifest_faults(manifest: JsonObject) -> list[Fault]:
    return faults(_Manifest, manifest)
