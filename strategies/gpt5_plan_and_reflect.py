"""The strategy with a plan, parallel subtasks, a judgement on each of them, and one answer."""

from typing import Any, ClassVar

# The module is imported instead of the class, because the SDK requires exactly one strategy in this namespace.
import strategies.gpt5_function_calling as base
from internal.agent import Blueprint
from internal.plan_and_reflect import PLAN_AND_REFLECT


class GPT5PlanAndReflectStrategy(base.GPT5FunctionCallingStrategy):
    """A strategy for questions with several parts that can be answered in parallel."""

    blueprint: ClassVar[Blueprint[Any]] = PLAN_AND_REFLECT
