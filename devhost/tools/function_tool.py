"""A tool without a plugin: a Python function that a strategy can call like any other tool."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from devhost.errors import InvocationError
from devhost.process.session import Answer
from devhost.protocol.wire import JsonObject


class FunctionTool:
    """`parameters` names each parameter's type (all required, all for the model), or gives its whole description.

    What the function returns is a text, a JSON object or a list of messages; what it raises fails the call as a plugin
    tool's exception does.
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
        label = {"en_US": name}
        self.entity: JsonObject = {
            "identity": {"author": "devhost", "name": name, "label": label, "provider": provider, "icon": ""},
            "parameters": [_parameter(key, described) for key, described in parameters.items()],
            "description": {"human": {"en_US": description or name}, "llm": description or name},
            "output_schema": {},
            "has_runtime_parameters": False,
            "runtime_parameters": {},
            "credential_id": None,
            "provider_type": "builtin",
        }

    def invoke(self, parameters: JsonObject, _answer: Answer, _request_id: str, /) -> Iterator[JsonObject]:
        try:
            result = self._function(parameters)
        except Exception as error:  # any exception of a tool is its answer
            raise InvocationError(type(error).__name__, str(error)) from error
        if isinstance(result, str):
            yield {"type": "text", "message": {"text": result}, "meta": None}
        elif isinstance(result, dict):
            yield {"type": "json", "message": {"json_object": result}, "meta": None}
        else:
            yield from result


def _parameter(name: str, described: str | JsonObject) -> JsonObject:
    given = {"type": described} if isinstance(described, str) else described
    label = {"en_US": name}
    return {
        "name": name,
        "label": label,
        "human_description": label,
        "type": "string",
        "form": "llm",
        "llm_description": "",
        "required": True,
        "default": None,
        "options": [],
        **given,
    }
