"""MCP servers, whose tools a run offers and calls as Dify does. Needs the package `mcp`.

Dify reaches servers over HTTP only. devhost also starts one that is a command, and talks to it over its standard input
and output.
"""

import json
import re
import shlex
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Self, TextIO, get_args
from urllib.parse import urlsplit

from devhost.errors import InvocationError, ParameterError, ToolSetupError
from devhost.limits import HostLimits
from devhost.plugin.casting import cast_value
from devhost.plugin.declaration import I18n, Parameter, ToolParameterType
from devhost.process.session import Answer, Watcher
from devhost.protocol.wire import JsonObject
from devhost.text import Secrets
from devhost.tools.tool import Tool

if TYPE_CHECKING:
    import mcp
    import mcp_types

# What a person says of a server.

NAME = re.compile(r"[a-z0-9_-]{1,24}")
"""What Dify's page takes as a server's identifier."""
LAUNCHERS = frozenset({"bunx", "docker", "node", "npm", "npx", "python", "python3", "run", "exec", "uv", "uvx"})
"""Words of a command that do not say which server it starts."""


@dataclass(frozen=True)
class McpServer:
    """`target` is a command or an address; `secrets` are the environment of the one, the headers of the other."""

    name: str
    target: str = field(repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, text: str) -> Self:
        """Of `COMMAND`, `URL`, `NAME=COMMAND` or `NAME=URL`."""
        name, equals, target = text.partition("=")
        if not equals or not NAME.fullmatch(name):
            name, target = "", text
        target = target.strip()
        try:
            words = shlex.split(target)
        except ValueError as error:
            raise ParameterError(f"--mcp {text!r} is not a command: {error}") from error
        if not words:
            raise ParameterError(f"--mcp {text!r} is not [NAME=]COMMAND or [NAME=]URL")
        return cls(name or _name(target, words), target)

    @property
    def is_address(self) -> bool:
        return self.target.startswith(("http://", "https://"))


def _name(target: str, words: Sequence[str]) -> str:
    """A name for a server without one: of its host, or of the first word that says what the command starts."""
    says = (PurePath(word).stem for word in words if not word.startswith("-"))
    chosen = urlsplit(target).hostname or next((word for word in says if word not in LAUNCHERS), "")
    return re.sub(r"[^a-z0-9_-]+", "-", chosen.lower()).strip("-")[:24] or "mcp"


def read_servers(texts: Iterable[str]) -> tuple[McpServer, ...]:
    """ParameterError for two of one name."""
    servers = tuple(McpServer.read(text) for text in dict.fromkeys(texts))
    names = [server.name for server in servers]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"--mcp: two servers are called {name!r}; name them: --mcp NAME=COMMAND")
    return servers


def with_secrets(
    servers: Sequence[McpServer], credentials: Iterable[str]
) -> tuple[tuple[str, ...], tuple[McpServer, ...]]:
    """The credentials that are not of a server, as they are given, and the servers with theirs."""
    secrets: dict[str, dict[str, str]] = {server.name: {} for server in servers}
    others = []
    for credential in credentials:
        target, equals, value = credential.partition("=")
        name, _, key = target.partition(".")
        if equals and key and name in secrets:
            secrets[name][key] = value
        else:
            others.append(credential)
    return tuple(others), tuple(replace(server, secrets=secrets[server.name]) for server in servers)


# A tool as Dify describes it, and what is lost on the way.

PLAIN = frozenset({"array", "boolean", "number", "object", "string"})
KEPT = frozenset({"type", "description", "title", "$schema"})
"""Keywords of a simple parameter's schema that change nothing when they are lost, or reach the agent."""


def mcp_entity(server: str, tool: "mcp_types.Tool") -> JsonObject:
    """As Dify sends it to a strategy; ToolSetupError for a type that Dify does not know."""
    described = tool.description or ""
    return {
        "identity": {
            "author": "Anonymous",
            "name": tool.name,
            "label": I18n(en_US=tool.name).model_dump(),
            "provider": server,
            "icon": "",
        },
        "parameters": [
            {**parameter.model_dump(mode="json"), "input_schema": schema}
            for parameter, schema in _parameters(server, tool)
        ],
        "description": {"human": I18n(en_US=described).model_dump(), "llm": described},
        "output_schema": tool.output_schema or {},
        "has_runtime_parameters": bool(tool.input_schema),
        "runtime_parameters": {},
        "credential_id": server,
        "provider_type": "mcp",
    }


