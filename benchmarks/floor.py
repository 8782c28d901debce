"""The SDK's floor: a strategy without an agent, which calls the model and the tool that it is told to, and yields text.

In: a session. Out: text messages. No log, no check, no guard, no limit: what nobody can do without.
"""

from collections.abc import Iterator

from dify_plugin.core.runtime import Session
from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.invoke_message import InvokeMessage
from dify_plugin.entities.model import ModelType
from dify_plugin.entities.model.llm import LLMModelConfig
from dify_plugin.entities.model.message import (
    AssistantPromptMessage,
    PromptMessage,
    PromptMessageTool,
    ToolPromptMessage,
    UserPromptMessage,
)
from dify_plugin.entities.tool import ToolProviderType

from benchmarks.host import Answers, Delays, slow_model, slow_tool
from tests.support.host import make_session
from tests.support.wire import MODEL

CONFIG = LLMModelConfig(
    provider="langgenius/openai/openai", model=MODEL, model_type=ModelType.LLM, mode="chat", completion_params={}
)
SEARCH = PromptMessageTool(
    name="search",
    description="What search does.",
    parameters={"type": "object", "properties": {"q": {"type": "string"}}, "required": []},
)


def bare_loop(session: Session) -> Iterator[AgentInvokeMessage]:
    """Ask until there are no calls, and run each call as it comes."""
    messages: list[PromptMessage] = [UserPromptMessage(content="?")]
    while True:
        text, calls = "", []
        for chunk in session.model.llm.invoke(CONFIG, messages, tools=[SEARCH], stop=[], stream=True):
            message = chunk.delta.message
            calls += message.tool_calls
            if isinstance(message.content, str) and message.content:
                text += message.content
                body = InvokeMessage.TextMessage(text=message.content)
                yield AgentInvokeMessage(type=InvokeMessage.MessageType.TEXT, message=body)
        if not calls:
            return
        messages.append(AssistantPromptMessage(content=text, tool_calls=calls))
        for call in calls:
            said = list(session.tool.invoke(ToolProviderType.BUILT_IN, "acme/tools/tools", "search", {"q": call.id}))
            messages.append(ToolPromptMessage(content=str(said), tool_call_id=call.id, name="search"))


def run_floor(answers: Answers, delays: Delays) -> None:
    session, _ = make_session(slow_model(answers, delays), slow_tool(delays))
    for message in bare_loop(session):
        message.model_dump()
