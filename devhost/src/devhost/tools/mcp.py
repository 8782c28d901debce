"""MCP servers. A run offers and calls their tools as Dify 1.14.0 does, according to its source.

This module needs the package `mcp`. Dify reaches servers over HTTP only. devhost can also start a server with a command
and communicate over standard input and output.
"""

import logging
import os
import re
import shlex
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self, TextIO

from pydantic import ValidationError

from devhost.errors import InvocationError, ParameterError, SetupError, about
from devhost.limits import HostLimits
from devhost.node.messages import UNKNOWN_MIME_TYPE
from devhost.node.outputs.run import printed_error
from devhost.plugin.casting import cast_given
from devhost.plugin.contents import SECRET
from devhost.plugin.declaration import (
    I18n,
    Identity,
    ProvidedTool,
    ToolDeclaration,
    ToolDescription,
    ToolParameter,
    ToolProvider,
)
from devhost.process.session import Answer, Watcher
from devhost.protocol.wire import JsonObject
from devhost.text import Secrets, json_or, properties_of
from devhost.tools.entity import declared_entity
from devhost.tools.tool import blob_message, json_message, text_message
from devhost.words import in_a_line

if TYPE_CHECKING:
    import mcp
    import mcp_types

# How a person describes a server.

NAME = re.compile(r"[a-z0-9_-]{1,24}")
"""The names that Dify's page accepts as a server's identifier."""
CONNECTING = re.compile(r"(?i)SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE|NODE_EXTRA_CA_CERTS|(HTTPS?|ALL|NO)_PROXY")
"""Environment variables that a command needs in a network with a proxy or its own certificates.

The client library passes on a few other variables, too.
"""


@dataclass(frozen=True)
class McpServer:
    """An MCP server.

    `target` is a command or an address. `secrets` are environment variables for a command and headers for an address.
    """

    name: str
    target: str = field(repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, text: str) -> Self:
        """Reads `COMMAND`, `URL`, `NAME=COMMAND` or `NAME=URL`."""
        name, equals, target = text.partition("=")
        if not equals or not NAME.fullmatch(name):
            name = ""
            target = text
        target = target.strip()
        try:
            words = shlex.split(target)
        except ValueError:  # the error is not chained, because its text may contain a key
            raise ParameterError("--mcp: the command has a quote that is not closed, or ends in \\") from None
        if not words:
            raise ParameterError(f"--mcp {text!r} is not [NAME=]COMMAND or [NAME=]URL")
        return cls(name or "mcp", target)

    @property
    def is_address(self) -> bool:
        return self.target.startswith(("http://", "https://"))


def read_servers(
    texts: Iterable[str], credentials: Iterable[str] = ()
) -> tuple[tuple[McpServer, ...], tuple[str, ...]]:
    """Returns the servers with their credentials, and the remaining credentials.

    Raises `ParameterError` for two servers with the same name.
    """
    servers = [McpServer.read(text) for text in dict.fromkeys(texts)]
    secrets: dict[str, dict[str, str]] = {server.name: {} for server in servers}
    if len(secrets) < len(servers):
        name = Counter(server.name for server in servers).most_common(1)[0][0]
        with about("mcp"):
            raise ParameterError(f"--mcp: two servers are called {name!r}; name them: --mcp NAME=COMMAND")
    others = []
    for credential in credentials:
        target, equals, value = credential.partition("=")
        name, _, key = target.partition(".")
        if equals and key and name in secrets:
            secrets[name][key] = value
        else:
            others.append(credential)
    return tuple(replace(server, secrets=secrets[server.name]) for server in servers), tuple(others)


def secrets_of(servers: Iterable[McpServer]) -> list[str]:
    return [value for server in servers for value in server.secrets.values()]


# A tool as Dify describes it, and the parts of its schema that Dify drops.

LONGEST_PRINTED = 20_000
"""How many characters of a server's last output are shown."""
KEPT = frozenset({"type", "description", "title", "$schema"})
"""Keywords of a simple parameter's schema that reach the agent, or whose loss changes nothing."""


