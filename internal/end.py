"""The end of a run: its last words, its summary, and the state from which a later run goes on."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from internal.errors import AgentError, Quoting, StopReason, log_defect
from internal.events import AnswerBreak, AnswerText, Event, Noted, RunFinished, RunSummary, ShownTogether
from internal.host.session import exact_integers
from internal.loop import Ending
from internal.memory.approval import PendingCall, approval_question, how_to_answer
from internal.memory.records import AnswerRecord, EntryRecord, PlanRecord, State, recorded_sources, waiting_calls
from internal.node.params import StrategyParams
from internal.node.tools import Tool
from internal.node.virtual_tools import StructuredOutput
from internal.run import Run
from internal.sentences import cut_note, failed_sentence, no_answer_sentence, sources_heading
from internal.sources import Source
from internal.text.secrets import without_named
from internal.text.thoughts import open_fence


@dataclass(frozen=True)
class Result:
    """What a strategy has made of a run."""

    ending: Ending
    record: Sequence[EntryRecord]
    """The conversation without this run's answer; it ends in the question, or in a round."""
    rounds_before: int = 0
    """Of earlier runs in which this plan was begun."""
    plan: PlanRecord | None = None
    """Where calls wait in subtasks."""
    variables: Mapping[str, Any] = field(default_factory=dict)
    """Beside those that every strategy has."""
    decisions: Mapping[str, Any] = field(default_factory=dict)
    """What it adds to ``decision_summary``."""


def finish[P: StrategyParams](run: Run[P], result: Result, answer_tool: Tool | None) -> Generator[Event, None, None]:
    """Show what the user has not seen yet, and end the run."""
    answer, is_unsaid = _last_words(run, result, answer_tool)
    if is_unsaid:
        yield ShownTogether((AnswerBreak(), AnswerText(answer)))
    elif (cut := result.ending.cut) and answer and answer_tool is None:
        closing = f"\n{fence}" if (fence := open_fence(answer)) else ""
        yield ShownTogether((AnswerText(closing), AnswerBreak(), AnswerText(cut_note(cut, run.dialogue.words))))
    structured = None
    if answer_tool is not None and answer_tool.virtual_schema is not None:
        structured = StructuredOutput.of(result.ending.submitted, answer_tool.virtual_schema.check)
        if structured.note:
            yield Noted(structured.note)
    if note := run.budget.estimate_note():
        yield Noted(note)
    lists_sources = run.params.show_sources and answer_tool is None and answer == result.ending.text
    earlier = run.dialogue.state.sources if run.dialogue.state else ()
    yield RunFinished(
        RunSummary(
            stop_reason=result.ending.reason,
            rounds=result.rounds_before + run.tally.rounds,
            answer=answer,
            usage=run.tally.usage,
            tool_rounds=tuple(run.tally.tool_rounds),
            sources=run.bibliography.entries(),
            earlier_sources=tuple((each.number, Source(each.title, "", each.document_id)) for each in earlier),
            structured_output=structured,
            variables={**(_of_approval(run, result) if run.params.approval_required else {}), **result.variables},
            extra_outputs=run.params.extra_outputs,
            thoughts=tuple(run.tally.thoughts),
            decisions=result.decisions,
            state=_state(run, result, answer) if run.params.puts_out_state else None,
            sources_heading=sources_heading(run.dialogue.words) if lists_sources else "",
        )
    )


def _pending[P: StrategyParams](run: Run[P], result: Result) -> list[PendingCall]:
    """The calls that wait; not those of a subtask that ran out of time beside them."""
    waiting = {call.id for call in waiting_calls(result.record, result.plan)}
    return [call for call in run.approvals.pending if call.id in waiting]


def _of_approval[P: StrategyParams](run: Run[P], result: Result) -> dict[str, Any]:
    """The calls that wait, for programs and for people; a form shows the question without how to answer in a chat."""
    pending = _pending(run, result)
    return {
        "pending_calls": [exact_integers(call.as_variable()) for call in pending],
        "approval_question": approval_question(pending, run.dialogue.words) if pending else "",
    }


def _last_words[P: StrategyParams](run: Run[P], result: Result, answer_tool: Tool | None) -> tuple[str, bool]:
    """The text at the end of the run, and whether the user has yet to see it."""
    ending = result.ending
    if ending.reason is StopReason.APPROVAL_REQUIRED:
        pending, words = _pending(run, result), run.dialogue.words
        return f"{approval_question(pending, words)}\n\n{how_to_answer(pending, words)}", True
    if not ending.text and ending.reason is not StopReason.ANSWERED:  # an image alone is an answer too
        return no_answer_sentence(ending.reason, run.dialogue.words), True
    return ending.text, bool(ending.text) and (answer_tool is not None or ending.reason is StopReason.MODEL_FAILED)


def _state[P: StrategyParams](run: Run[P], result: Result, answer: str) -> State:
    """What a later run can go on from."""
    waits = result.ending.reason is StopReason.APPROVAL_REQUIRED
    return State(
        strategy=run.dialogue.strategy,
        entries=(*result.record, *(() if waits else (AnswerRecord(text=answer),))),
        plan=result.plan,
        sources=recorded_sources(run.dialogue.state, run.bibliography.entries()),
        last_source=run.bibliography.last,
        last_call=run.approvals.asked,
    )


def kept_alive[P: StrategyParams](run: Run[P], work: Generator[Event, None, Ending]) -> Generator[Event, None, Ending]:
    """Do the work; once an approved call was sent to its tool, no failure of the model ends the run in an error.

    An error would lose the state, and with the old one the user's next "yes" would make the call again.
    """
    try:
        return (yield from work)
    except AgentError as error:
        failure, detail = str(error), error.detail
        if not run.approvals.has_acted:
            raise
    except Exception as defect:
        if not run.approvals.has_acted:
            raise
        log_defect(defect)
        failure = detail = f"internal error: {type(defect).__name__}"
    yield Noted(Quoting(f"the run ends here, without an error, so that its state is kept: {detail}"))
    of_earlier_run = [call for answered in run.tally.tool_rounds if answered.round == 0 for call in answered.calls]
    sentence = failed_sentence(of_earlier_run, without_named(failure), run.dialogue.words)
    return Ending(StopReason.MODEL_FAILED, sentence, None)
