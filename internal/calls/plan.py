"""Plan before side effects: every call of a turn is judged before any of them runs.

In: the calls of a model's turn. Out: for each a ValidCall that may run or a RejectedCall with what the model reads
instead, in the model's order.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from internal.calls.arguments import ArgumentsInvalid, validate_arguments
from internal.calls.guards import Refuse, RepeatGuard, Signature
from internal.conversation.transcript import ToolCall
from internal.tooling import resolve_tool_instance, unknown_tool_error, without_quote
from internal.tools.toolbox import Tool, Toolbox


@dataclass(frozen=True)
class ValidCall:
    """A call that may run."""

    call: ToolCall
    tool: Tool
    parsed: Mapping[str, Any]
    """What the model wrote."""
    arguments: Mapping[str, Any]
    """The same, checked and coerced."""

    @property
    def signature(self) -> Signature:
        return Signature.of(self.tool.name, self.arguments)


@dataclass(frozen=True)
class RejectedCall:
    """A call that does not run; ``text`` is its result."""

    call: ToolCall
    text: str
    tool: Tool | None = None
    signature: Signature | None = None
    """Set when the call was valid and only the repeat guard spoke against it."""
    ends_tool_phase: bool = False

    @property
    def parsed(self) -> Mapping[str, Any] | None:
        """What the model wrote; None when its text was not a JSON object."""
        return self.call.parsed.args if self.call.parsed.ok else None


type PlannedCall = ValidCall | RejectedCall


def plan_calls(calls: Iterable[ToolCall], toolbox: Toolbox, guard: RepeatGuard) -> tuple[PlannedCall, ...]:
    return tuple(_plan(call, toolbox, guard) for call in calls)


def refuse_calls(calls: Iterable[ToolCall], reason: str) -> tuple[PlannedCall, ...]:
    """Answer every call without looking at it."""
    return tuple(RejectedCall(call, reason) for call in calls)


def plan_submissions(calls: Iterable[ToolCall], toolbox: Toolbox, reason: str) -> tuple[PlannedCall, ...]:
    """Plan what hands an answer over, and refuse every other call."""
    virtual = {name for name, tool in toolbox.tools.items() if tool.virtual_schema is not None}
    return tuple(
        _plan(call, toolbox, RepeatGuard()) if call.name in virtual else RejectedCall(call, reason) for call in calls
    )


def _plan(call: ToolCall, toolbox: Toolbox, guard: RepeatGuard) -> PlannedCall:
    parsed = call.parsed
    tool = resolve_tool_instance(toolbox.tools, call.name)
    if tool is None:
        return RejectedCall(call, unknown_tool_error(call.name, toolbox.tools))
    if not parsed.ok:
        takes_secrets = any(parameter.is_secret for parameter in tool.parameters.values())
        error = parsed.error or ""
        return RejectedCall(call, without_quote(error) if takes_secrets else error, tool)
    try:
        arguments = validate_arguments(tool, parsed.args)
    except ArgumentsInvalid as invalid:
        return RejectedCall(call, str(invalid), tool)
    valid = ValidCall(call, tool, parsed.args, arguments)
    verdict = guard.judge(valid.signature)
    if isinstance(verdict, Refuse):
        return RejectedCall(call, verdict.text, tool, valid.signature, verdict.ends_tool_phase)
    return valid
