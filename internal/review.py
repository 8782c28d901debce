"""A second look at the answer: a draft is judged by the node's criteria, and written again if it does not meet them."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from internal.call import CallStatus, EndedCall, RejectedCall, ValidCall
from internal.calls.judging import RepeatGuard, judge_calls
from internal.clock import TOOL_PHASE_SHARE, Deadline
from internal.errors import AgentError, OurWords, Quoting, StopReason
from internal.events import AnswerBreak, AnswerText, Event, Noted, ShownTogether, SpanFinished, SpanStarted
from internal.loop import MAX_CORRECTIONS, AgentLoop, Ending
from internal.memory.records import quoted_result
from internal.model.display import DisplayRule
from internal.model.reading import ModelTurn, TurnSpan
from internal.model.turn import ModelCaller, TimeIsUp
from internal.node.params import StrategyParams
from internal.node.tools import Tool, Toolbox, ToolKind
from internal.node.virtual_tools import review_tool
from internal.run import Run
from internal.sources import escaped
from internal.text.texts import cut_evenly
from internal.transcript.opening import opening_messages, user_message
from internal.transcript.transcript import Transcript, Window, estimate_tokens
from prompt import template

# A question that the model must answer by a call of one virtual tool.
#
# A wrong answer is sent back with what is missing, at most twice.

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


# One judgement of a draft: a request of its own, answered by a call of ``submit_review``.

_JUDGED_TOKENS = 50_000
"""Of all results that the judge reads, or less if the window is smaller."""


@dataclass(frozen=True)
class Judgement:
    """What the judge says of a draft."""

    passes: bool
    problems: tuple[str, ...]
    """What is wrong with it, or a remark on one that passes."""


@dataclass(frozen=True)
class Judge:
    """Judges drafts by the criteria of the node."""

    run: Run[StrategyParams]
    criteria: str

    def judge(
        self, draft: str, results: Sequence[str], key: str, number: int, deadline: Deadline
    ) -> Generator[Event, None, Judgement | None]:
        """Ask the model; a judge that fails does not end the run."""
        started = self.run.clock.now()
        yield SpanStarted(key, f"REVIEW {number}")
        tool, error = review_tool(), None
        models = self.run.models(Toolbox({tool.name: tool}))
        request = self.request(draft, results, models.window)
        try:
            reply = yield from ask_for_call(models, request, tool, key, deadline)
        except AgentError as failure:  # the draft is kept
            reply, error = None, failure.detail
        if reply is None:
            yield Noted(OurWords("no judgement came; the draft is the answer"), key)
        data = {"draft": draft, **(reply or {})}
        yield SpanFinished(key, self.run.clock.now() - started, data, error)
        if reply is None:
            return None
        return Judgement(reply["passes"], tuple(filter(None, map(str.strip, reply["problems"]))))

    def request(self, draft: str, results: Sequence[str], window: Window) -> Transcript:
        """The system prompt and one message, with as much of the results as fits into the window."""
        short = list(map(quoted_result, results))
        most = _JUDGED_TOKENS
        if window.prompt_tokens is not None:
            rest = window.weigh(self._request(draft, [""] * len(short)))
            most = min(most, max(0, window.prompt_tokens - rest.tokens))
        return self._request(draft, cut_evenly(short, most, estimate_tokens))

    def _request(self, draft: str, results: Sequence[str]) -> Transcript:
        files = self.run.tally.files
        judged = "\n".join(template.JUDGED_RESULT.format(result=escaped(result)) for result in results)
        text = template.REVIEW_REQUEST.format(
            task=escaped(self.run.dialogue.task),
            criteria=escaped(self.criteria),
            results=judged or template.NO_RESULTS,
            draft=escaped(draft),
            files=template.FILES_BESIDE_DRAFT.format(count=files) if files else "",
        )
        message = "\n\n".join(part for part in (self.run.context, text) if part)
        return Transcript(opening_messages((), self.run.instruction, user_message(message, ())), self.run.habits)


# The second look at an answer: held back, judged, and written again at most twice.
#
# Without criteria the loop only runs.

MAX_REVISIONS = 2
"""How often an answer is written again; the last one is not judged."""


@dataclass
class SecondLook:
    """The judgements of one run, over all loops that may bring its answer."""

    run: Run[StrategyParams]
    is_due: bool = True
    """False after a limit: then nothing is judged."""
    _passed: bool | None = field(default=None, init=False)
    """What was judged of the latest draft; None before and without a judgement."""
    _problems: tuple[str, ...] = field(default=(), init=False)
    """Of the latest draft that did not pass."""
    _judgements: int = field(default=0, init=False)
    _revisions: int = field(default=0, init=False)

    @property
    def criteria(self) -> str:
        return self.run.params.answer_criteria.strip()

    @property
    def variables(self) -> Mapping[str, Any]:
        """The variable ``review``, where the node has criteria."""
        if not self.criteria:
            return {}
        problems = list(self._problems)
        return {"review": {"passed": self._passed, "problems": problems, "revisions": self._revisions}}

    def answer(self, loop: AgentLoop, findings: Sequence[str] | None = None) -> Generator[Event, None, Ending]:
        """Run the loop to an answer that passes, or that is not judged any more.

        ``findings`` are what the draft is judged by; None for the tool results of the loop.

        Raises:
            AgentError: a model call of the loop failed, and retries did not help.
        """
        self._hold_back(loop)
        ending = yield from loop.run()
        while loop.holds_answer and ending.reason is StopReason.ANSWERED and ending.text:
            judgement = yield from self._judge(loop, ending.text, findings)
            if judgement is None or judgement.passes:
                if loop.answer.is_text:  # with an answer schema, the text is shown at the end of the run
                    yield ShownTogether((AnswerBreak(), AnswerText(ending.text)))
                break
            self._revisions += 1
            self._passed = None
            self._hold_back(loop)
            ending = yield from loop.revise(self._note(loop))
        return ending

    def _hold_back(self, loop: AgentLoop) -> None:
        may_be_judged = self.is_due and not self.run.budget.reached()
        loop.holds_answer = may_be_judged and bool(self.criteria) and self._revisions < MAX_REVISIONS

    def _judge(
        self, loop: AgentLoop, draft: str, findings: Sequence[str] | None
    ) -> Generator[Event, None, Judgement | None]:
        """Judge the draft while there is still time to write it again, and the run's budget is not reached."""
        if self.run.budget.reached():
            yield Noted(
                OurWords("the run's budget is used up, so the draft is not judged: it is the answer"), loop.parent
            )
            return None
        results = loop.rounds.transcript.results_since(0) if findings is None else findings
        self._judgements += 1
        name = f"review{self._judgements}"
        key = f"{loop.parent}.{name}" if loop.parent else name
        deadline = min(loop.limits.tool_deadline, self.run.deadline(TOOL_PHASE_SHARE))
        judgement = yield from Judge(self.run, self.criteria).judge(draft, results, key, self._judgements, deadline)
        self._passed = judgement.passes if judgement else None
        if judgement and not judgement.passes:
            self._problems = judgement.problems
        return judgement

    def _note(self, loop: AgentLoop) -> str:
        problems = "\n".join(f"- {escaped(problem)}" for problem in self._problems)
        has_tools = any(tool.kind is ToolKind.RUNS for tool in loop.models.toolbox.tools.values())
        return loop.answer.revision_note.format(
            criteria=escaped(self.criteria),
            problems=problems,
            look_up=template.LOOK_UP_FIRST if has_tools else "",
        )
