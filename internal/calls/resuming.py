"""Calls that an earlier run left waiting, and the user's answer to them.

In: a state in which calls wait, and the parameters ``approval`` and ``query``. Out: a Resumption, which judges each of
these calls again and says whether the query is a message of its own.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from internal.approval.decision import Approved, ByCall, Decision, Rejected, not_approved_text, read_decision
from internal.approval.identity import is_same_call
from internal.calls.arguments import ArgumentsInvalid, validate_arguments
from internal.conversation.restored import call_of
from internal.host.remote_files import still_answers
from internal.report.tool_calls import JudgedCall, RejectedCall, ValidCall
from internal.state.records import CallRecord, EntryRecord, State, UserRecord
from internal.text.notes import Quoting, Sentence
from internal.tools.toolbox import Toolbox
from prompt import template

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
        for unknown in self.decision.unknown_ids(waiting)[:_MAX_NAMED]:
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
