"""Calls of tools that need an approval wait at the end of a run, and the next run has the user's answer to them.

``Approvals`` puts the judged calls of a turn on hold. ``Resumption`` judges the calls that an earlier run left waiting,
by the parameters ``approval`` and ``query``, and says whether the query is a message of its own.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from internal.approval.decision import Approved, ByCall, Decision, Rejected, not_approved_text, read_decision
from internal.approval.identity import call_id, is_same_call
from internal.approval.question import PendingCall
from internal.calls.arguments import ArgumentsInvalid, rounded_arguments, validate_arguments
from internal.conversation.recording import waiting_record
from internal.conversation.restored import call_of
from internal.host.remote_files import still_answers
from internal.report.tool_calls import JudgedCall, RejectedCall, ValidCall, WaitingCall
from internal.state.records import CallRecord, EntryRecord, State, UserRecord
from internal.state.size import MAX_WAITING, size_of_waiting
from internal.text.notes import Quoting, Sentence
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


_MAX_NAMED = 20
"""Ids that are named in the log if no such call waits."""


@dataclass(frozen=True)
class Resumption:
    """How a run goes on from calls that wait."""

    decision: Decision
    has_question: bool
    """Whether the query becomes a message of the user's, behind the results."""
    _query: str

    @classmethod
    def of(cls, state: State, approval: str, query: str) -> "Resumption | None":
        """None if nothing waits, or if the user has not answered."""
        decision = read_decision(approval) if state.waiting else None
        if decision is None:
            return None
        return cls(decision, _is_message(decision, approval, query, question_of(state.entries)), query.strip())

    def notes(self, waiting: Collection[str]) -> Iterator[Sentence]:
        """What of the approval means nothing."""
        answered = self.decision.answers if isinstance(self.decision, ByCall) else ()
        for unknown in [each for each in answered if each not in waiting][:_MAX_NAMED]:
            yield Quoting(f"approval: no call {unknown!r} waits")

    def judge(self, call: CallRecord, toolbox: Toolbox, seconds: float) -> JudgedCall:
        """Judge the call as if the model had just made it: a state cannot make a tool run that the node would not.

        Its files may take so many seconds to answer, each at most ten.
        """
        written, tool = call_of(call, toolbox), toolbox.find(call.provider, call.tool, call.setting)
        verdict = self.decision.verdict(call.id)
        if not verdict.approved:
            is_next = self.has_question and verdict.reason.strip() == self._query
            return RejectedCall(
                written, template.NOT_APPROVED_SEE_NEXT if is_next else not_approved_text(verdict.reason), tool
            )
        if tool is None or not written.parsed.ok:
            return RejectedCall(written, template.APPROVED_CALL_CHANGED, tool)
        try:
            arguments = validate_arguments(tool, written.parsed.args)
        except ArgumentsInvalid:
            return RejectedCall(written, template.APPROVED_CALL_CHANGED, tool)
        if not is_same_call(call.id, tool, arguments, toolbox.files):
            return RejectedCall(written, template.APPROVED_CALL_CHANGED, tool)
        for name in tool.files_in(arguments):
            if not still_answers(toolbox.files[name].url, seconds):
                return RejectedCall(written, template.ATTACH_AGAIN.format(name=name), tool)
        return ValidCall(written, tool, arguments)


def question_of(entries: tuple[EntryRecord, ...]) -> str:
    """What the user asked last."""
    return next((entry.text for entry in reversed(entries) if isinstance(entry, UserRecord)), "")


def _is_message(decision: Decision, approval: str, query: str, question: str) -> bool:
    """Whether the query says more than the approval and the question before it."""
    said = query.strip()
    match decision:
        case Rejected(text=text) if text == said:
            return True
        case Approved() if isinstance(read_decision(said), Approved):
            return False
        case ByCall() if said == approval.strip():
            return False
    return said not in ("", question.strip())
