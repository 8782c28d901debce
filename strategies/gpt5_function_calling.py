"""The function-calling agent."""

from collections.abc import Generator
from typing import Any, ClassVar

from dify_plugin import AgentStrategy
from dify_plugin.entities.agent import AgentInvokeMessage

from internal.agent import FUNCTION_CALLING, Blueprint, run_agent
from internal.node.params import StrategyParams

GPT5FunctionCallingParams = StrategyParams


class GPT5FunctionCallingStrategy(AgentStrategy):
    """A strategy with native tool calls. Several calls of a turn run in parallel."""

    blueprint: ClassVar[Blueprint[Any]] = FUNCTION_CALLING

    def _invoke(self, parameters: dict[str, Any]) -> Generator[AgentInvokeMessage, None, None]:
        yield from run_agent(parameters, self.session, self.blueprint)
