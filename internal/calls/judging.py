"""Every call of a turn is judged before any of them runs.

In: the calls of a model's turn. Out: for each, in the model's order, a ValidCall that may run or a RejectedCall with
what the model reads instead.
"""

from collections.abc import Iterable

from internal.calls.arguments import ArgumentsInvalid, validate_arguments
from internal.calls.guards import Refuse, RepeatGuard
from internal.report.tool_calls import JudgedCall, RejectedCall, ToolCall, ValidCall
from internal.tooling import resolve_tool_instance, unknown_tool_error, without_quote
from internal.tools.toolbox import Toolbox, ToolKind

REFUSED_AT_THE_END = "not run: no more tools run in this conversation turn"


def judge_calls(calls: Iterable[ToolCall], toolbox: Toolbox, guard: RepeatGuard) -> tuple[JudgedCall, ...]:
    return tuple(_judge(call, toolbox, guard) for call in calls)


def without_tools(judged: Iterable[JudgedCall]) -> tuple[JudgedCall, ...]:
    """Refuse every call that does not hand over an answer, since no more tools will run."""
    return tuple(
        call if hands_over(call) else RejectedCall(call.call, REFUSED_AT_THE_END, call.tool) for call in judged
    )


def refuse_calls(calls: Iterable[ToolCall]) -> tuple[JudgedCall, ...]:
    """Refuse every call without looking at it."""
    return tuple(RejectedCall(call, REFUSED_AT_THE_END) for call in calls)


def hands_over(call: JudgedCall) -> bool:
    """Whether the call hands something over, validly or not, instead of running a tool."""
    return call.tool is not None and call.tool.kind is ToolKind.HANDS_OVER


def _judge(call: ToolCall, toolbox: Toolbox, guard: RepeatGuard) -> JudgedCall:
    parsed = call.parsed
    tool = resolve_tool_instance(toolbox.tools, call.name)
    if tool is None:
        # read_result is a tool of this run alone, and a later run may read this text.
        lasting = {name: each for name, each in toolbox.tools.items() if each.kind is not ToolKind.READS}
        return RejectedCall(call, unknown_tool_error(call.name, lasting))
    if not parsed.ok:
        takes_secrets = any(parameter.is_secret for parameter in tool.parameters.values())
        error = parsed.error or ""
        return RejectedCall(call, without_quote(error) if takes_secrets else error, tool)
    try:
        arguments = validate_arguments(tool, parsed.args)
    except ArgumentsInvalid as invalid:
        return RejectedCall(call, str(invalid), tool)
    valid = ValidCall(call, tool, arguments)
    if hands_over(valid):  # the same answer may be handed over again
        return valid
    verdict = guard.judge(valid.signature)
    if isinstance(verdict, Refuse):
        return RejectedCall(call, verdict.text, tool, valid.signature, verdict.ends_tool_phase)
    return valid
