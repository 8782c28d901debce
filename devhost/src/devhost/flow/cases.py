"""A flow's script played as a case: every turn beside what it is expected to be."""

import json
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Self

from devhost.conversation import Dialogue
from devhost.errors import FlowFileError, ScriptError
from devhost.expected import Check, Observed, ValueExpected, failed_calls_checks, found_at, without_thoughts
from devhost.files import LocalFile, local_files
from devhost.flow.document import FlowFile, filled_inputs, with_read_files
from devhost.flow.forms import Ask, scripted_answers
from devhost.flow.outside import NOTHING, Allowed
from devhost.flow.own_tools import beside_plugins, unknown_answers
from devhost.flow.script import FlowExpected, FlowScript, NodeExpected, ScriptedModels, TurnScript
from devhost.flow.turn import FlowEngine, FlowTurn, ModelOfNode, Surroundings, load_engine
from devhost.host.host import ToolHost
from devhost.limits import HostLimits
from devhost.models.backend import ModelBackend
from devhost.models.scripted.script import gist
from devhost.models.spending import LimitedModel, PriceLimit, refuse_unpriced
from devhost.node.parameters import PastTurn, messages_of
from devhost.process.session import Stop
from devhost.protocol.wire import JsonObject
from devhost.text import Secrets
from devhost.tools.recorded import recorded_tools
from devhost.tools.tool import Tool
from devhost.trace.flow import AnswerText, FlowEnded, FlowEvent, FlowNode, NodeEnded
from devhost.trace.played import PlayedTurn, watched

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

    @property
    def price_limit(self) -> PriceLimit | None:
        """For one run with all its turns; the command line's goes before the script's."""
        most = self.limits.price or self.script.limits.price
        if most is None:
            return None
        return PriceLimit(most)

    def refuse_unpriced(self, nodes: Iterable[FlowNode], *, always: bool = False) -> None:
        """ParameterError if there is a limit of price, and that of the model of one of the nodes is not known.

        `always`: the limit is that of an evaluation.
        """
        if self.price_limit is None and not always:
            return
        models = self.models or ScriptedModels(self.script, self.script.model, self.place)
        for node in nodes:
            if self.models is not None or {node.id, node.title} & self.script.models.keys():
                refuse_unpriced(models(node).description)

    @classmethod
    def read(cls, script: Path, limits: HostLimits | None = None, allowed: Allowed = NOTHING) -> Self:
        """ScriptError if it does not name its flow, or does not fit it."""
        read = FlowScript.read(script)
        limits = limits or HostLimits()
        if read.flow is None:
            raise ScriptError(f"{script} does not name its flow: add the key flow, the path of a DSL file")
        file = FlowFile.read(read.flow)
        refuse_misfit(file, read, str(script))
        inputs = filled_inputs(file, with_read_files(file, read.inputs, limits, script))
        return cls(file, read, str(script), inputs, limits, allowed=allowed)


def refuse_misfit(file: FlowFile, script: FlowScript, place: str) -> None:
    """ScriptError if a turn names a node that the flow does not have, in its models, knowledge or expectations.

    ParameterError for an answer to a form that the flow does not have.
    """
    if unknown := unknown_answers(file, script.tool_answers):
        raise ScriptError(f"{place}: tool_answers: the flow has no tool {', '.join(unknown)}")
    for number, said in enumerate(script.turns, start=1):
        scripted_answers(file, said.answers, place)
        named = [*(("models", name) for name in said.models), *(("knowledge", name) for name in said.knowledge)]
        named += () if said.expect is None else ((f"expect: {key}", name) for key, name in said.expect.named())
        for key, name in named:
            try:
                file.node(name)
            except FlowFileError as error:
                raise ScriptError(f"{place}: turn {number}: {key}: {error}") from error


def _limited(models: ModelOfNode, limit: PriceLimit, node: FlowNode) -> ModelBackend:
    return LimitedModel(models(node), limit)


# What Dify keeps of a conversation with a chatflow, from turn to turn: its id, memory and conversation variables.

CONVERSATION_BYTES = 204_800
"""MAX_VARIABLE_SIZE: of one conversation variable."""


