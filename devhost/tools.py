"""The tools a run can use: anything that has Dify's description of itself and answers a call with messages.

`PluginTool` is a tool of a tool plugin that runs; it casts the parameters by the tool's declaration, as Dify does.
`call_tool` is what Dify does around any of them: bytes become tool files on the way back.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

from devhost import declaration
from devhost.casting import cast_value
from devhost.file_messages import FileMessages
from devhost.limits import HostLimits
from devhost.messages import read_message
from devhost.plugin_process import PluginProcess
from devhost.session import Answer
from devhost.tool_entity import tool_entity
from devhost.tool_files import ToolFileStore
from devhost.wire import JsonObject


class Tool(Protocol):
    @property
    def provider(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def entity(self) -> JsonObject:
        """As Dify sends it to a strategy."""

    def invoke(self, parameters: JsonObject, answer: Answer, /) -> Iterator[JsonObject]:
        """Messages as a tool plugin sends them; `answer` serves the tool's own backwards calls."""


class PluginTool:
    def __init__(
        self,
        plugin: PluginProcess,
        provider: declaration.ToolProvider,
        tool: declaration.Tool,
        limits: HostLimits,
        credentials: Mapping[str, object] | None = None,
    ) -> None:
        self.provider = plugin.declaration.provider_id(provider)
        self.name = tool.identity.name
        self.entity = tool_entity(self.provider, provider, tool)
        self._plugin = plugin
        self._provider_name = provider.identity.name
        self._declared = {parameter.name: parameter for parameter in tool.parameters}
        self._limits = limits
        self._credentials = dict(credentials or {})

    def invoke(self, parameters: JsonObject, answer: Answer, /) -> Iterator[JsonObject]:
        cast = {
            name: cast_value(self._declared[name], value) if name in self._declared else value
            for name, value in parameters.items()
        }
        request = {
            "type": "tool",
            "action": "invoke_tool",
            "user_id": "devhost",
            "provider": self._provider_name,
            "tool": self.name,
            "credentials": self._credentials,
            "credential_type": "api-key" if self._credentials else "unauthorized",
            "tool_parameters": cast,
        }
        with self._plugin.open_session(request) as session:
            yield from session.messages(answer, self._limits.run_seconds)


def plugin_tools(plugin: PluginProcess, limits: HostLimits) -> list[Tool]:
    return [
        PluginTool(plugin, provider, tool, limits)
        for provider in plugin.declaration.tool_providers
        for tool in provider.tools
    ]


def call_tool(
    tool: Tool, parameters: JsonObject, answer: Answer, files: ToolFileStore, limits: HostLimits
) -> Iterator[JsonObject]:
    """The messages as a strategy gets them: files are links to tool files, bytes never arrive."""
    transformed = FileMessages(files, limits, dropped=lambda _: None)
    for message in tool.invoke(parameters, answer):
        for result in transformed.transform(read_message(message)):
            yield result.on_the_wire()
