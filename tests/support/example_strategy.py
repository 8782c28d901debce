"""A strategy that drafts an answer, which the user does not see, and checks the draft before it answers."""

from collections.abc import Generator

from internal.agent import Blueprint
from internal.end import Result, kept_alive
from internal.errors import StopReason
from internal.events import Event, SpanStarted, in_row
from internal.loop import LoopPart
from internal.node.params import StrategyParams
from internal.policy import DEFAULT_POLICY
from internal.run import Run
from internal.sources import escaped

CHECK = "{question}\n\nCheck this draft of an answer with the tools, then answer.\n<finding>\n{draft}\n</finding>"


def draft_and_check(run: Run[StrategyParams]) -> Generator[Event, None, Result]:
    part = LoopPart(tool_share=0.4, end_share=0.5, is_seen=False, parent="draft")
    first = run.first_loop(run.toolbox, part)
    drafting = in_row(SpanStarted("draft", "DRAFT"), first.run(), run.clock, lambda draft: {"draft": draft.text})
    draft = yield from kept_alive(run, drafting)
    variables = {"draft": draft.text}
    if draft.reason in {StopReason.APPROVAL_REQUIRED, StopReason.MODEL_FAILED}:
        return Result(draft, first.rounds.transcript.steps, variables=variables)

    transcript = run.transcript(CHECK.format(question=run.said.text, draft=escaped(draft.text)))
    last = run.loop(transcript, run.answering(run.toolbox), LoopPart(parent="answer"))
    ending = yield from kept_alive(run, in_row(SpanStarted("answer", "ANSWER"), last.run(), run.clock))
    return Result(ending, transcript.steps, variables=variables)


DRAFT_AND_CHECK = Blueprint("draft_and_check", DEFAULT_POLICY, StrategyParams, draft_and_check)
