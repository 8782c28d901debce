"""Converts a trace into a case: a conversation that runs again without tools or a model, with its expectations."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from pathlib import Path

import yaml

from devhost.alone import APPROVAL
from devhost.errors import TraceError
from devhost.flow.document import FILES as FILE_FIELDS
from devhost.flow.document import FlowFile, start_fields
from devhost.flow.forms import HUMAN_INPUT, LATE, Form
from devhost.models.scripted.knowledge import NODE_TYPE as KNOWLEDGE
from devhost.models.scripted.knowledge import recorded_segment
from devhost.models.scripted.script import ScriptedModelCard
from devhost.observed import Observed
from devhost.plugin.casting import is_file
from devhost.protocol.wire import JsonObject
from devhost.recording import turns as parts
from devhost.recording.turns import KeptFiles, hidden
from devhost.text import MASK, worded
from devhost.tools.entity import shortened
from devhost.trace.flow import NodeEnded
from devhost.trace.lines import Trace
from devhost.trace.runs import Call, TracedRun
from devhost.trace.turns import TracedTurn, last_conversation, traced_turns
from devhost.words import counted


@dataclass(frozen=True)
class RecordedCase:
    """A case that was made from a trace."""

    script: JsonObject
    """The script as plain data, in the order of a script's keys."""
    lacks: tuple[str, ...]
    """A sentence for each part of the run that is not in the script."""


def recorded_case(trace: Trace, file: Path, files: KeptFiles) -> RecordedCase:
    """Convert a trace into a case. `file` is the trace's file, for messages."""
    turns, left_out = _repeatable(trace, file)
    about = ""
    if trace.header.description:
        about = f": {trace.header.description}"
    kept = {"description": f"Recorded on {trace.header.started:%Y-%m-%d}{about}", **script_of(turns, files, whole=True)}
    runs = [run for turn in turns for run in turn.traced]
    whole = hidden(kept, (run.end.outcome for run in runs if run.end is not None))
    asked = (call.kind for run in runs for call in run.calls if not call.parent)  # a tool's own calls are not listed
    others = (kind.replace("_", " ") for kind in asked if kind not in {*parts.MODEL_CALLS, "tool"})
    not_repeated = (f"the answer to the call for {kind}: devhost gives it when the case runs" for kind in others)
    lacks = (left_out, *not_repeated, *files.lacking)
    return RecordedCase(whole, tuple(dict.fromkeys(filter(None, lacks))))


def conversation_of(trace: Trace, file: Path) -> list[TracedTurn]:
    """Return the turns of the last conversation, or the last turn of a workflow. Raises TraceError if there is none."""
    turns = last_conversation(trace)
    if not turns:
        why = "; ".join(trace.notices) or "it ends before a strategy was asked"
        raise TraceError(f"{file} has no run: {why}")
    return turns


def _repeatable(trace: Trace, file: Path) -> tuple[list[TracedTurn], str]:
    """Return the turns that a case can have, and a remark about the turns that are left out.

    The remark is empty if no turns are left out. A strategy's script has model turns for each question, so the
    conversation ends before a question without a model call.
    """
    turns = last_conversation(trace)
    if trace.header.command != "flow":
        turns = conversation_of(trace, file)
        turns = list(takewhile(lambda turn: turn.ended is not None and _asked_its_model(turn), turns))
        needs = "a run that ended, and that asked its model"
        words = "of earlier conversations, or without an end or a call of the model"
    else:
        turns = [turn for turn in turns if turn.ended is not None and turn.ended.status != "stopped"]
        needs = "a turn that ended"
        words = "of earlier conversations, or without an end"
    if not turns:
        raise TraceError(f"{file} cannot be recorded: a case needs {needs}")
    left = len(traced_turns(trace)) - len(turns)
    noun = "turn"
    if turns[0].is_direct:
        noun = "run"
    return turns, f"{counted(left, noun)} {words}" if left else ""


def _asked_its_model(turn: TracedTurn) -> bool:
    return any(parts.model_calls(run.calls) for run in turn.traced)


def _filled(values: JsonObject) -> JsonObject:
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def _recorded(runs: Sequence[TracedRun], files: KeptFiles, asked: Sequence[Call] = ()) -> JsonObject:
    """Return the section `recorded`. `asked` are tool calls by nodes other than agents."""
    made = {str(file.get("id")): file for run in runs if run.end for file in run.end.outcome.outputs.files}
    described = [tool for run in reversed(runs) for tool in parts.tools_in(run.parameters)]
    described += [call.request["entity"] for call in asked]
    tools = {(tool["identity"].get("provider"), tool["identity"].get("name")): shortened(tool) for tool in described}
    calls = sorted((*_tool_calls(runs), *asked), key=lambda call: call.began)
    answers = [parts.recorded_call(call, made, files) for call in calls]
    if tools or answers:
        return {"calls": answers, "tools": list(tools.values())}
    return {}


