"""An Agent node that is played without a flow around it: its panel, its state, and its turns."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from devhost.case import Case, Memory, PlayContext, Played
from devhost.errors import FlowFileError, HostError, ParameterError, about
from devhost.files import LocalFile, local_files
from devhost.host.host import Host, ToolHost
from devhost.node.outputs.run import Run
from devhost.node.parameters import (
    NodeVariables,
    PastTurn,
    files_among,
    is_marked,
    messages_of,
    node_parameters,
    resolved,
    window,
)
from devhost.plugin.casting import doubts
from devhost.plugin.declaration import PluginDeclaration, Strategy
from devhost.protocol.wire import JsonObject
from devhost.scenario import PICKED, file_parameter, typed_settings
from devhost.script import Kind, Script, TurnScript
from devhost.tools.recorded import recorded_tools
from devhost.tools.tool import Tool
from devhost.trace.flow import FlowNode
from devhost.trace.played import AGENT, PlayedTurn, agent_node, begun, ends, told_by

FILES = "sys.files"
"""The variable that holds the files of a question, as in a chatflow."""
QUESTION = "sys.query"
"""The variable that holds the node's query, as in a chatflow."""
CONVERSATION = "sys.conversation_id"
"""The variable that holds the conversation's id. It is empty outside a conversation."""
DIALOGUE_COUNT = "sys.dialogue_count"
"""The variable that holds the number of the current user message, counted from 1."""
KEPT = "devhost.state"
"""The variable that replaces a chatflow's conversation variable for the state."""
STATE = "state"
APPROVAL = "approval"
"""The parameters for the state and the user's answer. `state` is also the name of the variable that a run outputs."""


def takes_state(strategy: Strategy) -> bool:
    """Return whether the node has fields for a state and for the user's answer to pending calls."""
    texts = {parameter.name for parameter in strategy.parameters if parameter.type == "string"}
    return {STATE, APPROVAL} <= texts


@dataclass(frozen=True)
class KeptState:
    """A strategy's state, as a chatflow keeps it in a conversation variable. The text is empty without a state."""

    text: str = ""
    """The text of the state. devhost never parses it, because only the strategy knows its format."""
    waiting: tuple[object, ...] = ()
    """The calls that wait for the user's answer, as the run output them."""

    def after(self, run: Run) -> "KeptState":
        """Return the state after a run. A failed run keeps the state, unless a pending call may have been made.

        If the state were kept in that case, the user's next yes would make the call again.
        """
        if run.error is None:
            text = run.outputs.variables.get(STATE)
            if text and isinstance(text, str):
                return KeptState(text, tuple(run.outputs.pending_calls))
            return KeptState()
        may_have_acted = run.asked.keys() - {"llm", "llm_structured_output", "system_summary"}
        if self.waiting and may_have_acted:
            return KeptState()
        return self

    def note_on(self, run: Run) -> str:
        """Return a note for the user about the state after this run. Most runs need no note."""
        if self.text and run.error is not None and not self.after(run).text:
            return "The state is dropped, because this run called tools: another yes could make the same calls twice."
        return ""


