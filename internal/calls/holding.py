"""Calls of tools that need an approval are put on hold: the run ends, and the user answers them in the next.

In: the judged calls of a turn. Out: the same; a valid call that needs an approval waits, or is rejected if it cannot.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from internal.approval.identity import call_id
from internal.approval.pending import PendingCall
from internal.calls.arguments import rounded_arguments
from internal.conversation.recording import waiting_record
from internal.report.tool_calls import JudgedCall, RejectedCall, ValidCall, WaitingCall
from internal.state.size import MAX_WAITING, size_of_waiting
from internal.text.redaction import KnownSecrets
from internal.tools.toolbox import Toolbox
from internal.tools.virtual_tools import SUBMIT_ANSWER
from prompt import template


@dataclass
class Approvals:
    """What one run asks the user for; all its loops share it."""

    secrets: KnownSecrets
    asked: int = 0
    """Calls of the conversation that have waited so far, those of earlier runs included."""
    pending: list[PendingCall] = field(default_factory=list)
    has_acted: bool = False
    """Whether a call that the user approved was sent to its tool in this run."""
    _size: int = field(default=0, init=False)

    def hold(
        self, judged: Sequence[JudgedCall], toolbox: Toolbox, subtask: str | None = None
    ) -> tuple[JudgedCall, ...]:
        """Put on hold what needs an approval; an answer in the same turn is not taken."""
        held = tuple(self._held(call, toolbox, subtask) for call in judged)
        return tuple(map(_not_taken, held)) if waits(held) else held

    def _held(self, call: JudgedCall, toolbox: Toolbox, subtask: str | None) -> JudgedCall:
        if not (isinstance(call, ValidCall) and call.tool.needs_approval):
            return call
        tool, arguments = call.tool, call.arguments
        if any(tool.parameters[name].is_secret for name in arguments) or self.secrets.holds(dict(arguments)):
            return RejectedCall(call.call, template.CONFIDENTIAL_CANNOT_WAIT, tool)
        if rounded_arguments(tool, arguments):
            return RejectedCall(call.call, template.ROUNDED_CANNOT_WAIT, tool)
        if toolbox.find(tool.provider, tool.own_name, tool.setting) is not tool:
            return RejectedCall(call.call, template.DOUBLE_CANNOT_WAIT, tool)
        files = {name: toolbox.files[name] for name in tool.files_in(arguments)}
        waiting = WaitingCall(call, call_id(self.asked + 1, tool, arguments, files), files)
        size = size_of_waiting(waiting_record(waiting))
        if self._size + size > MAX_WAITING:  # a state must hold all of them whole
            return RejectedCall(call.call, template.TOO_LARGE_TO_WAIT.format(most=MAX_WAITING), tool)
        self._size += size
        self.asked += 1
        self.pending.append(PendingCall(waiting.id, tool.name, arguments, subtask))
        return waiting


def waits(judged: Sequence[JudgedCall]) -> bool:
    """Whether a call of the turn waits for the user."""
    return any(isinstance(call, WaitingCall) for call in judged)


def _not_taken(call: JudgedCall) -> JudgedCall:
    if isinstance(call, ValidCall) and call.tool.name == SUBMIT_ANSWER:
        return RejectedCall(call.call, template.ANSWER_NOT_TAKEN, call.tool)
    return call
