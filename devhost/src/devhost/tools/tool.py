"""The tools that a run can use: tools of plugins, and Python functions."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, Protocol
from weakref import WeakValueDictionary

from devhost.errors import InvocationError, PluginLostError
from devhost.node.messages import FileMessages, read_message
from devhost.plugin.casting import cast_for_call
from devhost.process.plugin_process import PluginProcess
from devhost.process.session import Answer, Session
from devhost.protocol.structs import tool_message
from devhost.protocol.wire import MESSAGE_TYPES, JsonObject
from devhost.text import Secrets
from devhost.tools.entity import filled
from devhost.tools.setup import OfferedTool, ToolSetup


class Tool(Protocol):
    """Anything that has Dify's description of itself and answers a call with messages."""

    @property
    def provider(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def entity(self) -> JsonObject:
        """The tool's description as Dify sends it to a strategy."""

    def invoke(self, parameters: JsonObject, answer: Answer, request_id: str, /) -> Iterator[JsonObject]:
        """Calls the tool and yields messages as a tool plugin sends them.

        `answer` serves the tool's own backwards calls. `request_id` is the id of the backwards call that invokes the
        tool; it is empty if there is none.
        """


class PluginTool:
    """A tool of a tool plugin. Secret credentials are masked in everything that the tool sends."""

    def __init__(self, plugin: PluginProcess, setup: ToolSetup, offered: OfferedTool) -> None:
        self.provider = offered.provider_id
        self.name = offered.name
        self.entity = offered.entity
        self._limit: Literal["run-seconds", "call-seconds"] = "run-seconds"
        """The limit at which the daemon ends the tool.

        The limit of an agent's call is applied elsewhere, because it ends the answer and not the tool.
        """
        self._plugin = plugin
        self._setup = setup
        self._offered = offered
        self._masked = Secrets(setup.secret_credentials).masked
        self._serving = WeakValueDictionary[str, Session]()
        """The sessions by the id of the call that they answer."""

    def end_as_an_agents_call(self) -> None:
        """Makes a direct call of the tool end at the limit of an agent's call, too."""
        if self._plugin.limits.call_seconds < self._plugin.limits.run_seconds:
            self._limit = "call-seconds"

    def where(self, request_id: str) -> str:
        """Returns, as a clause, the position of the plugin's code that answers the call; empty before it was sent."""
        session = self._serving.get(request_id)
        if session is None:
            return ""
        return session.where()

    def invoke(self, parameters: JsonObject, answer: Answer, request_id: str, /) -> Iterator[JsonObject]:
        provider = self._offered.provider
        declared = self._offered.declared.parameters
        request = {
            "type": "tool",
            "action": "invoke_tool",
            "user_id": "devhost",
            "provider": provider.identity.name,
            "tool": self.name,
            "credentials": self._setup.credentials[provider.identity.name],
            "credential_type": provider.credential_type,
            "tool_parameters": cast_for_call(declared, parameters, by_plugin=bool(request_id)),
        }
        try:
            with self._plugin.open_session(request, serves=request_id) as session:
                self._serving[request_id] = session
                seconds = getattr(self._plugin.limits, self._limit.replace("-", "_"))
                said = session.messages(answer, seconds, tool_message, limit=self._limit)
                yield from map(self._masked, said)
        except InvocationError as error:
            raise InvocationError(error.error_type, self._masked(error.message), self._masked(error.details)) from None
        except PluginLostError as error:
            raise PluginLostError(self._masked(str(error))) from None


def call_tool(
    tool: Tool, parameters: JsonObject, files: FileMessages, answer: Answer, request_id: str = ""
) -> Iterator[JsonObject]:
    """Calls the tool and yields its messages as a strategy receives them: files are links to tool files, never bytes.

    `answer` serves the tool's own backwards calls. `files` collects violations of Dify's rules that do not fail the
    call.
    """
    is_silent = True
    for message in tool.invoke(parameters, answer, request_id):
        is_silent = False
        if message.get("type") not in MESSAGE_TYPES:  # a type of a newer Dify; an older daemon drops it
            yield message
            continue
        for result in files.transform(read_message(message)):
            yield result.on_the_wire()
    if is_silent:
        files.found("tool-says-nothing", "it sent no message, so the model reads an empty result")


# Messages as a tool plugin creates them.


def text_message(text: str) -> JsonObject:
    return {"type": "text", "message": {"text": text}, "meta": None}


def blob_message(data: str, meta: JsonObject | None) -> JsonObject:
    """Returns a message with a file. `data` is base64 text."""
    return {"type": "blob", "message": {"blob": data}, "meta": meta}


def json_message(value: object) -> JsonObject:
    return {"type": "json", "message": {"json_object": value}, "meta": None}


class FunctionTool:
    """A tool without a plugin: a Python function that a strategy can call like any other tool.

    `parameters` maps each name to a type or to a complete description. A parameter with only a type is required and set
    by the model. The function returns a text, a JSON object or a list of messages. An exception fails the call like an
    exception of a plugin's tool.
    """

    def __init__(
        self,
        name: str,
        parameters: Mapping[str, str | JsonObject],
        function: Callable[[dict[str, Any]], str | JsonObject | list[JsonObject]],
        *,
        provider: str = "devhost/functions/functions",
        description: str = "",
    ) -> None:
        self.name = name
        self.provider = provider
        self._function = function
        identity = {"author": "devhost", "name": name, "label": {"en_US": name}, "provider": provider, "icon": ""}
        described = description or name
        self.entity: JsonObject = filled(
            {
                "identity": identity,
                "parameters": [_parameter(key, described) for key, described in parameters.items()],
                "description": {"human": {"en_US": described}, "llm": described},
            }
        )

    def invoke(self, parameters: JsonObject, _answer: Answer, _request_id: str, /) -> Iterator[JsonObject]:
        try:
            result = self._function(parameters)
        except Exception as error:  # any exception of a tool becomes the answer
            raise InvocationError(type(error).__name__, str(error)) from error
        if isinstance(result, str):
            yield text_message(result)
        elif isinstance(result, dict):
            yield json_message(result)
        else:
            yield from result


def _parameter(name: str, described: str | JsonObject) -> JsonObject:
    given = {"type": described} if isinstance(described, str) else described
    label = {"en_US": name}
    usual = {"human_description": label, "llm_description": "", "type": "string", "form": "llm", "required": True}
    return {"name": name, "label": label, **usual, **given}
