"""A flow's script played as a case: every turn beside what it is expected to be."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from devhost.errors import FlowFileError, ScriptError
from devhost.expected import Check, Observed, ValueExpected, found_at
from devhost.files import LocalFile, local_files
from devhost.flow.chat import FlowConversation
from devhost.flow.document import FlowFile, filled_inputs, with_read_files
from devhost.flow.forms import Answers, Ask, scripted_answers
from devhost.flow.outside import NOTHING, Allowed
from devhost.flow.script import FlowExpected, FlowScript, NodeExpected, ScriptedModels, TurnScript
from devhost.flow.turn import FlowEngine, ModelOfNode, Surroundings, load_engine
from devhost.flow.view import PlayedTurn, watched
from devhost.host.host import ToolHost
from devhost.limits import HostLimits
from devhost.process.session import Stop
from devhost.protocol.wire import JsonObject
from devhost.text import Secrets
from devhost.tools.recorded import recorded_tools
from devhost.tools.tool import Tool
from devhost.trace.flow import FlowEnded, FlowEvent, NodeEnded

# A case: a flow, and the script that plays it.


@dataclass(frozen=True)
class FlowCase:
    file: FlowFile
    script: FlowScript
    place: str
    """Where the script is written, for people."""
    inputs: JsonObject
    """The fields of the Start node."""
    limits: HostLimits
    models: ModelOfNode | None = None
    """None if the script answers."""
    allowed: Allowed = NOTHING

    @classmethod
    def read(cls, script: Path, limits: HostLimits | None = None, allowed: Allowed = NOTHING) -> Self:
        """ScriptError if it does not name its flow, or does not fit it."""
        read, limits = FlowScript.read(script), limits or HostLimits()
        if read.flow is None:
            raise ScriptError(f"{script} does not name its flow: add the key flow, the path of a DSL file")
        file = FlowFile.read(read.flow)
        refuse_misfit(file, read, str(script))
        inputs = filled_inputs(file, with_read_files(file, read.inputs, script.parent, limits))
        return cls(file, read, str(script), inputs, limits, allowed=allowed)

    @cached_property
    def _recorded(self) -> list[Tool]:
        """Their answers are taken one after another: a case that is played again is a new value."""
        return recorded_tools(self.script.recorded)

    def said(self, turns: Iterable[TurnScript]) -> list[tuple[TurnScript, str, Sequence[LocalFile]]]:
        """Each with its question and its files."""
        return [(turn, turn.query, local_files(turn.files, self.limits)) for turn in turns]

    def conversation(self, engine: FlowEngine) -> FlowConversation:
        return FlowConversation(self.file, engine, self.inputs, self.script.conversation_id)

    def around(
        self, host: ToolHost | None, said: TurnScript, *, ask: Ask | None = None, stop: Stop | None = None
    ) -> Surroundings:
        """What stands in the place of Dify's services in this turn; `ask` is for forms without a given answer."""
        models = self.models or ScriptedModels(said, self.script.model, self.place)
        answer = Answers(scripted_answers(self.file, said.answers, self.place), ask)
        knowledge = {**self.script.knowledge, **said.knowledge}
        running = set() if host is None else {(tool.provider, tool.name) for tool in host.tools}
        tools = [tool for tool in self._recorded if (tool.provider, tool.name) not in running]
        return Surroundings(host, models, tools, answer, knowledge, stop, self.allowed)


def refuse_misfit(file: FlowFile, script: FlowScript, place: str) -> None:
    """ScriptError if a turn names a node that the flow does not have, in its models, knowledge or expectations.

    ParameterError for an answer to a form that the flow does not have.
    """
    for number, said in enumerate(script.turns, start=1):
        scripted_answers(file, said.answers, place)
        named = [*(("models", name) for name in said.models), *(("knowledge", name) for name in said.knowledge)]
        named += () if said.expect is None else ((f"expect: {key}", name) for key, name in said.expect.named())
        for key, name in named:
            try:
                file.node(name)
            except FlowFileError as error:
                raise ScriptError(f"{place}: turn {number}: {key}: {error}") from error


# Whether a turn fits what its case expects.


