"""One judgement of a draft: a request of its own, answered by a call of ``submit_review``.

In: the draft, and what the agent found. Out: events for the log, then a Judgement, or None where none came.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from internal.asking import ask_for_call
from internal.conversation.opening import opening_messages, user_message
from internal.conversation.quoted_results import quoted_result
from internal.conversation.transcript import Transcript
from internal.conversation.weight import estimate_tokens
from internal.conversation.window import Window
from internal.errors import AgentError
from internal.host.clock import Deadline
from internal.node.params import StrategyParams
from internal.report.events import Event, Noted, SpanFinished, SpanStarted
from internal.report.sources import escaped
from internal.run import Run
from internal.text.kept_text import cut_evenly
from internal.text.notes import OurWords
from internal.tools.toolbox import Toolbox
from internal.tools.virtual_tools import review_tool
from prompt import template

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
