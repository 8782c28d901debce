"""A plan, its subtasks side by side, a judgement on each, and one answer."""

from typing import Any, ClassVar

# The module, not the class: the SDK's loader wants exactly one strategy in this namespace.
import strategies.gpt5_function_calling as base
from internal.agent import Blueprint
from internal.plan_and_reflect import PLAN_AND_REFLECT


class GPT5PlanAndReflectStrategy(base.GPT5FunctionCallingStrategy):
    """For questions of several parts that can be worked on at the same time."""

    blueprint: ClassVar[Blueprint[Any]] = PLAN_AND_REFLECT