def declared_tool(server: str, tool: "mcp_types.Tool") -> ToolDeclaration:
    """Returns Dify's declaration of the tool. Raises `SetupError` for a parameter type that Dify does not know."""
    described = tool.description or ""
    return ToolDeclaration(
        identity=_identity(tool.name),
        description=ToolDescription(human=I18n(en_US=described), llm=described),
        parameters=tuple(_parameter(server, tool, name, schema) for name, schema in _properties(tool).items()),
        output_schema=tool.output_schema,
        has_runtime_parameters=bool(tool.input_schema),
    )


def _identity(name: str) -> Identity:
    return Identity(author="Anonymous", name=name, label=I18n(en_US=name))


def _parameter(server: str, tool: "mcp_types.Tool", name: str, schema: object) -> ToolParameter:
    if isinstance(schema, dict):
        given = schema
    else:
        given = {"type": schema}
    said = str(given.get("description", ""))
    kind = _kind(given)
    described = {
        "name": name,
        "label": I18n(en_US=name),
        "type": "number" if kind in {"integer", "float"} else kind,
        "required": name in tool.input_schema.get("required", ()),
        "form": "llm",
        "human_description": I18n(en_US=said),
        "llm_description": said,
    }
    try:
        return ToolParameter.model_validate(described)
    except ValidationError as error:
        raise SetupError(
            f"Dify does not take the MCP server {server}: parameter {name!r} of {tool.name} is of the type {kind!r}"
        ) from error


def _properties(tool: "mcp_types.Tool") -> Mapping[str, Any]:
    if tool.input_schema.get("type") == "object":
        return properties_of(tool.input_schema)
    return {}


def _kind(schema: JsonObject) -> object:
    """Returns the type that Dify uses for a schema.

    Dify uses the first type that is not null, or the type of the first alternative. Null becomes a string.
    """
    match schema.get("type"):
        case [*kinds] if kinds:
            return next((kind for kind in kinds if kind != "null"), "string")
        case None | []:
            parts = (part for key in ("anyOf", "oneOf", "allOf") for part in schema.get(key) or ())
            first = next((part for part in parts if isinstance(part, dict)), None)
            if first is None:
                return "string"
            return _kind(first)
        case kind:
            if kind == "null":
                return "string"
            return kind


def lost(tool: "mcp_types.Tool") -> str:
    """Describes the parts of the server's schema that no agent in Dify receives; empty if nothing is lost."""
    texts = [
        f"{name} ({', '.join(sorted(keys))})"
        for name, schema in _properties(tool).items()
        if isinstance(schema, dict) and _kind(schema) not in {"array", "object"} and (keys := schema.keys() - KEPT)
    ]
    beside = sorted(tool.input_schema.keys() & {"$defs", "definitions", "anyOf", "oneOf", "allOf"})
    return "; ".join([*texts, *(f"{key} of the whole schema" for key in beside)])


# Calls, and the conversion of their results to Dify's messages.