def _tool_calls(runs: Sequence[TracedRun]) -> list[Call]:
    return [call for run in runs for call in parts.tool_calls(run.calls)]


# A conversation as a script.


def script_of(turns: Sequence[TracedTurn], files: KeptFiles, *, whole: bool = False) -> JsonObject:
    """Convert turns into a script without empty keys. `whole` adds the expectation for a strategy's conversation."""
    runs = [run for turn in turns for run in turn.traced]
    asked = [call for turn in turns for calls in turn.calls.values() for call in calls]
    if turns[0].is_direct:
        recorder = _Recorder(None, files)
        first, *later = map(recorder.turn, turns)
        own = {"strategy": turns[0].strategy, **parts.settings(runs[0].parameters)}
        expected = None
        if whole:
            expected = _expected_of_conversation(turns)
        own |= {"model": parts.model_card(runs[0].parameters), "expect": expected}
        first.pop("approval", None)
        return _filled({**first, **own, "then": later, "recorded": _recorded(runs, files)})
    flow = _flow_of(turns)
    recorder = _Recorder(flow, files)
    first, *later = map(recorder.turn, turns)
    selectors = [{"model": {"type": "model-selector", "entity": call.request.get("entity")}} for call in asked]
    script = {
        "flow": os.path.relpath(flow.path, files.home),
        "inputs": recorder.inputs(turns[0].facts.inputs),
        **first,
        "model": _card([*(run.parameters for run in runs), *selectors]),
        "then": later,
        "recorded": _recorded(runs, files, [call for call in asked if call.kind == "tool"]),
    }
    conversation = turns[0].facts.conversation_id
    if conversation and conversation in json.dumps(script):  # a tool received the id
        script["conversation_id"] = conversation
    return _filled(script)


def _flow_of(turns: Sequence[TracedTurn]) -> FlowFile:
    flow = FlowFile.read(Path(turns[0].facts.file))
    if gone := {row.node.id for turn in turns for row in turn.rows.values()} - flow.nodes.keys():
        raise TraceError(f"{flow.path} has no node {', '.join(sorted(gone))} any more: it was changed after the trace")
    return flow


def _card(parameters: Iterable[Mapping[str, object]]) -> JsonObject:
    """Return how the first model differs from a scripted model.

    The model's name is left out, because the node has it.
    """
    usual = ScriptedModelCard().model_dump(mode="json")
    card = next(filter(None, map(parts.model_card, parameters)), {})
    return {name: fact for name, fact in card.items() if name != "name" and fact != usual[name]}


@dataclass
class _Recorder:
    flow: FlowFile | None
    """The flow; None for a strategy that was played alone."""
    files: KeptFiles

    def turn(self, turn: TracedTurn) -> JsonObject:
        """Convert a turn of a trace into a turn of a script."""
        return _filled({"query": turn.question, **(self._direct(turn) if self.flow is None else self._of_flow(turn))})

    def _direct(self, turn: TracedTurn) -> JsonObject:
        (run,) = turn.traced
        approval = run.parameters.get(APPROVAL)
        return {
            "approval": approval if approval != run.question else None,
            "files": [path for file in parts.files_in(run.parameters) if (path := self.files.sent(file)) is not None],
            "turns": parts.recorded_turns(parts.model_calls(run.calls)),
        }

    def _of_flow(self, turn: TracedTurn) -> JsonObject:
        return {
            "files": [path for name in turn.facts.files if (path := self.files.sent({"filename": name}))],
            "models": self._models(turn),
            "knowledge": self._knowledge(turn.nodes),
            "answers": self._answers(turn.nodes),
            "expect": _expected_of_turn(turn, self.flow),
        }

    def inputs(self, given: Mapping[str, object]) -> JsonObject:
        """Return the inputs without the defaults. A file is given as the path of its copy."""
        fields = {} if self.flow is None else start_fields(self.flow)
        kept = {name: value for name, value in given.items() if value != fields.get(name, {}).get("default")}
        return _filled(
            {
                name: self._file(value) if fields.get(name, {}).get("type") in FILE_FIELDS else value
                for name, value in kept.items()
            }
        )

    def _file(self, value: object) -> object:
        if isinstance(value, list):
            return [path for each in value if (path := self._file(each))]
        path = None
        if isinstance(value, dict) and "file" in value:
            path = self.files.sent({"filename": value["file"]})
        if path is None:
            return None
        return f"@{path}"

    def _models(self, turn: TracedTurn) -> JsonObject:
        """Return the model turns by node. An agent without a model call has no turns, but its key is still needed."""
        calls: dict[str, list[Call]] = {}
        for execution, runs in turn.agents.items():
            node = turn.rows[execution].node.id
            calls.setdefault(node, []).extend(call for run in runs for call in run.calls)
        calls |= {name: asked for name, asked in turn.calls.items() if asked[0].kind == "llm"}
        return {node: parts.recorded_turns(parts.model_calls(made)) for node, made in calls.items()}

    def _knowledge(self, ends: Sequence[NodeEnded]) -> JsonObject:
        """Return what each node found first in the turn."""
        found: JsonObject = {}
        for end in ends:
            if end.node.type == KNOWLEDGE and end.status == "succeeded":
                items = enumerate(end.outputs.get("result") or [], start=1)
                found.setdefault(end.node.id, [recorded_segment(item, number) for number, item in items])
        return found

    def _answers(self, ends: Sequence[NodeEnded]) -> JsonObject:
        """Return the first answers in the turn: the button by node, and the values by node and field."""
        found: JsonObject = {}
        for end in ends:
            if end.node.type == HUMAN_INPUT and self.flow is not None:
                button = end.outputs.get("__action_id") or LATE
                given = {end.node.id: button}
                for field in () if button == LATE else Form.of(self.flow, self.flow.nodes[end.node.id]).inputs:
                    if field.name in end.outputs:
                        given[f"{end.node.id}.{field.name}"] = end.outputs[field.name]
                if end.node.id in found and not given.items() <= found.items():
                    self.files.lacking.append(f"other answers to {end.node}: a turn of a script has one for each form")
                found = {**given, **found}
        return found


