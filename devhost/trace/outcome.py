"""The `Run` of a traced run: from the end that the trace recorded, or from the messages until it was cut off.

Nothing is computed again. A run without an end has the text, log and variables that had come, and no findings.
"""

from collections import Counter
from dataclasses import replace

from devhost.limits import HostLimits
from devhost.node.messages.tool_files import ToolFileStore
from devhost.node.outputs.error import NodeError
from devhost.node.outputs.fold import OutputsFold
from devhost.node.outputs.log import LogEntry
from devhost.node.outputs.outputs import Finding, IconLookups, NodeOutputs
from devhost.node.outputs.run import CallsMade, Run, RunError
from devhost.node.outputs.usage import spent
from devhost.trace.lines import EndLine, Failure, Log
from devhost.trace.runs import TracedRun

HARMLESS = frozenset({"text", "link", "json", "variable", "log", "retriever_resources"})
"""The messages that need neither a file nor the network."""
UNFINISHED = RunError("TraceEndsError", "the trace ends before the run does: it was killed, or it is still going on")


def run_of(traced: TracedRun, strategy: str) -> Run:
    """The `Run` as the host returned it; for a run without an end, what came of it until then, and an error."""
    messages = [arrival.message for arrival in traced.streamed]
    if traced.end is None:
        outputs = _so_far(traced)
        return Run(strategy, outputs, UNFINISHED, [], messages, traced.finished - traced.began, _calls(traced))
    outcome = traced.end.outcome
    error = outcome.error
    return Run(
        strategy=outcome.strategy,
        outputs=_outputs(traced.end),
        error=None if error is None else _error(error),
        findings=[Finding(finding.rule, finding.sentence) for finding in outcome.findings],
        messages=messages,
        elapsed_seconds=outcome.elapsed_seconds,
        calls=replace(_calls(traced), counts=traced.end.asked),
        session_id=traced.end.session_id,
    )


def _calls(traced: TracedRun) -> CallsMade:
    parameters = {call.id: call.request.get("tool_parameters") for call in traced.calls if call.kind == "tool"}
    return CallsMade(
        Counter(call.kind for call in traced.calls),
        {name: given for name, given in parameters.items() if isinstance(given, dict)},
        spent(call.usage for call in traced.calls),
        {call.id: str(call.request.get("tool")) for call in traced.calls if call.kind == "tool"},
    )


def _outputs(end: EndLine) -> NodeOutputs:
    outcome = end.outcome
    return NodeOutputs(
        text=outcome.text,
        files=outcome.files,
        json=outcome.json_,
        usage=outcome.usage,
        variables=outcome.variables,
        logs=[_entry(log) for log in outcome.logs],
        dropped_retriever_resources=outcome.dropped_retriever_resources,
        workflow_totals=outcome.workflow_totals,
        icon_lookups=IconLookups(outcome.icon_lookups.list_plugins, outcome.icon_lookups.list_builtin_tools),
    )


def _error(failure: Failure) -> RunError:
    node = failure.node
    shown = None if node is None else NodeError(node.shows, node.type, node.inputs_kept)
    return RunError(failure.kind, failure.message, failure.traceback, shown)


def _entry(log: Log) -> LogEntry:
    children = [_entry(child) for child in log.children]
    return LogEntry(log.id, log.parent_id, log.label, log.status, log.error, log.data, log.metadata, children)


def _so_far(traced: TracedRun) -> NodeOutputs:
    store = ToolFileStore()
    try:
        fold = OutputsFold(store, HostLimits(), goes_on=True)
        for arrival in traced.streamed:
            if arrival.message.get("type") in HARMLESS:
                for _ in fold.add(arrival.message):
                    pass
        return fold.outputs()
    finally:
        store.remove()