def _parameters(server: str, tool: "mcp_types.Tool") -> Iterator[tuple[Parameter, JsonObject | None]]:
    """With the schema of each that is an object or a list; of all others Dify sends the type alone."""
    for name, schema in _properties(tool).items():
        kind = _kind(schema)
        if kind not in get_args(ToolParameterType.__value__) and kind not in PLAIN:
            raise ToolSetupError(
                f"Dify does not take the MCP server {server}: parameter {name!r} of {tool.name} is of type {kind!r}"
            )
        said = str(schema.get("description", ""))
        parameter = Parameter(
            name=name,
            label=I18n(en_US=name),
            type=kind,
            required=name in tool.input_schema.get("required", ()),
            form="llm",
            human_description=I18n(en_US=said),
            llm_description=said,
        )
        yield parameter, schema if kind in {"array", "object"} else None


def _properties(tool: "mcp_types.Tool") -> Mapping[str, JsonObject]:
    schema = tool.input_schema
    properties = schema.get("properties") if schema.get("type") == "object" else None
    return properties if isinstance(properties, dict) else {}


def _kind(schema: JsonObject) -> str:
    """The type that Dify takes: the first that is not null, also of alternatives; a text where it finds none."""
    given = schema.get("type")
    kinds = [given] if isinstance(given, str) else list(given or ())
    for each in (*kinds, *(_kind(part) for key in ("anyOf", "oneOf", "allOf") for part in schema.get(key) or ())):
        if each != "null":
            return "number" if each in {"integer", "float"} else str(each)
    return "string"


def lost(tool: "mcp_types.Tool") -> str:
    """What of the server's schema no agent in Dify reads; empty if that is nothing."""
    texts = [
        f"{name} ({', '.join(sorted(keys))})"
        for name, schema in _properties(tool).items()
        if _kind(schema) not in {"array", "object"} and (keys := schema.keys() - KEPT)
    ]
    beside = sorted(tool.input_schema.keys() & {"$defs", "definitions", "anyOf", "oneOf", "allOf"})
    return "; ".join([*texts, *(f"{key} of the whole schema" for key in beside)])


# A call, and what Dify makes of its result.


class McpTool:
    """A tool of a server that is connected; `call` asks the server."""

    def __init__(
        self, server: McpServer, tool: "mcp_types.Tool", call: "Callable[..., mcp_types.CallToolResult]"
    ) -> None:
        self.provider = server.name
        self.name = tool.name
        self.entity = mcp_entity(server.name, tool)
        self._parameters = {parameter.name: parameter for parameter, _ in _parameters(server.name, tool)}
        self._has_schema = bool(tool.output_schema)
        self._call = call
        self._secrets = Secrets(server.secrets.values())

    def invoke(self, parameters: JsonObject, _answer: Answer, _request_id: str, /) -> Iterator[JsonObject]:
        cast = {
            name: cast_value(self._parameters[name], value) if name in self._parameters else value
            for name, value in parameters.items()
        }
        sent = {name: value for name, value in cast.items() if not _is_blank(value)}
        try:
            result = self._call(self.name, sent)
        except Exception as error:  # noqa: BLE001 - whatever the server or the connection does, Dify says it in one sentence
            said = f"Failed to invoke tool: {_leaf(error)}"
            raise InvocationError("ToolInvokeError", self._secrets.masked(said)) from None
        yield from map(self._secrets.masked, messages(result, has_schema=self._has_schema))


def _is_blank(value: object) -> bool:
    """Dify leaves such a value out."""
    return value is None or (isinstance(value, str) and not value.strip())


def messages(result: "mcp_types.CallToolResult", *, has_schema: bool) -> Iterator[JsonObject]:
    """A message of Dify's for each block that it knows. `is_error` changes nothing, and a link is not handed on."""
    for block in result.content:
        match block.type:
            case "text":
                yield from _of_text(block.text)
            case "image" | "audio":
                yield _blob(block.data, block.mime_type)
            case "resource" if (text := getattr(block.resource, "text", None)) is not None:
                yield _text(text)
            case "resource":
                yield _blob(getattr(block.resource, "blob", ""), block.resource.mime_type or "application/octet-stream")
    if has_schema:
        for name, value in (result.structured_content or {}).items():
            body = {"variable_name": name, "variable_value": value, "stream": False}
            yield {"type": "variable", "message": body, "meta": None}


