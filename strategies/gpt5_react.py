"""The same agent under another default policy: reason, act, observe."""

from typing import ClassVar

# The module, not the class: the SDK's loader wants exactly one strategy in this namespace.
import strategies.gpt5_function_calling as base
from internal.policy import PolicyTexts
from prompt import template


class GPT5ReActStrategy(base.GPT5FunctionCallingStrategy):
    """Says before each group of calls what is missing and how they supply it."""

    policy: ClassVar[PolicyTexts] = PolicyTexts(tool_preamble_policy=template.REACT_TOOL_PREAMBLE_POLICY)
