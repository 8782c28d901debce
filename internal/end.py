"""The end of a run: its last text, its summary, and the state that a later run continues."""

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from internal.call import WaitingCall
from internal.errors import AgentError, OurWords, Quoting, StopReason, log_defect
from internal.events import AnswerBreak, AnswerText, Event, LogNote, RunFinished, RunSummary, ShownBatch
from internal.json_values import read_exactly
from internal.loop import Finish
from internal.memory.approval import approval_question, how_to_answer, said_besides
from internal.memory.records import AnswerRecord, PlanRecord, SourceRecord, State, recorded_sources, recorded_tools
from internal.node.params import StrategyParams
from internal.node.virtual_tools import StructuredOutput
from internal.run import Run
from internal.sources import Source
from internal.text.language import language_of
from internal.text.secrets import without_named
from internal.text.texts import cut_to_size, joined
from internal.text.thoughts import open_fence
from internal.transcript.steps import Step, records_of
from prompt import template, user_texts

_NO_TOOLS_PASSED_ON = OurWords(
    "the model ended its turn without text and without a call; if it never calls a tool, its plugin may not pass tools "
    "on: set tool_calls to text"
)
"""docs/model-facts.md, "Plugins without tool calls"."""
_CALLS_NOT_PARSED = OurWords(
    "the model wrote its calls as text, so its server does not parse them: set the tool-call parser or template of the "
    "model at the server, or tool_calls of this node to text"
)
"""docs/text-calls.md."""


@dataclass(frozen=True)
class Result:
    """The result of a strategy."""

    ending: Finish
    steps: Sequence[Step]
    """The conversation without this run's answer, which ends with the question or with a round."""
    rounds_before: int = 0
    """Number of rounds in the earlier runs of this plan."""
    plan: PlanRecord | None = None
    """The plan, if calls in its subtasks wait for approval."""
    variables: Mapping[str, Any] = field(default_factory=dict)
    decisions: Mapping[str, Any] = field(default_factory=dict)
    """Entries that the strategy adds to ``decision_summary``."""


def finish[P: StrategyParams](run: Run[P], result: Result) -> Generator[Event, None, None]:
    """Show the text that the user has not seen yet, and end the run."""
    ending = result.ending
    words = run.dialogue.words
    variables = dict(result.variables)
    if run.params.answer_tools:
        variables = {"answer_tool": ", ".join(_tools(ending)) or None, **variables}
    pending = _pending(run, result)
    question = ""
    if pending:
        question = approval_question(pending, words)
    if run.params.approval_required:
        asked = [read_exactly(json.dumps(call.as_variable())) for call in pending]
        variables = {"pending_calls": asked, "approval_question": question, **variables}
    unsaid = _unsaid(run, ending, pending, question)
    answer = unsaid or ending.text
    if unsaid:
        yield ShownBatch((AnswerBreak(), AnswerText(unsaid)))
    elif ending.cut and answer and run.submit is None:
        yield _said_of_the_cut(answer, user_texts.CUT_SHORT[ending.cut.value][language_of(words)])
    structured = None
    if run.submit or run.params.answer_tools:
        structured = StructuredOutput.of(ending.submitted, run.submit.check if run.submit else None)
        if structured.note:
            yield LogNote(structured.note)
    if note := run.budget.estimate_note():
        yield LogNote(note)
    yield from _notes_on_calls(run, ending)
    is_of_model = run.submit is None and not ending.tool_answers
    lists_sources = run.params.show_sources and is_of_model and answer == ending.text
    earlier: Sequence[SourceRecord] = ()
    if run.dialogue.state:
        earlier = run.dialogue.state.sources
    yield RunFinished(
        RunSummary(
            stop_reason=ending.reason,
            rounds=result.rounds_before + run.totals.rounds,
            answer=answer,
            totals=run.totals,
            sources=run.numbered_sources.entries(),
            earlier_sources=tuple(
                (each.number, Source(each.title, "", {"document_id": each.document_id})) for each in earlier
            ),
            structured_output=structured,
            variables=variables,
            extra_outputs=run.params.extra_outputs,
            decisions=result.decisions,
            tool_answers=ending.tool_answers,
            state=_state(run, result, answer) if run.params.puts_out_state else None,
            sources_heading=user_texts.SOURCES_HEADING[language_of(words)] if lists_sources else "",
        )
    )


def _pending[P: StrategyParams](run: Run[P], result: Result) -> Sequence[WaitingCall]:
    """Return the calls that wait for approval, without those of an abandoned subtask."""
    pending = run.approvals.pending
    if not pending:
        return pending
    left_open = State(strategy="", entries=tuple(records_of(result.steps)), plan=result.plan)
    waiting = {call.id for call in left_open.waiting}
    return [call for call in pending if call.id in waiting]