def _of_text(text: str) -> Iterator[JsonObject]:
    """JSON in a text becomes JSON messages: an object one, a list of objects one each."""
    stripped = text.strip()
    value: object = None
    if stripped.startswith(("{", "[")) and stripped.endswith(("}", "]")):
        try:
            value = json.loads(stripped)
        except (ValueError, RecursionError):
            value = None
    match value:
        case dict():
            yield _json(value)
        case list() if all(isinstance(item, dict) for item in value):
            yield from map(_json, value)
        case list():
            yield _text(str(value))  # as Python writes it
        case _:
            yield _text(text)


def _text(text: str) -> JsonObject:
    return {"type": "text", "message": {"text": text}, "meta": None}


def _json(value: JsonObject) -> JsonObject:
    return {"type": "json", "message": {"json_object": value}, "meta": None}


def _blob(data: str, mime_type: str) -> JsonObject:
    return {"type": "blob", "message": {"blob": data}, "meta": {"mime_type": mime_type}}


# The connections of one host. The client library is asynchronous: one thread runs its loop.


@contextmanager
def connected(servers: Sequence[McpServer], limits: HostLimits, watcher: Watcher) -> Iterator[list[Tool]]:
    """The tools of all servers; ToolSetupError for one that does not start or answer."""
    if not servers:
        yield []
        return
    try:
        from anyio.from_thread import start_blocking_portal  # noqa: PLC0415 - needed with --mcp alone
        from mcp import MCPError  # noqa: F401, PLC0415
    except ModuleNotFoundError as error:
        raise ParameterError(f"--mcp needs the package {error.name}: pip install 'dify-devhost[mcp]'") from error
    tools: list[Tool] = []
    with ExitStack() as opened:
        portal = opened.enter_context(start_blocking_portal())
        for server in servers:
            watcher.starting([server.name])
            printed = opened.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace"))
            try:
                client, listed = opened.enter_context(
                    portal.wrap_async_context_manager(_opened(server, printed, limits.launch_seconds))
                )
            except Exception as error:  # noqa: BLE001 - as above
                raise ToolSetupError(Secrets(server.secrets.values()).masked(_why(server, error, printed))) from None
            call = partial(portal.call, partial(client.call_tool, read_timeout_seconds=limits.call_seconds))
            tools += [McpTool(server, tool, call) for tool in listed]
            for sentence in _told(server, listed):
                watcher.printed(server.name, sentence, exact=False)
        watcher.starting([])
        yield tools


@asynccontextmanager
async def _opened(
    server: McpServer, printed: TextIO, seconds: float
) -> "AsyncIterator[tuple[mcp.Client, Sequence[mcp_types.Tool]]]":
    from mcp import Client  # noqa: PLC0415 - as above

    async with Client(_transport(server, printed), read_timeout_seconds=seconds) as client:
        yield client, (await client.list_tools()).tools  # the first page, which is what Dify asks for


@asynccontextmanager
async def _transport(server: McpServer, printed: TextIO) -> AsyncIterator[Any]:  # streams of the library's own types
    import httpx2  # noqa: PLC0415 - as above
    from mcp.client.sse import sse_client  # noqa: PLC0415
    from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client  # noqa: PLC0415
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

    secrets = dict(server.secrets)
    if not server.is_address:
        command, *arguments = shlex.split(server.target)
        if shutil.which(command) is None:
            raise FileNotFoundError(f"there is no program {command!r}")
        environment = {**get_default_environment(), **secrets}
        started = StdioServerParameters(command=command, args=arguments, env=environment)
        async with stdio_client(started, printed) as streams:
            yield streams
    elif urlsplit(server.target).path.rstrip("/").endswith("/sse"):
        async with sse_client(server.target, secrets) as streams:
            yield streams
    else:
        async with (
            httpx2.AsyncClient(headers=secrets) as client,
            streamable_http_client(server.target, http_client=client) as streams,
        ):
            yield streams


def _why(server: McpServer, error: BaseException, printed: TextIO) -> str:
    printed.seek(0)
    said = printed.read()[-2_000:].strip()
    return f"the MCP server {server.name} did not start: {_leaf(error)}" + (f"\nIt printed:\n{said}" if said else "")


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _told(server: McpServer, tools: "Sequence[mcp_types.Tool]") -> Iterator[str]:
    """What a person should know before a run with these tools."""
    if not server.is_address:
        yield "started as a command; Dify needs an address"
    if not tools:
        yield "has no tools"
    for tool in tools:
        if losses := lost(tool):
            yield f"{tool.name}: Dify does not hand on {losses}"
