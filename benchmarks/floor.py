"""The floor: the smallest strategy that the SDK allows, which streams text, runs the tools, and appends their output.

The strategy reads the parameters with the SDK's own classes and has no checks, logs, limits, sources or variables. This
file imports only the SDK, because the benchmark of the start packs it as a separate plugin.
"""

import json
from collections.abc import Generator, Sequence
from typing import Any

from dify_plugin import AgentStrategy
from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.invoke_message import InvokeMessage
from dify_plugin.entities.model.llm import LLMModelConfig
from dify_plugin.entities.model.message import (
    AssistantPromptMessage,
    PromptMessage,
    SystemPromptMessage,
    ToolPromptMessage,
    UserPromptMessage,
    ensure_prompt_message,
)
from dify_plugin.interfaces.agent import ToolEntity


class FloorStrategy(AgentStrategy):
    """Calls the model until it makes no more tool calls."""

    def _invoke(self, parameters: dict[str, Any]) -> Generator[AgentInvokeMessage, None, None]:
        config = LLMModelConfig(**parameters["model"])
        tools = {tool["identity"]["name"]: ToolEntity(**tool) for tool in parameters.get("tools") or ()}
        offered = self._init_prompt_tools(list(tools.values()))
        messages = opening(parameters)
        while True:
            text = ""
            calls = []
            for chunk in self.session.model.llm.invoke(config, messages, tools=offered, stop=[], stream=True):
                message = chunk.delta.message
                calls += message.tool_calls
                if isinstance(message.content, str) and message.content:
                    text += message.content
                    yield self.create_text_message(message.content)
            if not calls:
                return
            messages.append(AssistantPromptMessage(content=text, tool_calls=calls))
            for call in calls:
                result = self._run(tools[call.function.name], json.loads(call.function.arguments))
                messages.append(ToolPromptMessage(content=result, tool_call_id=call.id, name=call.function.name))

    def _run(self, tool: ToolEntity, arguments: dict[str, Any]) -> str:
        said: list[str] = []
        identity = tool.identity
        for answer in self.session.tool.invoke(tool.provider_type, identity.provider, identity.name, arguments):
            if isinstance(answer.message, InvokeMessage.TextMessage):
                said.append(answer.message.text)
            elif isinstance(answer.message, InvokeMessage.JsonMessage):
                said.append(json.dumps(answer.message.json_object, ensure_ascii=False))
        return "\n".join(said)


def opening(parameters: dict[str, Any]) -> list[PromptMessage]:
    """Return the first messages: the instruction, the history, and the question with the context before it."""
    history: Sequence[Any] = parameters["model"]["history_prompt_messages"]
    context = parameters.get("context")
    before = f"{json.dumps(context, ensure_ascii=False)}\n\n" if context else ""
    return [
        SystemPromptMessage(content=parameters.get("instruction") or ""),
        *(ensure_prompt_message(message) for message in history),
        UserPromptMessage(content=before + parameters["query"]),
    ]