def checks(expected: FlowExpected, nodes: Sequence[NodeEnded], ended: FlowEnded, file: FlowFile) -> Iterator[Check]:
    """`nodes`: in the order in which they ended. Of a node's runs the last counts, and the calls of all."""
    last = {node.node.id: node for node in nodes}
    yield from _outcome(expected, ended)
    if expected.answer is not None:
        yield from _values("", {"answer": expected.answer}, ended.outputs)
    yield from _values("conversation variable ", expected.conversation, ended.conversation)
    ran = ", ".join(last) or "no node"
    for name in expected.ran:
        yield Check("ran", name, "" if file.node(name).id in last else ran)
    for name in expected.not_run:
        yield Check("not_run", name, ran if file.node(name).id in last else "")
    for name, of_node in expected.nodes.items():
        node = file.node(name)
        found = [Check("ran", "it runs", ran)] if node.id not in last else [*_outcome(of_node, last[node.id])]
        if node.id in last and of_node.calls is not None:
            runs = [each.run for each in nodes if each.node.id == node.id and each.run is not None]
            found += of_node.calls.checks(Observed.of(runs).calls if runs else ())
        yield from (replace(check, name=f"{node}: {check.name}") for check in found)


def _outcome(expected: FlowExpected | NodeExpected, ended: FlowEnded | NodeEnded) -> Iterator[Check]:
    if expected.status:
        yield _status("status", expected.status, ended.status, ended.error)
    if expected.error is not None:
        yield from expected.error.checks("error", ended.error)
    yield from _values("output ", expected.outputs, ended.outputs)


def _status(name: str, expected: tuple[str, ...], found: str, error: str) -> Check:
    because = f" ({error})" if error else ""
    return Check(name, " or ".join(expected), "" if found in expected else f"{found}{because}")


def _values(place: str, expected: Mapping[str, ValueExpected], values: Mapping[str, object]) -> Iterator[Check]:
    for path, of_value in expected.items():
        try:
            yield from of_value.checks(f"{place}{path}", found_at(values, path))
        except LookupError as missing:
            yield Check(f"{place}{path}", "a value", str(missing))


# Plays a case, a flow's script that names its flow, beside what it expects.
#
# In a test: `failed_expectations(Path("cases/order.yaml"), host) == []` with a started `Host`.


@dataclass(frozen=True)
class CaseTurn:
    said: TurnScript
    played: PlayedTurn
    place: str
    """Which turn it is, for people."""
    checks: tuple[Check, ...]

    @property
    def failures(self) -> tuple[str, ...]:
        """A sentence for each expectation that failed: what was expected, what came, where."""
        return tuple(f"{self.place}: {check.sentence}" for check in self.checks if not check.passed)

    @property
    def has_expectations(self) -> bool:
        return self.said.expect is not None


def failed_expectations(script: Path, host: ToolHost | None = None, allowed: Allowed = NOTHING) -> list[str]:
    """Of all turns. `host` runs the tools and strategies of the flow, if it has any; needs the workflow engine.

    `allowed`: whether HTTP request and code nodes run.
    """
    case = FlowCase.read(script, None if host is None else host.limits, allowed)
    return [sentence for turn in case_turns(case, host) for sentence in turn.failures]


def case_turns(  # noqa: PLR0913 - what a turn is played with
    case: FlowCase,
    host: ToolHost | None,
    *,
    conversation: FlowConversation | None = None,
    turns: Iterable[tuple[TurnScript, str, Sequence[LocalFile]]] | None = None,
    show: Callable[[FlowEvent], None] = lambda _: None,
    hidden: Secrets | None = None,
    ask: Ask | None = None,
) -> Iterator[CaseTurn]:
    """`turns`: each with the question and its files; else the script's. After a failed one the user goes on."""
    case = replace(case)
    conversation = conversation or case.conversation(load_engine())
    if turns is None:
        turns = case.said(case.script.turns)
    for number, (said, question, files) in enumerate(turns, start=1):
        events = conversation.play(question, case.around(host, said, ask=ask), files)
        played = watched(events, show, hidden or Secrets(case.file.secrets))
        place = f"turn {number}" + (f" ({said.query})" if said.query else "")
        expected = said.expect or FlowExpected()  # a turn that expects nothing has to succeed
        found = tuple(checks(expected, played.nodes, played.ended, case.file))
        yield CaseTurn(said, played, place, found)


def observed_of(turns: Sequence[CaseTurn]) -> Observed:
    """Of a conversation: the last answer, or what a workflow put out, and the sums of all turns."""
    last = turns[-1].played.ended
    nodes = [node for turn in turns for node in turn.played.nodes]
    failed = last.status in {"failed", "stopped", "paused"} and turns[-1].failures
    return Observed.of_flow(
        [node.run for node in nodes if node.run is not None],
        [node.metadata for node in nodes],
        text=str(last.outputs.get("answer") or _written(last.outputs)),
        error=f"{last.status}: {last.error}" if failed else None,
        seconds=round(sum(turn.played.seconds for turn in turns), 3),
    )


def _written(outputs: JsonObject) -> str:
    return json.dumps(outputs, ensure_ascii=False) if outputs.keys() - {"answer", "files"} else ""
