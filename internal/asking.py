"""A question that the model must answer by a call of one virtual tool.

In: a transcript that ends in the request, and the tool. Out: the call's valid arguments, or None. A wrong answer is
sent back with what is missing, at most twice.
"""

from collections.abc import Generator, Mapping
from typing import Any

from internal.answer import MAX_CORRECTIONS
from internal.calls.judging import RepeatGuard, judge_calls
from internal.conversation.transcript import Transcript
from internal.host.clock import Deadline
from internal.model.display import DisplayRule
from internal.model.reading import ModelTurn, TurnSpan
from internal.model.turn import ModelCaller, TimeIsUp
from internal.report.events import Event, Noted
from internal.report.tool_calls import CallStatus, EndedCall, RejectedCall, ValidCall
from internal.text.notes import Quoting
from internal.tools.toolbox import Tool, Toolbox
from prompt import template

_UNSEEN = DisplayRule(show_thoughts=False, step=1, last_step=2, text_is_answer=False, is_seen=False)


def ask_for_call(
    models: ModelCaller, transcript: Transcript, tool: Tool, key: str, deadline: Deadline
) -> Generator[Event, None, Mapping[str, Any] | None]:
    """Ask; if the call is missing or wrong, say so and ask again.

    Raises:
        ModelCallFailed: the model call failed, and retries did not help.
    """
    for number in range(1, MAX_CORRECTIONS + 2):
        span = TurnSpan(f"{key}.model{number}", key, _UNSEEN, deadline, deadline)
        turn = yield from models.take_turn(transcript, span)
        if isinstance(turn, TimeIsUp) or turn.cut:
            break
        planned = judge_calls(turn.calls, Toolbox({tool.name: tool}), RepeatGuard())
        for call in planned:
            if isinstance(call, ValidCall):
                return call.arguments
        rejected = [call for call in planned if isinstance(call, RejectedCall)]
        _answer(transcript, turn, rejected, tool.name)
        missing = "; ".join(call.text for call in rejected) or "no call"
        yield Noted(Quoting(f"{tool.name} is missing ({missing})"), key)
        if models.budget.reached():
            break
    return None


def _answer(transcript: Transcript, turn: ModelTurn, rejected: list[RejectedCall], name: str) -> None:
    """Append the turn, and tell the model what is missing: as results of its calls, or as a note."""
    if rejected:
        results = [EndedCall(call, CallStatus.REFUSED, call.text) for call in rejected]
        transcript.append_round(turn.content, turn.opaque_body, results)
    else:
        transcript.append_answer(turn.content, turn.opaque_body)
        transcript.append_note(template.MISSING_CALL.format(name=name))