@dataclass(frozen=True)
class AgentAlone(Played):
    """A strategy's Agent node, played alone."""

    plugin: PluginDeclaration
    strategy: Strategy
    settings: JsonObject
    """The settings of the strategy's parameters. Settings of the command line override those of the script."""
    workflow: JsonObject = field(default_factory=dict)
    """Variables of the workflow, by `node.name`."""
    kind: Kind = field(default="strategy", init=False)

    @classmethod
    def of(
        cls, plugin: PluginDeclaration, strategy: Strategy, script: Script, given: JsonObject, variables: JsonObject
    ) -> Self:
        """Create the node. `given` and `variables` override the values of the script."""
        settings = {name: value for name, value in script.params.items() if name != "query"}
        return cls(plugin, strategy, {**settings, **given}, {**script.variables, **variables})

    @property
    def name(self) -> str:
        return self.strategy.identity.name

    def node(self, name: str) -> FlowNode:
        if name in {AGENT, self.name}:
            return agent_node(self.name)
        raise FlowFileError(f"no node is {name!r}: a strategy that is played alone is the one node {AGENT!r}")

    @property
    def asking(self) -> Sequence[FlowNode]:
        return [agent_node(self.name)]

    @property
    def notices(self) -> Sequence[str]:
        return tuple(doubts(self.strategy.parameters, self.settings))

    def facts(self, case: Case) -> JsonObject:
        return {"example": case.name, "description": case.script.description, "strategy": self.name}

    def check_tools(self, case: Case, host: ToolHost) -> None:
        """Accept any tools: the agent is offered every tool that exists."""

    # The panel of the node.

    def with_settings(self, assignments: Iterable[str]) -> Self:
        """Return a copy with settings from `--param KEY=VALUE` pairs. The last pair of a key counts."""
        given = typed_settings(self.strategy, assignments)
        if "query" in given:
            raise ParameterError("--param query: a question is given with --query, or typed in a chat")
        return replace(self, settings={**self.settings, **given})

    def check(self, case: Case, turns: Sequence[TurnScript]) -> None:
        """Raise ParameterError for values that the node would refuse. The files have no URLs yet."""
        for number, said in enumerate(turns):
            if said.approval is not None and APPROVAL not in {each.name for each in self.strategy.parameters}:
                raise ParameterError(f"then {number}: {self.name} has no parameter {APPROVAL!r}")
            with about("files"):
                files = local_files(said.files, case.limits)
            self.values(said.query, [file.described("") for file in files])

    def values(self, question: str, files: Sequence[JsonObject] = ()) -> JsonObject:
        """Return the settings, including the question.

        Raises ParameterError for unknown parameters and for values that Dify's node refuses.
        """
        values = {"query": {"variable": QUESTION}, **self.settings}
        if files and FILES not in str(values):
            values = {file_parameter(self.strategy): {"variable": FILES}, **values}
        declared = [each for each in self.strategy.parameters if each.type not in PICKED]
        for each in declared:
            value = values.get(each.name)
            if each.type == "string" and isinstance(value, dict | list) and not is_marked(value):
                values[each.name] = json.dumps(value, ensure_ascii=False)  # as a person would type it
        node_parameters(declared, values, NodeVariables(self.known(question, files)))
        return values

    def known(self, question: str, files: Sequence[JsonObject] = (), turn: int = 1) -> JsonObject:
        """Return the variables by `node.name`, with the system variables that a chatflow always has."""
        if QUESTION in self.workflow:
            raise ParameterError(f"variable {QUESTION!r} is the question itself: give it as query, or with --query")
        if files and FILES in self.workflow:
            raise ParameterError(f"variable {FILES!r} is what --file and a script's files give: leave out one of them")
        return {FILES: list(files), CONVERSATION: "", DIALOGUE_COUNT: turn, **self.workflow, QUESTION: question}

    def files(self, question: str, files: Sequence[JsonObject] = ()) -> tuple[JsonObject, ...]:
        """Return the question's files, from any parameter."""
        variables = NodeVariables(self.known(question, files))
        values = self.values(question, files)
        return files_among({name: resolved(value, variables) for name, value in values.items()})

    # Playing a turn.

    def tools(self, case: Case, host: ToolHost | None) -> Sequence[Tool]:
        return recorded_tools(case.script.recorded, () if host is None else host.tools)

    def variables(self, memory: Memory) -> Mapping[str, object]:
        return memory.variables

    def play(self, said: TurnScript, files: Sequence[LocalFile], memory: Memory, around: PlayContext) -> PlayedTurn:
        """Play one turn. The user's settings override the values that the conversation passes on."""
        host = around.host
        if not isinstance(host, Host):
            raise HostError(f"{self.name} needs a strategy plugin, and none was started")
        question = said.query
        offered = [host.server.offer(file) for file in files]
        variables = self.known(question, offered, turn=len(memory.past) + 1)
        variables[CONVERSATION] = variables[CONVERSATION] or memory.id
        state = KeptState(str(memory.variables.get(KEPT, "")), memory.waiting)
        settings = self.values(question, offered)
        if state.text:
            variables[KEPT] = state.text
            settings = {STATE: {"variable": KEPT}, APPROVAL: {"variable": QUESTION}, **settings}
        if said.approval is not None:
            settings[APPROVAL] = said.approval
        node = agent_node(self.name)
        turn = begun(self.name, time.monotonic())

        def hear(message: JsonObject) -> None:
            event = told_by(node, message)
            if event is not None:
                turn.add(event, time.monotonic())
                around.show(event, turn)

        run = host.run(
            self.name,
            settings,
            model=around.models(node),
            tools=[*host.tools, *(memory.tools or ())],
            variables=variables,
            api_fails=around.case.api_fails,
            history=window(messages_of(memory.past)),
            conversation_id=memory.id,
            on_message=hear,
            stop=around.stop,
        )
        for event in ends(run):
            turn.add(event, time.monotonic())
            around.show(event, turn)
        answer = ""
        if run.error is None or run.was_stopped:
            answer = run.outputs.text
        memory.past.append(
            PastTurn(question, answer, tuple(map(host.server.with_bytes, self.files(question, offered))))
        )
        if takes_state(self.strategy) and STATE not in self.settings:  # a state set by the user is constant
            memory.note = state.note_on(run)
            left = state.after(run)
            if left.text:
                memory.variables = {KEPT: left.text}
            else:
                memory.variables = {}
            memory.waiting = left.waiting
        return turn
