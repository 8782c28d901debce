"""A flow with the values of its Start node, and how the engine plays a turn of the flow."""

import sys
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from devhost.case import Case, Memory, PlayContext, Played
from devhost.errors import ScriptError
from devhost.files import LocalFile, local_files
from devhost.flow.checks import refuse
from devhost.flow.document import FlowFile
from devhost.flow.forms import scripted_answers
from devhost.flow.outside import NOTHING, OutsideAccess
from devhost.flow.own_tools import answered_names, beside_plugins, names_of_dify, unknown_answers
from devhost.flow.tools import missing_tools
from devhost.flow.traces import FlowTrace, facts_of
from devhost.flow.turn import FlowEngine, FlowTurn, TurnContext, load_engine
from devhost.host.host import ToolHost
from devhost.node.parameters import PastTurn, messages_of
from devhost.protocol.wire import JsonObject
from devhost.script import Kind, TurnScript
from devhost.tools.recorded import recorded_tools
from devhost.tools.tool import Tool
from devhost.trace.flow import AnswerText, FlowEnded, FlowEvent, FlowLine, FlowNode
from devhost.trace.played import PlayedTurn, watched

CONVERSATION_BYTES = 204_800
"""Dify's MAX_VARIABLE_SIZE, the maximum size of one conversation variable."""
ASKING = frozenset({"agent", "llm", "question-classifier", "parameter-extractor"})
"""The types of nodes that call a model."""


def asking(file: FlowFile) -> list[FlowNode]:
    return [node for node in file.nodes.values() if node.type in ASKING]


def flow_line(case: Case, said: TurnScript) -> FlowLine:
    """Returns the line of a trace that describes a flow before its first turn."""
    if not isinstance(case.played, WholeFlow):
        raise TypeError("the case plays a strategy")
    files = local_files(said.files, case.limits)
    return facts_of(case.played.file, FlowTurn(said.query, case.played.inputs, files))


@dataclass(frozen=True)
class WholeFlow(Played):
    """The flow that a case plays."""

    file: FlowFile
    inputs: JsonObject
    """The values of the Start node's fields."""
    allowed: OutsideAccess = NOTHING
    engine: FlowEngine | None = None
    """The engine that plays the turns. The default is Dify's own engine."""
    kind: Kind = field(default="flow", init=False)

    @property
    def name(self) -> str:
        return str(self.file.path)

    @cached_property
    def secrets(self) -> Sequence[str]:  # type: ignore[override]
        return self.file.secrets

    @property
    def asking(self) -> Sequence[FlowNode]:
        return asking(self.file)

    @property
    def takes_a_question(self) -> bool:
        return self.file.is_chatflow

    @property
    def converses(self) -> bool:
        return not self.file.alone

    @property
    def own_question(self) -> str:
        return str(self.inputs.get("sys.query", ""))

    def node(self, name: str) -> FlowNode:
        return self.file.node(name)

    def facts(self, case: Case) -> JsonObject:  # noqa: ARG002 - only strategies need the case
        return {"example": self.file.name or self.file.path.stem}

    def check(self, case: Case, turns: Sequence[TurnScript]) -> None:
        """Raises ScriptError for the answer of an unknown tool, and ParameterError for an answer to an unknown form."""
        place = case.script.place
        if unknown := unknown_answers(self.file, case.script.tool_answers):
            raise ScriptError(f"{place}: tool_answers: the flow has no tool {', '.join(unknown)}")
        for said in turns:
            scripted_answers(self.file, said.answers, place)

    def check_tools(self, case: Case, host: ToolHost) -> None:
        running = ((tool.provider, tool.name) for tool in host.tools)
        there_are = [*running, *case.script.recorded.tool_names, *names_of_dify(self.file)]
        there_are += answered_names(self.file, case.script.tool_answers)
        refuse(self.file, missing_tools(self.file, there_are))

    def tools(self, case: Case, host: ToolHost | None) -> Sequence[Tool]:
        script = case.script
        recorded = recorded_tools(script.recorded, () if host is None else host.tools)
        names = script.recorded.tool_names
        return [*recorded, *beside_plugins(self.file, script.tool_answers, self.allowed, case.limits, names)]

    def play(self, said: TurnScript, files: Sequence[LocalFile], memory: Memory, around: PlayContext) -> PlayedTurn:
        return watched(self._events(said, files, memory, around), around.show, around.secrets)

    def _events(
        self, said: TurnScript, files: Sequence[LocalFile], memory: Memory, around: PlayContext
    ) -> Generator[FlowEvent]:
        """Plays a turn. If it fails, the memory keeps the question and the variables that the turn has already set."""
        if refusal := self._refusal(memory):
            yield FlowEnded("failed", {}, refusal, memory.variables)
            return
        script = around.case.script
        answers = scripted_answers(self.file, said.answers, script.place)
        knowledge = {**script.knowledge, **said.knowledge}
        surroundings = TurnContext(
            around.host, around.models, memory.tools or (), answers, around.ask, knowledge, around.stop, self.allowed
        )
        past = messages_of(memory.past)
        count = memory.asked.total()
        turn = FlowTurn(said.query, self.inputs, files, memory.id, count, memory.variables, past)
        engine = FlowTrace(around.trace).written(self.engine or load_engine())
        server = None if around.host is None else around.host.server
        text = ""
        for event in engine(self.file, turn, surroundings):
            match event:
                case AnswerText():
                    text += event.text
                case FlowEnded():
                    memory.variables = event.conversation
                    sent = () if server is None else tuple(server.with_bytes(server.offer(file)) for file in files)
                    # Dify stores no answer of a failed turn. If a turn ended early, Dify stores the text so far.
                    answers_of = {"failed": "", "stopped": text, "paused": text}
                    answer = answers_of.get(event.status, str(event.outputs.get("answer", "")))
                    memory.past.append(PastTurn(said.query, answer, sent))
            yield event

    def variables(self, memory: Memory) -> Mapping[str, object]:
        declared = self.file.conversation_variables
        return {each.name: memory.variables.get(each.name, each.value) for each in declared}

    def _refusal(self, memory: Memory) -> str:
        """Returns why Dify would fail every later message of this conversation, or an empty string if it would not.

        Dify measures a value with Python's `sys.getsizeof`, which does not count the contents of a list or an object.
        """
        sizes = {name: sys.getsizeof(value) for name, value in self.variables(memory).items()}
        return " ".join(
            f"The conversation variable {name!r} has {size:,} bytes. Dify takes {CONVERSATION_BYTES:,} "
            "(MAX_VARIABLE_SIZE) and fails every later message of this conversation."
            for name, size in sizes.items()
            if size > CONVERSATION_BYTES
        )
