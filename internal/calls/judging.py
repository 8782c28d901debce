"""Every call of a turn is judged before any of them runs.

In: the calls of a model's turn. Out: for each, in the model's order, a ValidCall that may run or a RejectedCall with
what the model reads instead. A guard, one for each transcript, stops endless loops of one identical call.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from internal.calls.arguments import ArgumentsInvalid, validate_arguments
from internal.report.tool_calls import CallStatus, EndedCall, JudgedCall, RejectedCall, Signature, ToolCall, ValidCall
from internal.tooling import resolve_tool_instance, unknown_tool_error, without_quote
from internal.tools.toolbox import Toolbox, ToolKind
from prompt import template

REPEATED_FAILURE = "tool invoke error: repeated failure detected; skipped duplicate call"
_TRANSIENT_CHANCES = 2


@dataclass(frozen=True)
class Refuse:
    """The call must not run; the model reads ``text`` instead of a result."""

    text: str
    ends_tool_phase: bool = False
    """The model was told already and asks again: no more rounds, the answer is due."""


@dataclass(frozen=True)
class _Past:
    """How the calls with one signature ended in earlier rounds."""

    failed: bool = False
    transient_failures: int = 0
    last: str | None = None
    repeats: bool = False
    """The last two results were equal."""
    told: bool = False


@dataclass
class RepeatGuard:
    """Remembers the calls of one transcript."""

    _past: dict[Signature, _Past] = field(default_factory=dict)

    def judge(self, signature: Signature) -> Refuse | None:
        """Why the call must not run; None if it may."""
        past = self._past.get(signature, _Past())
        if past.failed or past.transient_failures >= _TRANSIENT_CHANCES:
            return Refuse(REPEATED_FAILURE)
        if past.repeats and past.last is not None:
            return Refuse(f"{past.last}\n\n{template.REPEATED_RESULT_NOTE}", ends_tool_phase=past.told)
        return None

    def record_round(self, ended: Sequence[EndedCall]) -> None:
        """Remember a round that is over. Of several equal calls in it every failure counts, and the last result."""
        known = [(call.judged.signature, call) for call in ended if call.judged.signature is not None]
        results = {signature: call.tool_response for signature, call in known if call.status is CallStatus.OK}
        for signature, call in known:
            past = self._past.get(signature, _Past())
            if call.status is CallStatus.REFUSED:
                self._past[signature] = replace(past, told=past.repeats)
            elif call.status is CallStatus.ERROR and call.transient:
                self._past[signature] = replace(past, transient_failures=past.transient_failures + 1)
            elif call.status is CallStatus.ERROR:
                self._past[signature] = replace(past, failed=True)
        for signature, text in results.items():
            past = self._past.get(signature, _Past())
            self._past[signature] = replace(past, last=text, repeats=past.last == text)


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
    if verdict := guard.judge(valid.signature):
        return RejectedCall(call, verdict.text, tool, valid.signature, verdict.ends_tool_phase)
    return valid