@dataclass
class FlowConversation(Dialogue):
    case: FlowCase
    engine: FlowEngine
    show: Callable[[FlowEvent, PlayedTurn], None] = lambda _event, _turn: None
    hidden: Secrets | None = None
    """What is replaced in all that is shown and kept; by default the file's own secrets."""
    ask: Ask | None = None
    """For forms without a given answer."""
    _values: Mapping[str, object] = field(default_factory=dict, init=False)
    _beside: Sequence[Tool] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.id = self.id or self.case.script.conversation_id
        self._limit = self.case.price_limit
        super().__post_init__()

    @property
    def secrets(self) -> Secrets:
        return self.hidden or Secrets(self.case.file.secrets)

    def attach(self, path: Path) -> LocalFile:
        self.added = local_files([*(file.path for file in self.added), path], self.case.limits)
        return self.added[-1]

    def typed(self, question: str) -> TurnScript:
        """What the script says of a message that a person types, without the script's files."""
        asked = self.times_asked(question)
        said = self.case.script.turn_for(question, self._asked.total() + 1, asked)
        return said.model_copy(update={"query": question, "files": ()})

    def play(self, said: TurnScript, host: ToolHost | None, stop: Stop | None = None) -> PlayedTurn:
        files = (*local_files(said.files, self.case.limits), *self.added)
        self.added = ()
        self._asked[gist(said.query)] += 1
        return watched(self._events(said, files, self._around(said, host, stop)), self.show, self.secrets)

    def _around(self, said: TurnScript, host: ToolHost | None, stop: Stop | None) -> Surroundings:
        """What stands in the place of Dify's services in this turn."""
        case = self.case
        models = case.models or ScriptedModels(said, case.script.model, case.place)
        answers = scripted_answers(case.file, said.answers, case.place)
        knowledge = {**case.script.knowledge, **said.knowledge}
        if self._recorded is None:
            self._recorded = recorded_tools(case.script.recorded, () if host is None else host.tools)
        if self._beside is None:
            script = case.script
            recorded = script.recorded.tool_names
            self._beside = beside_plugins(case.file, script.tool_answers, case.allowed, case.limits, recorded)
        limit = self._limit
        if limit is not None:
            models = partial(_limited, models, limit)
        around = Surroundings(host, models, self._recorded, answers, self.ask, knowledge, stop, case.allowed)
        return replace(around, beside=self._beside)

    def _events(self, said: TurnScript, files: Sequence[LocalFile], around: Surroundings) -> Generator[FlowEvent]:
        """A turn that fails leaves its question in the memory, and the variables as far as they were set."""
        if refusal := self._refusal:
            yield FlowEnded("failed", {}, refusal, self._values)
            return
        count = self._asked.total()
        past = messages_of(self._past)
        text = ""
        turn = FlowTurn(said.query, self.case.inputs, files, self.id, count, self._values, past)
        server = None if around.host is None else around.host.server
        for event in self.engine(self.case.file, turn, around):
            match event:
                case AnswerText():
                    text += event.text
                case FlowEnded():
                    self._values = event.conversation
                    sent = () if server is None else tuple(server.with_bytes(server.offer(file)) for file in files)
                    # Dify stores nothing of a turn that failed, and of one that ended early what came of it.
                    answers = {"failed": "", "stopped": text, "paused": text}
                    answer = answers.get(event.status, str(event.outputs.get("answer", "")))
                    self._past.append(PastTurn(said.query, answer, sent))
            yield event

    @property
    def variables(self) -> dict[str, object]:
        declared = self.case.file.conversation_variables
        return {each.name: self._values.get(each.name, each.value) for each in declared}

    @property
    def _refusal(self) -> str:
        """Why Dify fails every later message of this conversation; empty if it does not.

        Dify counts Python's size of the value: of a list or an object without what is in it.
        """
        sizes = {name: sys.getsizeof(value) for name, value in self.variables.items()}
        return " ".join(
            f"The conversation variable {name!r} has {size:,} bytes. Dify takes {CONVERSATION_BYTES:,} "
            "(MAX_VARIABLE_SIZE) and fails every later message of this conversation."
            for name, size in sizes.items()
            if size > CONVERSATION_BYTES
        )


