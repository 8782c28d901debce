"""The second look at an answer: held back, judged, and written again at most twice.

In: a loop, before it runs. Out: its events and those of the judgements; then the Ending whose answer the user gets,
and the variable ``review``. Without criteria the loop only runs.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from internal.host.clock import TOOL_PHASE_SHARE
from internal.loop import AgentLoop
from internal.node.params import StrategyParams
from internal.report.events import AnswerBreak, AnswerText, Event, Noted, ShownTogether, StopReason
from internal.report.sources import escaped
from internal.review.judge import Judge, Judgement
from internal.run import Run
from internal.steps import Ending
from internal.text.notes import OurWords
from internal.tools.toolbox import ToolKind
from prompt import template

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
