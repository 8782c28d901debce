"""A trace as a script: one conversation with all that is needed to run it again, without tools and without a model.

In: a trace and its file. Out: a `Case`; TraceError for a trace without a run that a script could repeat.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from devhost.conversation.state import APPROVAL, STATE
from devhost.errors import TraceError
from devhost.protocol.wire import JsonObject
from devhost.recording.hidden import hidden
from devhost.recording.kept_files import KeptFiles
from devhost.recording.settings import QUERY, Settings, files_in, model_card, settings, tools_in
from devhost.recording.tool_calls import recorded_call, tool_calls
from devhost.recording.turns import MODEL_CALLS, model_calls, recorded_turns
from devhost.trace.reader import Trace
from devhost.trace.runs import TracedRun, traced_runs

ANSWERED_BY_DEVHOST = "devhost answers it itself when the case runs"


@dataclass(frozen=True)
class Case:
    script: JsonObject
    """As plain data, in the order of a script's keys."""
    lacks: tuple[str, ...]
    """A sentence for each thing of the run that is not in it."""


def recorded_case(trace: Trace, file: Path, files: KeptFiles) -> Case:
    """`file`: the trace's, for sentences."""
    runs = runs_of(trace, file)
    lacks = [] if len(runs) == len(traced_runs(trace)) else ["earlier conversations of the trace, or a run after them"]
    ended = [run for run in runs if run.end is not None]
    if len(ended) < len(runs):
        lacks.append("the last question: its run was killed, or is still going on")
    repeatable = _until_the_model_is_not_asked(ended)
    if not repeatable:
        raise TraceError(
            f"{file} cannot be recorded: {_why_not(ended)}. A case needs a run that ended and that asked its model"
        )
    first, *later = repeatable
    known = settings(first.parameters)
    made = {str(file.get("id")): file for run in repeatable for file in _files_out(run)}
    calls = [recorded_call(call, made, files) for run in repeatable for call in tool_calls(run.calls)]
    script = {
        "description": _description(trace),
        "query": first.question,
        "files": _sent(first, files),
        "strategy": strategy_of(trace, first),
        "params": known.params,
        "variables": known.variables,
        "model": model_card(first.parameters),
        "turns": recorded_turns(model_calls(first.calls)),
        "then": [_follow_up(run, files) for run in later],
    }
    recorded = {"calls": calls, "tools": _tools(repeatable)}
    kept = {name: value for name, value in script.items() if value not in ("", [], {})}
    lacks += [*_changes(first, later, known), *_not_repeated(repeatable), *files.lacking]
    whole = hidden({**kept, "recorded": recorded}, (run.end.outcome for run in repeatable if run.end is not None))
    return Case(whole, tuple(dict.fromkeys(lacks)))


def runs_of(trace: Trace, file: Path) -> list[TracedRun]:
    """The runs of the last conversation; TraceError if there is none."""
    if trace.header.command == "tool":
        raise TraceError(f"{file} is a trace of devhost tool: it has a call of {trace.header.tool} and no run")
    runs = traced_runs(trace)
    if not runs:
        why = "; ".join(trace.notices) or "it ends before the strategy was asked"
        raise TraceError(f"{file} has no run: {why}")
    return [run for run in runs if run.conversation_id == runs[-1].conversation_id]


def strategy_of(trace: Trace, run: TracedRun) -> str:
    """A trace that a test writes does not name it in its first line."""
    return trace.header.strategy or ("" if run.end is None else run.end.outcome.strategy)


def _until_the_model_is_not_asked(runs: Sequence[TracedRun]) -> list[TracedRun]:
    """A script has a turn for each question, so that its conversation ends before one without."""
    without = next((number for number, run in enumerate(runs) if not model_calls(run.calls)), len(runs))
    return list(runs[:without])


def _why_not(ended: Sequence[TracedRun]) -> str:
    return "its run asked no model" if ended else "its run was killed, or is still going on"


def _description(trace: Trace) -> str:
    words = f"Recorded on {trace.header.started:%Y-%m-%d}"
    of = f", example {trace.header.example}" if trace.header.example else ""
    return f"{words}{of}: {trace.header.description}" if trace.header.description else f"{words}{of}."


def _sent(run: TracedRun, files: KeptFiles) -> list[str]:
    kept = (files.sent(file) for file in files_in(run.parameters))
    return [path for path in kept if path is not None]


def _follow_up(run: TracedRun, files: KeptFiles) -> JsonObject:
    approval = run.parameters.get(APPROVAL)
    said: JsonObject = {
        "query": run.question,
        "approval": approval if approval != run.question else None,
        "files": _sent(run, files),
        "turns": recorded_turns(model_calls(run.calls)),
    }
    return {name: value for name, value in said.items() if value not in (None, "", [])}


def _files_out(run: TracedRun) -> list[JsonObject]:
    return [] if run.end is None else run.end.outcome.files


def _tools(runs: Sequence[TracedRun]) -> list[JsonObject]:
    found = {
        (entity["identity"].get("provider"), entity["identity"].get("name")): entity
        for run in reversed(runs)
        for entity in tools_in(run.parameters)
    }
    return list(found.values())


def _changes(first: TracedRun, later: Sequence[TracedRun], known: Settings) -> Iterator[str]:
    """A chat may set other parameters on its way; a script has one value for the whole conversation."""
    handed_on = {QUERY, STATE, APPROVAL}
    for name in known.params.keys() | {name for run in later for name in settings(run.parameters).params}:
        values = [first.parameters.get(name), *(run.parameters.get(name) for run in later)]
        if name not in handed_on and any(value != values[0] for value in values) and not list(_files(values)):
            yield f"other values of the parameter {name} in later questions: the case has the first one"


def _files(values: Sequence[object]) -> Iterator[JsonObject]:
    yield from files_in({str(number): value for number, value in enumerate(values)})


def _not_repeated(runs: Sequence[TracedRun]) -> Iterator[str]:
    for call in (call for run in runs for call in run.calls):
        if call.parent:
            continue  # what a tool asks for is part of its answer
        if call.kind not in {*MODEL_CALLS, "tool"}:
            yield f"the answer to the call for {call.kind.replace('_', ' ')}: {ANSWERED_BY_DEVHOST}"
        elif call.ended is None:
            yield f"the end of the call of {call.name}: the run ended before it"
