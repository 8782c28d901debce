"""The answer of a plan: one streamed model call over the findings of the subtasks.

In: the subtasks' outcomes. Out: events, then an Ending. Findings that do not fit into the window together are cut
evenly. If no answer comes in time, the findings themselves are the answer.
"""

from collections.abc import Generator, Sequence
from dataclasses import replace

from pydantic_core import to_json

from internal.answer import MAX_CORRECTIONS, CallAnswer, TextAnswer
from internal.conversation.restored import findings_block
from internal.conversation.weight import estimate_tokens
from internal.errors import AgentError, ModelCallFailed
from internal.host.failures import FailureKind
from internal.model.turn import ModelCaller
from internal.part import LoopPart
from internal.plan_and_reflect.outcome import SubtaskOutcome
from internal.plan_and_reflect.params import PlanAndReflectParams
from internal.report.events import (
    AnswerBreak,
    AnswerText,
    Event,
    Noted,
    SpanFinished,
    SpanStarted,
    StopReason,
)
from internal.report.sources import escaped
from internal.review.second_look import SecondLook
from internal.run import Run
from internal.steps import Ending
from internal.text.kept_text import cut_evenly
from internal.text.notes import OurWords
from internal.tools.toolbox import Tool, Toolbox
from prompt import template

_KEPT_SHARES = (0.95, 0.5, 0.25)
"""Of the size that findings may have; the next share is tried when the provider says that the prompt is too long."""


def answer_from_findings(
    run: Run[PlanAndReflectParams], subtasks: Sequence[SubtaskOutcome], submit: Tool | None, second_look: SecondLook
) -> Generator[Event, None, Ending]:
    """Ask for the answer, offering no tools but the one that takes it, and have it judged.

    Raises:
        AgentError: the model call failed, and retries did not help; the log holds the findings.
    """
    started = run.clock.now()
    yield SpanStarted("answer", "ANSWER")
    try:
        ending = yield from _ask(run, subtasks, submit, second_look)
    except AgentError as failure:
        if not (isinstance(failure, ModelCallFailed) and failure.kind is FailureKind.TIMEOUT):
            found = {"findings": {subtask.name: subtask.answer for subtask in subtasks}}
            yield SpanFinished("answer", run.clock.now() - started, found, failure.detail)
            raise
        ending = Ending(StopReason.TIME_LIMIT, "", None)
    if ending.reason is StopReason.TIME_LIMIT and not ending.text:
        ending = replace(ending, text=_as_answer(subtasks))
        if submit is None:  # with an answer schema, the text is shown at the end of the run
            yield AnswerBreak()
            yield AnswerText(ending.text)
    yield SpanFinished("answer", run.clock.now() - started)
    return ending


def _ask(
    run: Run[PlanAndReflectParams], subtasks: Sequence[SubtaskOutcome], submit: Tool | None, second_look: SecondLook
) -> Generator[Event, None, Ending]:
    """Ask with as much of the findings as fits, and with less if the provider says that it is too much."""
    toolbox = Toolbox().with_tool(submit) if submit else Toolbox()
    models = run.models(toolbox)
    subtasks = [subtask.with_unread() for subtask in subtasks]
    asked = 0
    for share in _KEPT_SHARES:
        kept = _fitted(run, models, subtasks, share)
        if any(len(short.answer) < len(subtask.answer) for short, subtask in zip(kept, subtasks, strict=True)):
            yield Noted(OurWords("the findings were too long for one prompt and were cut evenly"), "answer")
        loop = run.loop(
            models,
            run.transcript(_request(run, kept)),
            CallAnswer() if submit else TextAnswer(),
            LoopPart(
                tool_share=1,
                maximum_iterations=MAX_CORRECTIONS + 1 if submit else 1,
                parent="answer",
                asked=asked,
            ),
        )
        try:
            return (yield from second_look.answer(loop, [subtask.answer for subtask in kept]))
        except ModelCallFailed as failure:
            asked = loop.asked
            if failure.kind is not FailureKind.CONTEXT_LENGTH or share == _KEPT_SHARES[-1]:
                raise
    raise AssertionError  # the last share either brings an ending or raises


def _request(run: Run[PlanAndReflectParams], subtasks: Sequence[SubtaskOutcome]) -> str:
    findings = findings_block(subtask.finding for subtask in subtasks)
    return template.ANSWER_REQUEST.format(task=escaped(run.dialogue.task), findings=findings)


def _fitted(
    run: Run[PlanAndReflectParams], models: ModelCaller, subtasks: Sequence[SubtaskOutcome], share: float
) -> list[SubtaskOutcome]:
    """The outcomes, with answers cut so that they fit beside the rest of the prompt."""
    window = models.window
    rest = window.weigh(run.transcript(_request(run, [replace(subtask, answer="") for subtask in subtasks])))
    answers = cut_evenly([subtask.answer for subtask in subtasks], share * (window.longest_request - rest.size), _bytes)
    if window.prompt_tokens is not None:
        answers = cut_evenly(answers, share * (window.prompt_tokens - rest.tokens), estimate_tokens)
    elif share != _KEPT_SHARES[0]:
        answers = cut_evenly(answers, share * sum(map(estimate_tokens, answers)), estimate_tokens)
    return [replace(subtask, answer=answer) for subtask, answer in zip(subtasks, answers, strict=True)]


def _bytes(text: str) -> int:
    return len(to_json(text))


def _as_answer(subtasks: Sequence[SubtaskOutcome]) -> str:
    """The findings, each under the name of its subtask."""
    return "\n\n".join(f"**{subtask.name}**\n\n{subtask.answer}" for subtask in subtasks)
