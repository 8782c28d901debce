"""A strategy that drafts an answer, which the user does not see, and checks the draft before it answers."""

from collections.abc import Generator
from dataclasses import replace

from internal.agent import Blueprint
from internal.answer import CallAnswer, TextAnswer
from internal.node.params import StrategyParams
from internal.policy import DEFAULT_POLICY
from internal.report.events import Event, SpanFinished, SpanStarted
from internal.report.sources import escaped
from internal.run import LoopPart, Run
from internal.tools.toolbox import Tool

CHECK = "{question}\n\nCheck this draft of an answer with the tools, then answer.\n<finding>\n{draft}\n</finding>"


def draft_and_check(run: Run[StrategyParams], submit: Tool | None) -> Generator[Event, None, None]:
    yield from run.begin()

    started = run.clock.now()
    yield SpanStarted("draft", "DRAFT")
    part = LoopPart(tool_share=0.4, end_share=0.5, is_seen=False, parent="draft")
    draft = yield from run.loop(run.models(run.toolbox), run.transcript(run.question), TextAnswer(), part).run()
    yield SpanFinished("draft", run.clock.now() - started, {"draft": draft.text})

    started = run.clock.now()
    yield SpanStarted("answer", "ANSWER")
    models = run.models(run.toolbox.with_tool(submit) if submit else run.toolbox)
    transcript = run.transcript(CHECK.format(question=run.question, draft=escaped(draft.text)))
    rule = CallAnswer() if submit else TextAnswer()
    ending = yield from run.loop(models, transcript, rule, LoopPart(parent="answer")).run()
    yield SpanFinished("answer", run.clock.now() - started)

    whole = replace(ending, rounds=draft.rounds + ending.rounds)
    yield from run.finish(whole, variables={"draft": draft.text}, answer_tool=submit)


DRAFT_AND_CHECK = Blueprint(DEFAULT_POLICY, StrategyParams, draft_and_check)
