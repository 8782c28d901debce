"""The function-calling agent with another default policy: reason, act, observe."""

from dataclasses import replace
from typing import Any, ClassVar

# The module is imported instead of the class, because the SDK requires exactly one strategy in this namespace.
import strategies.gpt5_function_calling as base
from internal.agent import FUNCTION_CALLING, Blueprint
from internal.policy import PolicyTexts
from prompt import template


class GPT5ReActStrategy(base.GPT5FunctionCallingStrategy):
    """A strategy whose model says before each group of calls what is missing and how the calls will provide it."""

    blueprint: ClassVar[Blueprint[Any]] = replace(
        FUNCTION_CALLING,
        name="gpt5_react",
        policy=PolicyTexts(tool_preamble_policy=template.REACT_TOOL_PREAMBLE_POLICY),
    )