# Whether a turn fits what its case expects.


def checks(expected: FlowExpected, turn: PlayedTurn, file: FlowFile) -> Iterator[Check]:
    """Of a node's runs the last counts, and the calls of all."""
    last = {node.node.id: node for node in turn.nodes}
    yield from _outcome(expected, turn.end)
    if expected.answer is not None:
        yield from _values("", {"answer": expected.answer}, turn.end.outputs)
    yield from _values("conversation variable ", expected.conversation, turn.end.conversation)
    ran = ", ".join(last) or "no node"
    for name in expected.ran:
        yield Check("ran", name, "" if file.node(name).id in last else ran)
    for name in expected.not_run:
        yield Check("not_run", name, ran if file.node(name).id in last else "")
    for name, of_node in expected.nodes.items():
        node = file.node(name)
        found = [Check("ran", "it runs", ran)] if node.id not in last else [*_outcome(of_node, last[node.id])]
        runs = [each.run for each in turn.nodes if each.node.id == node.id and each.run is not None]
        seen = Observed.of(runs) if runs else Observed("")
        if node.id in last and of_node.calls is not None:
            found += of_node.calls.checks("calls", seen.calls)
        if node.id in last and of_node.failed_calls is not None:
            found += failed_calls_checks(of_node.failed_calls, seen)
        yield from (replace(check, name=f"{node}: {check.name}") for check in found)


def _outcome(expected: FlowExpected | NodeExpected, ended: FlowEnded | NodeEnded) -> Iterator[Check]:
    if expected.status:
        because = f" ({ended.error})" if ended.error else ""
        wrong = "" if ended.status in expected.status else f"{ended.status}{because}"
        yield Check("status", " or ".join(expected.status), wrong)
    if expected.error is not None:
        yield from expected.error.checks("error", ended.error)
    yield from _values("output ", expected.outputs, ended.outputs)


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

    @property
    def stays_open(self) -> bool:
        """Whether a form was left without an answer, and that was not expected: the user cannot go on."""
        return self.played.end.status == "paused" and bool(self.failures)


def failed_expectations(script: Path, host: ToolHost | None = None, allowed: Allowed = NOTHING) -> list[str]:
    """Of all turns. `host` runs the tools and strategies of the flow, if it has any; needs the workflow engine.

    `allowed`: whether HTTP request and code nodes run.
    """
    case = FlowCase.read(script, None if host is None else host.limits, allowed)
    turns = case_turns(FlowConversation(case, load_engine()), host, case.script.turns)
    return [sentence for turn in turns for sentence in turn.failures]


def case_turns(
    conversation: FlowConversation, host: ToolHost | None, turns: Iterable[TurnScript]
) -> Iterator[CaseTurn]:
    """After a failed turn the user goes on, but not after a form without an answer."""
    for number, said in enumerate(turns, start=1):
        played = conversation.play(said, host)
        place = f"turn {number}" + (f" ({said.query})" if said.query else "")
        expected = said.expect or FlowExpected()  # a turn that expects nothing has to succeed
        yield (turn := CaseTurn(said, played, place, tuple(checks(expected, played, conversation.case.file))))
        if turn.stays_open:
            return


def observed_of(turns: Sequence[CaseTurn]) -> Observed:
    """Of a conversation: the last answer, or what a workflow put out, and the sums of all turns."""
    last = turns[-1].played
    prices = [node.metadata.get("total_price") for turn in turns for node in turn.played.nodes]
    runs = [run for turn in turns for run in turn.played.runs]
    failed = last.end.status in {"failed", "stopped", "paused"} and turns[-1].failures
    put_out = json.dumps(last.end.outputs, ensure_ascii=False) if last.outputs else ""
    return replace(
        Observed.of(runs) if runs else Observed(""),
        text=without_thoughts(str(last.end.outputs.get("answer") or put_out)),
        error=f"{last.end.status}: {last.end.error}" if failed else None,
        tokens=sum(turn.played.tokens for turn in turns),
        price=str(sum((Decimal(str(price or 0)) for price in prices), Decimal(0))),
        seconds=round(sum(turn.played.seconds for turn in turns), 3),
    )