def _said_of_the_cut(answer: str, sentence: str) -> ShownBatch:
    """Return the end of a truncated answer: its open code block is closed, and a sentence says why it stops."""
    closing = ""
    if fence := open_fence(answer):
        closing = f"\n{fence}"
    return ShownBatch((AnswerText(closing), AnswerBreak(), AnswerText(sentence)))


def _notes_on_calls[P: StrategyParams](run: Run[P], ending: Finish) -> Iterator[LogNote]:
    """Yield notes on the settings to change if the model's calls do not arrive as calls."""
    if ending.reason is StopReason.EMPTY and run.toolbox.tools and not run.models.calls_in_text:
        yield LogNote(_NO_TOOLS_PASSED_ON)
    if run.models.models.writes_calls:
        yield LogNote(_CALLS_NOT_PARSED)


def _state[P: StrategyParams](run: Run[P], result: Result, answer: str) -> State:
    """Return the state that a later run needs."""
    ending = result.ending
    kept = answer
    if ending.tool_answers:  # for later runs, a tool's answer is cut like any other tool result
        kept = cut_to_size(answer, run.params.tool_result_limit, note=template.CHARACTERS_NOT_KEPT.format)
    if ending.reason is StopReason.APPROVAL_REQUIRED:
        last: tuple[AnswerRecord, ...] = ()
    else:
        last = (AnswerRecord(text=kept),)
    return State(
        strategy=run.dialogue.strategy,
        entries=(*run.models.summaries.applied(records_of(result.steps)), *last),
        plan=result.plan,
        skills=tuple(run.tools.skills.read),
        found=recorded_tools(run.tools.search.found.values()),
        sources=recorded_sources(run.dialogue.state, run.numbered_sources.entries()),
        last_source=run.numbered_sources.last,
        last_call=run.approvals.asked,
        last_result=run.kept_results.given,
    )


def _unsaid[P: StrategyParams](run: Run[P], ending: Finish, pending: Sequence[WaitingCall], question: str) -> str:
    """Return the text that the user has not read yet; "" if there is none.

    This text is the rest of the answer, the reason why there is no answer, or the question for approval. The model's
    text in a turn with waiting calls follows the question, because there it cannot hide the question.
    """
    language = language_of(run.dialogue.words)
    if ending.reason is StopReason.APPROVAL_REQUIRED:
        return joined(question, how_to_answer(pending, run.dialogue.words), said_besides(ending.text))
    if not ending.text and ending.reason is not StopReason.ANSWERED:  # an image without text is an answer, too
        return user_texts.NO_ANSWER[ending.reason.value][language]
    if ending.tool_answers and not ending.text and not run.totals.files:
        names = user_texts.NAME_SEPARATOR[language].join(_tools(ending))
        return user_texts.TOOL_SAID_NOTHING[language].format(tools=names)
    if ending.tool_answers or run.submit or ending.reason is StopReason.MODEL_FAILED:
        return ending.text
    return ""


def _tools(ending: Finish) -> list[str]:
    """Return the names of the tools whose results are the answer, without duplicates."""
    return list(dict.fromkeys(each.call.name for each in ending.tool_answers))


def kept_alive[P: StrategyParams](run: Run[P], work: Generator[Event, None, Finish]) -> Generator[Event, None, Finish]:
    """Do the work. Once an approved call has been sent to its tool, a failure of the model no longer raises an error.

    An error would lose the new state. With the old state, the user's next "yes" would run the call again.
    """
    try:
        return (yield from work)
    except AgentError as error:
        failure = str(error)
        detail = error.detail
        if not run.approvals.has_acted:
            raise
    except Exception as defect:
        if not run.approvals.has_acted:
            raise
        log_defect(defect)
        failure = detail = f"internal error: {type(defect).__name__}"
    yield LogNote(Quoting(f"the run ends here, without an error, so that its state is kept: {detail}"))
    of_earlier_run = [call for answered in run.totals.tool_rounds if answered.round == 0 for call in answered.calls]
    language = language_of(run.dialogue.words)
    names = [f"{each.call.name}: {user_texts.CALL_STATUS[language][each.status.value]}" for each in of_earlier_run]
    sentence = user_texts.MODEL_FAILED_AFTERWARDS[language].format(
        calls=user_texts.NAME_SEPARATOR[language].join(names), failure=" ".join(without_named(failure).split())
    )
    return Finish(StopReason.MODEL_FAILED, sentence)