class McpTool:
    """A tool of a connected server. `call` sends a call to the server."""

    def __init__(
        self,
        server: McpServer,
        tool: "mcp_types.Tool",
        call: "Callable[..., mcp_types.CallToolResult]",
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Creates the tool. `tell` receives sentences about results for the person who watches the run."""
        self.provider = server.name
        self.name = tool.name
        self.declared = declared_tool(server.name, tool)
        provider = ToolProvider(identity=_identity(server.name), tools=(self.declared,))
        self.provided = ProvidedTool(provider, server.name, self.declared)
        self.entity = {**declared_entity(self.provided), "credential_id": server.name, "provider_type": "mcp"}
        for parameter in self.entity["parameters"]:
            if parameter["type"] in {"array", "object"}:  # for all other types Dify sends only the type
                parameter["input_schema"] = _properties(tool)[parameter["name"]]
        losses = lost(tool)
        self.notices = (f"{tool.name}: Dify does not hand on {losses}",) if losses else ()
        """What a person should know before a run with this tool."""
        self.secrets = tuple(server.secrets.values())
        self.told_an_error = False
        """Whether the server marked the last result as an error. Dify ignores this mark."""
        self._call = call
        self._tell = tell
        self._masked = Secrets(self.secrets).masked

    def invoke(self, parameters: JsonObject, _answer: Answer, _request_id: str, /) -> Iterator[JsonObject]:
        cast = cast_given(self.declared.parameters, parameters)
        # Dify, too, does not send blank values.
        sent = {name: value for name, value in cast.items() if value is not None and str(value).strip()}
        try:
            result = self._call(self.name, sent)
        except Exception as error:  # noqa: BLE001 - Dify reports every failure in one sentence
            said = f"Failed to invoke tool: {_leaf(error)}"
            raise InvocationError("ToolInvokeError", self._masked(said)) from None
        self.told_an_error = bool(result.is_error)
        for dropped in dropped_of(result, has_schema=bool(self.declared.output_schema)):
            self._tell(f"{self.name}: Dify does not hand on {dropped}")
        yield from map(self._masked, messages(result, has_schema=bool(self.declared.output_schema)))


def messages(result: "mcp_types.CallToolResult", *, has_schema: bool) -> Iterator[JsonObject]:
    """Yields one of Dify's messages for each content block of a known type.

    Dify ignores `is_error` and drops links.
    """
    for block in result.content:
        match block.type:
            case "text":
                yield from _of_text(block.text)
            case "image" | "audio":
                yield blob_message(block.data, {"mime_type": block.mime_type})
            case "resource" if (text := getattr(block.resource, "text", None)) is not None:
                yield text_message(text)
            case "resource":
                meta = {"mime_type": block.resource.mime_type or UNKNOWN_MIME_TYPE}
                yield blob_message(getattr(block.resource, "blob", ""), meta)
    if has_schema:
        for name, value in (result.structured_content or {}).items():
            body = {"variable_name": name, "variable_value": value, "stream": False}
            yield {"type": "variable", "message": body, "meta": None}


def dropped_of(result: "mcp_types.CallToolResult", *, has_schema: bool) -> Iterator[str]:
    """Yields the parts of a result that reach no agent, worded as objects of a sentence."""
    if result.structured_content and not has_schema:
        yield "its structured content, because the tool declares no output schema"
    unknown = {block.type for block in result.content} - HANDED_ON
    if unknown:
        yield f"its content of the type {' and '.join(sorted(unknown))}"


HANDED_ON = frozenset({"text", "image", "audio", "resource"})
"""The content types that become messages."""


def _of_text(text: str) -> Iterator[JsonObject]:
    """Yields the messages for a text. A JSON object, or each object in a JSON list, becomes a JSON message."""
    match json_or(text, None):
        case dict() as value:
            yield json_message(value)
        case list() as value if all(isinstance(item, dict) for item in value):
            yield from map(json_message, value)
        case list() as value:
            yield text_message(str(value))  # Dify, too, sends the text of the Python list
        case _:
            yield text_message(text)


# The connections of one host. The client library is asynchronous, so one thread runs its event loop.


class _Logged(logging.Handler):
    """Reports what the client library logs about its servers, such as a line that is not a message."""

    def __init__(self, servers: Sequence[McpServer], watcher: Watcher) -> None:
        super().__init__(logging.WARNING)
        self._names = ", ".join(server.name for server in servers)
        self._masked = Secrets(secrets_of(servers)).masked
        self._watcher = watcher

    def emit(self, record: logging.LogRecord) -> None:
        _, error, _ = record.exc_info or (None, None, None)
        said = record.getMessage()
        if isinstance(error, ValidationError):
            said = f"prints what is not a message of MCP on its standard output: {error.errors()[0]['input']}"
        elif error is not None:
            said = f"{said}: {_leaf(error)}"
        self._watcher.printed(self._names, self._masked(in_a_line(said)))

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Replaces Python's own log handlers, which write tracebacks to the terminal."""
        library = logging.getLogger("mcp")
        propagated = library.propagate
        library.addHandler(self)
        library.propagate = False
        try:
            yield
        finally:
            library.propagate = propagated
            library.removeHandler(self)


@contextmanager
def connected(servers: Sequence[McpServer], limits: HostLimits, watcher: Watcher) -> Iterator[list[McpTool]]:
    """Connects to all servers and yields their tools.

    Raises `SetupError` if a server does not start or does not answer.
    """
    if not servers:
        yield []
        return
    if find_spec("mcp") is None:
        raise ParameterError("--mcp needs the package mcp: pip install 'dify-devhost[mcp]'")
    from anyio.from_thread import start_blocking_portal  # noqa: PLC0415 - needed with --mcp alone

    tools: list[McpTool] = []
    # `closing` hides an exception from the connections, which would wrap it in a group.
    with closing(ExitStack()) as opened:
        opened.enter_context(_Logged(servers, watcher).listening())
        portal = opened.enter_context(start_blocking_portal())
        for server in servers:
            watcher.starting([server.name])
            kept = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - the stack closes it
            printed = opened.enter_context(kept)
            try:
                client, listed = opened.enter_context(
                    portal.wrap_async_context_manager(_opened(server, printed, limits.launch_seconds))
                )
            except Exception as error:  # noqa: BLE001 - as above
                raise SetupError(Secrets(server.secrets.values()).masked(_why(server, error, printed))) from None
            call = partial(portal.call, partial(client.call_tool, read_timeout_seconds=limits.call_seconds))
            offered = [McpTool(server, tool, call, partial(watcher.printed, server.name)) for tool in listed]
            if not server.is_address:
                watcher.printed(server.name, "started as a command; Dify needs an address")
            if not offered:
                watcher.printed(server.name, "has no tools")
            for notice in (notice for tool in offered for notice in tool.notices):
                watcher.printed(server.name, notice)
            tools += offered
        watcher.starting([])
        yield tools


@asynccontextmanager
async def _opened(
    server: McpServer, printed: TextIO, seconds: float
) -> "AsyncIterator[tuple[mcp.Client, Sequence[mcp_types.Tool]]]":
    from mcp import Client  # noqa: PLC0415 - as above

    async with Client(_transport(server, printed), read_timeout_seconds=seconds) as client:
        yield client, (await client.list_tools()).tools  # only the first page, as in Dify


@asynccontextmanager
async def _transport(server: McpServer, printed: TextIO) -> AsyncIterator[Any]:  # streams of the library's own types
    import httpx2  # noqa: PLC0415 - as above
    from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: PLC0415 - as above
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

    secrets = dict(server.secrets)
    if not server.is_address:
        command, *arguments = shlex.split(server.target)
        if shutil.which(command) is None:
            raise FileNotFoundError(f"there is no program {command!r}")
        connecting = {name: value for name, value in os.environ.items() if CONNECTING.fullmatch(name)}
        started = StdioServerParameters(command=command, args=arguments, env={**connecting, **secrets})
        async with stdio_client(started, printed) as streams:
            yield streams
    else:
        async with (
            httpx2.AsyncClient(headers=secrets) as client,
            streamable_http_client(server.target, http_client=client) as streams,
        ):
            yield streams


def _why(server: McpServer, error: BaseException, printed: TextIO) -> str:
    printed.seek(0)
    said = printed.read()[-LONGEST_PRINTED:].strip()
    why = str(_leaf(error))
    if why == "Connection closed" and not server.is_address:
        why = f"{shlex.split(server.target)[0]} ended before it answered"
    words = f"the MCP server {server.name} did not start: {why}"
    if raised := printed_error(f"{said}\n"):
        said = f"{raised.line}\nIts command: {SECRET.sub('[secret]', server.target)}"
    if said:
        words = f"{words}\nIt printed:\n{said}"
    return words


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
