"""Judgements by the model: reviews of a draft by the node's criteria, and other answers that must be a call."""

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from internal.call import CallStatus, RejectedCall, ToolOutcome, ValidCall
from internal.calls.judging import RepeatGuard, judge_calls
from internal.clock import TOOL_PHASE_SHARE, Clock, Deadline
from internal.errors import AgentError, OurWords, Quoting, StopReason
from internal.events import AnswerBreak, AnswerText, Event, LogNote, ShownBatch, SpanFinished, SpanStarted
from internal.loop import MAX_CORRECTIONS, AgentLoop, Finish
from internal.memory.records import quoted_result
from internal.model.display import DisplayRule
from internal.model.reading import TurnSpan
from internal.model.turn import ModelCaller, TimeIsUp
from internal.node.params import StrategyParams
from internal.node.tools import Toolbox
from internal.node.virtual_tools import review_tool
from internal.run import Run
from internal.sources import escaped
from internal.text.texts import cut_evenly
from internal.transcript.steps import AgentNote, AssistantText, Round
from internal.transcript.transcript import Transcript, estimate_tokens
from prompt import template

MAX_REVISIONS = 2
"""Maximum number of rewrites of an answer. The last version is not reviewed (docs/second-look.md)."""
_JUDGED_TOKENS = 50_000
"""Maximum tokens of all results that the judge reads. With a small context window it is less."""
_UNSEEN = DisplayRule(show_thoughts=False, step=1, last_step=2, text_is_answer=False, is_seen=False)


type Reply = Mapping[str, Any] | None
"""The arguments of the requested call; None if no valid call arrived."""


def ask_for_call(
    models: ModelCaller, request: Transcript, key: str, deadline: Deadline
) -> Generator[Event, None, Reply]:
    """Have the model answer with a call of its only tool. An invalid answer is sent back at most twice."""
    (name,) = models.toolbox.tools
    has_been_told = models.models.writes_calls
    for number in range(1, MAX_CORRECTIONS + 2):
        turn = yield from models.take_turn(request, TurnSpan(f"{key}.model{number}", key, _UNSEEN, deadline, deadline))
        if isinstance(turn, TimeIsUp) or turn.cut:
            break
        judged = judge_calls(turn.calls, models.toolbox, RepeatGuard())
        for call in judged:
            if isinstance(call, ValidCall):
                return call.arguments
        rejected = [call for call in judged if isinstance(call, RejectedCall)]
        if rejected:
            outcomes = [ToolOutcome(call, CallStatus.REFUSED, call.text, prompt_text=call.text) for call in rejected]
            request.append(Round(turn.content, turn.text, tuple(outcomes), turn.opaque_body, turn.model))
        else:
            request.append(AssistantText(turn.content, turn.opaque_body))
            note = template.MISSING_CALL.format(name=name)
            if turn.has_unparsed:
                note = template.UNPARSED_CALL
            request.append(AgentNote(note))
        missing = "; ".join(call.text for call in rejected) or "no call"
        yield LogNote(Quoting(f"{name} is missing ({missing})"), key)
        models.models.writes_calls |= has_been_told and turn.has_unparsed
        has_been_told |= turn.has_unparsed
        if models.budget.reached() or models.models.writes_calls:
            break
    return None


def ask_judge(
    asking: Generator[Event, None, Reply], row: SpanStarted, clock: Clock, otherwise: OurWords, shown: Mapping[str, Any]
) -> Generator[Event, None, Reply]:
    """Have the model judge, as a row of the log. A failed judgement does not end the run.

    ``otherwise`` is the note that says what happens if there is no judgement. ``shown`` is the data that the row always
    has.
    """
    started = clock.now()
    reply = None
    error = None
    yield row
    try:
        reply = yield from asking
    except AgentError as failure:
        error = failure.detail
    if reply is None:
        yield LogNote(otherwise, row.key)
    yield SpanFinished(row.key, clock.now() - started, {**shown, **(reply or {})}, error)
    return reply