# The default expectations of a case: the calls, the outcome and the answer of its trace.

OF_ONE_RUN = (MASK, "file://", "http://127.0.0.1", "http://localhost", "tool_file")
"""Texts that no other run contains: hidden secrets, files, and addresses of this machine."""


def _expected_of_conversation(turns: Sequence[TracedTurn]) -> JsonObject:
    observed = Observed.of_turns(turns)
    error = turns[-1].outcomes[-1].error
    return _filled(
        {
            "text": None if error else _again(observed.text),
            "error": error and {"contains": _again(error.message) or error.kind},
            "calls": _expected_calls([run for turn in turns for run in turn.traced]),
            "stop_reason": observed.stop_reason,
        }
    )


def _expected_of_turn(turn: TracedTurn, flow: FlowFile | None) -> JsonObject:
    if turn.ended is None or flow is None:
        return {}
    outputs = turn.ended.outputs
    expected = {
        "status": None if turn.ended.status == "succeeded" else turn.ended.status,
        "error": None if turn.ended.status == "paused" else _again(turn.ended.error),
        "answer": _again(outputs.get("answer")),
        "outputs": {} if flow.is_chatflow else _filled({name: _again(value) for name, value in outputs.items()}),
        "nodes": {end.node.id: _expected_of_agent(turn, end) for end in turn.nodes if end.run is not None},
    }
    return _filled(expected)


def _again(value: object) -> object:
    """Return the expectation that a value is equal, or None for a value that another run does not have."""
    said = json.dumps(value, ensure_ascii=False)
    if any(part in said for part in OF_ONE_RUN):
        return None
    if isinstance(value, dict):
        return {"equals": value}
    return value


def _expected_of_agent(turn: TracedTurn, last: NodeEnded) -> JsonObject:
    runs = [run for each, row in turn.rows.items() if row.node.id == last.node.id for run in turn.agents.get(each, ())]
    reason = last.outputs.get("stop_reason")
    outputs = {}
    if isinstance(reason, str):
        outputs = {"stop_reason": reason}
    return _filled({"calls": _expected_calls(runs), "outputs": outputs})


def _expected_calls(runs: Sequence[TracedRun]) -> JsonObject:
    """Return the expected calls. Calls that ran in parallel may begin in another order."""
    calls = _tool_calls(runs)
    made = [
        {call.name: {name: value for name, value in call.arguments.items() if not _has_file(value)}} for call in calls
    ]
    side_by_side = (before.ended is None or after.began < before.ended for before, after in pairwise(calls))
    return {"at_least" if any(side_by_side) else "exactly": made}


def _has_file(value: object) -> bool:
    return is_file(value) or (isinstance(value, list) and any(map(is_file, value)))


# A case as a file that people read and change.


class _Readable(yaml.SafeDumper):
    def ignore_aliases(self, _data: object) -> bool:
        """Write a value twice if it occurs twice, because a user may change one of the two."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Readable.add_representer(str, _text)


def readable(data: object) -> str:
    """Format plain data as YAML."""
    return yaml.dump(data, Dumper=_Readable, sort_keys=False, allow_unicode=True, width=110)


def write_case(case: RecordedCase, file: Path) -> None:
    lacks = "".join(f"# Not recorded: {' '.join(sentence.split())}\n" for sentence in case.lacks)
    with worded(lambda why: TraceError(f"{file} cannot be written: {why}")):
        file.write_text(f"{lacks}{readable(case.script)}", encoding="utf-8")
