"""Reads a summary from a run's files. Of a trace, only the lines that it needs are parsed: the rest may be megabytes.

In: a run's name and its folder. Out: a `Summary`; one with a `problem` for a file that is not a trace.
"""

import re
from pathlib import Path
from typing import Literal

from devhost.console.listing.summary import Summary
from devhost.console.runs.folder import NAME, SETUP, TRACE
from devhost.console.runs.setup import Setup
from devhost.errors import TraceError
from devhost.evaluation.checks.observed import rounds_of
from devhost.node.outputs.run import Run
from devhost.protocol.golang.values import well_formed
from devhost.trace.flow.lines import FlowEndLine, FlowLine
from devhost.trace.outcome import run_of
from devhost.trace.reader import Trace, read_trace
from devhost.trace.runs import TracedRun, traced_runs

NEEDED = re.compile(rb'"event"\s*:\s*"(?:end|flow|flow_end)"|"invoke_agent_strategy"')
LONGEST = 20_000
"""Characters of a text that a search looks at."""
FLOW_ENDS: dict[str, tuple[Literal["good", "limited", "bad"], str]] = {
    "succeeded": ("good", "finished"),
    "partial-succeeded": ("limited", "partly succeeded"),
    "stopped": ("limited", "stopped"),
    "paused": ("limited", "waits for a form"),
    "failed": ("bad", "failed"),
}


def summary_of(name: str, folder: Path) -> Summary:
    files = trace, beside = folder / f"{name}{TRACE}", folder / f"{name}{SETUP}"
    setup = Setup.known(beside)
    summary = Summary(
        name=name,
        changed=max((file.stat().st_mtime for file in files if file.exists()), default=0),
        of="" if setup is None else setup.of,
    )
    if not NAME.fullmatch(name):
        problem = "the console shows only runs whose names have the characters A-Z a-z 0-9 _ . - and no others"
        return summary.model_copy(update={"problem": problem})
    if not trace.exists():
        begun = setup or Setup()
        asked = {"questions": (begun.question,), "strategy": begun.strategy or "", "command": begun.kind}
        return summary.model_copy(update={**asked, "is_unfinished": True})
    try:
        facts = _facts(read_trace(trace, NEEDED), setup or Setup())
        return summary.model_copy(update={name: _well_formed(value) for name, value in facts.items()})
    except TraceError as error:
        return summary.model_copy(update={"problem": str(error).removeprefix(str(trace)).lstrip(", :")})


def _well_formed(value: object) -> object:
    """Texts without halves of surrogate pairs, which the index cannot keep."""
    match value:
        case str():
            return well_formed(value)
        case tuple():
            return tuple(map(_well_formed, value))
    return value


def _facts(trace: Trace, setup: Setup) -> dict[str, object]:
    header, traced = trace.header, traced_runs(trace)
    runs = [run_of(each, header.strategy) for each in traced]
    return {
        "started": header.started,
        "command": header.command,
        "example": header.example,
        "strategy": header.tool or header.strategy or header.description,
        "model": header.model.name,
        "seconds": sum(run.elapsed_seconds for run in runs),
        "tokens": sum(map(_tokens, runs)),
        "rounds": sum(map(rounds_of, runs)),
        **(_of_flow(trace) if header.command == "flow" else _of_runs(trace, traced, runs, setup)),
    }


def _of_runs(trace: Trace, traced: list[TracedRun], runs: list[Run], setup: Setup) -> dict[str, object]:
    if trace.header.command == "tool":
        return {"questions": (trace.header.query or "",), "words": "tool call", "level": ""}
    questions = tuple(each.question[:LONGEST] for each in traced) or ((trace.header.query or setup.question)[:LONGEST],)
    if not runs:
        return {"questions": questions, "is_unfinished": True}
    last, is_unfinished = runs[-1], any(each.end is None for each in traced)
    error = None if is_unfinished else last.error
    return {
        "questions": questions,
        "answer": last.outputs.text[:LONGEST],
        "error": "" if error is None else f"{error.kind}: {error.message}"[:LONGEST],
        "words": last.ending.words,
        "level": last.ending.level,
        "is_unfinished": is_unfinished,
    }


def _of_flow(trace: Trace) -> dict[str, object]:
    begins = [line for line in trace.lines if isinstance(line, FlowLine)]
    ends = [line for line in trace.lines if isinstance(line, FlowEndLine)]
    level, words = FLOW_ENDS[ends[-1].status] if ends else ("", "")
    return {
        "questions": tuple(line.query[:LONGEST] for line in begins),
        "answer": str(ends[-1].outputs.get("answer", ""))[:LONGEST] if ends else "",
        "error": ends[-1].error[:LONGEST] if ends else "",
        "words": words,
        "level": level,
        "is_unfinished": len(ends) < max(1, len(begins)),
    }


def _tokens(run: Run) -> int:
    total = run.usage.get("total_tokens") if isinstance(run.usage, dict) else None
    return int(total) if isinstance(total, int | float) else 0