class AnswerReview:
    """Reviews the answer of a run, whichever loop produces it. Without criteria the loops run without a review."""

    def __init__(self, run: Run[StrategyParams], *, is_due: bool = True) -> None:
        """Create the review. ``is_due`` is False after a limit was reached; then nothing is reviewed."""
        self._run = run
        self._is_due = is_due
        self._criteria = run.params.answer_criteria.strip()
        self._passed: bool | None = None  # for the latest draft; None without a judgement
        self._problems: Sequence[str] = ()  # problems of the latest draft that did not pass
        self._revisions = 0

    @property
    def variables(self) -> Mapping[str, Any]:
        """The variable ``review``, if the node has criteria."""
        if not self._criteria:
            return {}
        return {"review": {"passed": self._passed, "problems": list(self._problems), "revisions": self._revisions}}

    def answer(self, loop: AgentLoop, findings: Sequence[str] | None = None) -> Generator[Event, None, Finish]:
        """Run the loop until an answer passes or is no longer reviewed.

        ``findings`` are the evidence for the review; None means the tool results of the loop. Raises ``AgentError`` if
        a model call of the loop failed.
        """
        is_draft = self._may_judge
        ending = yield from loop.run(is_draft=is_draft)
        while is_draft and ending.reason is StopReason.ANSWERED and ending.text and not ending.tool_answers:
            yield from self._judge(loop, ending.text, findings)
            if self._passed is not False:
                if loop.answer.is_text:  # with an answer schema, the text is shown at the end of the run
                    yield ShownBatch((AnswerBreak(), AnswerText(ending.text)))
                break
            self._revisions += 1
            self._passed = None
            is_draft = self._may_judge
            ending = yield from loop.revise(self._note(loop), is_draft=is_draft)
        if self._criteria and ending.tool_answers:
            yield LogNote(OurWords("answer_criteria: not applied, since the answer is the result of a tool"))
        return ending

    @property
    def _may_judge(self) -> bool:
        is_due = self._is_due and not self._run.budget.reached()
        return is_due and bool(self._criteria) and self._revisions < MAX_REVISIONS

    def _judge(self, loop: AgentLoop, draft: str, findings: Sequence[str] | None) -> Generator[Event, None, None]:
        """Review the draft if there is enough time to rewrite it and the run's budget is not reached."""
        if self._run.budget.reached():
            used_up = OurWords("the run's budget is used up, so the draft is not judged: it is the answer")
            yield LogNote(used_up, loop.part.parent)
            return
        number = self._revisions + 1
        if loop.part.parent:
            name = f"{loop.part.parent}.review{number}"
        else:
            name = f"review{number}"
        row = SpanStarted(name, f"REVIEW {number}")
        models = self._run.models.offering(Toolbox().with_tool(review_tool()))
        if findings is None:
            findings = loop.rounds.transcript.results_since(0)
        deadline = min(loop.tool_deadline, self._run.deadline(TOOL_PHASE_SHARE))
        otherwise = OurWords("there was no judgement; the draft is the answer")
        quoted = list(map(quoted_result, findings))
        most = min(_JUDGED_TOKENS, models.window.room(self._request(draft, [""] * len(quoted))))
        request = self._request(draft, cut_evenly(quoted, most, estimate_tokens))
        asking = ask_for_call(models, request, row.key, deadline)
        reply = yield from ask_judge(asking, row, self._run.clock, otherwise, {"draft": draft})
        if reply:
            self._passed = reply["passes"]
        else:
            self._passed = None
        if reply and not self._passed:
            self._problems = [problem.strip() for problem in reply["problems"] if problem.strip()]

    def _request(self, draft: str, results: Sequence[str]) -> Transcript:
        judged = "\n".join(template.JUDGED_RESULT.format(result=escaped(result)) for result in results)
        files = self._run.totals.files
        return self._run.request(
            template.REVIEW_REQUEST.format(
                task=escaped(self._run.task.text),
                criteria=escaped(self._criteria),
                results=judged or template.NO_RESULTS,
                draft=escaped(draft),
                files=template.FILES_BESIDE_DRAFT.format(count=files) if files else "",
            )
        )

    def _note(self, loop: AgentLoop) -> str:
        note = template.REVISION_NOTE_FOR_SUBMISSION
        if loop.answer.is_text:
            note = template.REVISION_NOTE
        return note.format(
            criteria=escaped(self._criteria),
            problems="\n".join(f"- {escaped(problem)}" for problem in self._problems),
            look_up=template.LOOK_UP_FIRST if loop.runs_tools else "",
        )
