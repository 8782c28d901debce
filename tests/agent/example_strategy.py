"""A strategy that drafts an answer, which the user does not see, and checks the draft before it answers."""

from collections.abc import Generator

from internal.agent import Blueprint
from internal.end import Result, finish, kept_alive
from internal.errors import StopReason
from internal.events import Event, SpanFinished, SpanStarted
from internal.loop import CallAnswer, LoopPart, TextAnswer
from internal.node.params import StrategyParams
from internal.node.tools import Tool
from internal.policy import DEFAULT_POLICY
from internal.run import Run
from internal.sources import escaped

CHECK = "{question}\n\nCheck this draft of an answer with the tools, then answer.\n<finding>\n{draft}\n</finding>"


def draft_and_check(run: Run[StrategyParams], submit: Tool | None) -> Generator[Event, None, None]:
    yield from run.begin()

    started = run.clock.now()
    yield SpanStarted("draft", "DRAFT")
    part = LoopPart(tool_share=0.4, end_share=0.5, is_seen=False, parent="draft")
    first = run.first_loop(run.models(run.toolbox), TextAnswer(), part)
    draft = yield from kept_alive(run, run.resumed_first(first, first.run()))
    yield SpanFinished("draft", run.clock.now() - started, {"draft": draft.text})
    variables = {"draft": draft.text}
    if draft.reason in {StopReason.APPROVAL_REQUIRED, StopReason.MODEL_FAILED}:
        yield from finish(run, Result(draft, first.rounds.transcript.record, variables=variables), submit)
        return

    started = run.clock.now()
    yield SpanStarted("answer", "ANSWER")
    models = run.models(run.toolbox.with_tool(submit) if submit else run.toolbox)
    transcript = run.transcript(CHECK.format(question=run.dialogue.question, draft=escaped(draft.text)))
    rule = CallAnswer() if submit else TextAnswer()
    ending = yield from kept_alive(run, run.loop(models, transcript, rule, LoopPart(parent="answer")).run())
    yield SpanFinished("answer", run.clock.now() - started)

    yield from finish(run, Result(ending, transcript.record, variables=variables), submit)


DRAFT_AND_CHECK = Blueprint("draft_and_check", DEFAULT_POLICY, StrategyParams, draft_and_check)
