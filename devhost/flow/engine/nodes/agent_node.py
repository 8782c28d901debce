"""Dify's Agent node on the engine: a strategy's run as the engine's events.

In: the node's data from the DSL, the variable pool. Out: chunks of text, log entries, and the outputs by the names that
other nodes refer to. The rules are those of `devhost.node`, recorded from Dify's own node; the engine's error branch,
default value and retry apply to a failed run.
"""

from collections.abc import Generator, Iterator, Mapping
from queue import SimpleQueue
from threading import Thread
from typing import Any, override

from graphon.entities.base_node_data import BaseNodeData
from graphon.enums import BuiltinNodeTypes, NodeType, WorkflowNodeExecutionMetadataKey, WorkflowNodeExecutionStatus
from graphon.node_events.agent import AgentLogEvent
from graphon.node_events.base import NodeEventPayload, NodeRunResult
from graphon.node_events.node import StreamChunkEvent, StreamCompletedEvent
from graphon.nodes.base.node import Node
from graphon.runtime.init_params import InitParams
from graphon.runtime.runtime_state import RuntimeState
from pydantic import Field

from devhost.conversation.conversation import was_stopped
from devhost.errors import HostError, NodeParameterError
from devhost.flow.engine.files.made import list_of, made_by_tool
from devhost.flow.engine.turn.playing import Playing
from devhost.flow.engine.turn.pool import plain_variables
from devhost.flow.tools.panel import Panel
from devhost.host.agent_node import find_strategy
from devhost.host.host import Host
from devhost.node.memory import window
from devhost.node.outputs.run import Run
from devhost.node.parameters import Picked, read_setting, resolved
from devhost.node.variables import NodeVariables
from devhost.protocol.wire import JsonObject


class AgentNodeData(BaseNodeData):
    type: NodeType = BuiltinNodeTypes.AGENT
    agent_strategy_name: str
    agent_parameters: dict[str, dict[str, Any]] = Field(default_factory=dict)


class AgentNode(Node[AgentNodeData]):
    node_type = BuiltinNodeTypes.AGENT

    @override
    def __init__(
        self,
        node_id: str,
        data: AgentNodeData,
        *,
        init_params: InitParams,
        runtime_state: RuntimeState,
        playing: Playing,
    ) -> None:
        super().__init__(node_id=node_id, data=data, init_params=init_params, runtime_state=runtime_state)
        self._playing = playing
        self._node = playing.file.nodes[node_id]
        self._inputs: JsonObject = {}
        self._streamed = {"text"}
        """Outputs that stream: an Answer node waits for the end of each before it goes on."""

    @classmethod
    @override
    def version(cls) -> str:
        return "1"

    @override
    def _run(self) -> Generator[NodeEventPayload, None, None]:
        with self._playing.mistakes.watched():
            yield from self._played()

    def _played(self) -> Iterator[NodeEventPayload]:
        said: SimpleQueue[JsonObject | Run | Exception] = SimpleQueue()
        variables = plain_variables(self.runtime_state.variable_pool)
        Thread(target=self._play_into, args=(variables, said), daemon=True).start()
        while True:
            match message := said.get():
                case Run():
                    if was_stopped(message):
                        self._playing.ending.wait()
                    for output in sorted(self._streamed):
                        yield self._chunk(output, "", is_final=True)
                    yield StreamCompletedEvent(node_run_result=self._result(message))
                    return
                case NodeParameterError():
                    yield StreamCompletedEvent(node_run_result=_failed(message.words, type(message).__name__))
                    return
                case Exception():
                    raise message
                case _:
                    yield from self._events(message)

    def _play_into(self, variables: JsonObject, said: SimpleQueue[JsonObject | Run | Exception]) -> None:
        try:
            said.put(self._play(variables, said.put))
        except Exception as error:  # noqa: BLE001 - raised again in the engine's thread
            said.put(error)

    def _play(self, variables: JsonObject, on_message: Any) -> Run:  # noqa: ANN401 - the queue's put
        turn, around = self._playing.turn, self._playing.around
        host = around.host
        if not isinstance(host, Host):
            raise HostError(f"{self._node} needs a strategy plugin, and none was started")
        model = around.model(self._node, turn.query)
        _, strategy = find_strategy(host.plugin.declaration, self.node_data.agent_strategy_name)
        panel = Panel(model.description, self._memory(), [tool.entity for tool in host.tools])
        settings = panel.settings(strategy, self.node_data.agent_parameters, variables)
        self._inputs = host.secrets.masked(_shown_inputs(settings, variables))
        run = host.run(
            strategy.identity.name,
            settings,
            model=model,
            conversation_id=turn.conversation_id or None,
            variables=variables,
            on_message=on_message,
            stop=self._playing.ending.stop,
        )
        self._playing.runs[self.execution_id] = (run, model.description)
        return run

    def _memory(self) -> list[JsonObject]:
        """Dify's Agent node reads the size of the window even where the window is off."""
        match self.node_data.get("memory"):
            case {"window": {"size": int(turns)}}:
                return window(self._playing.turn.history, turns=turns)
            case dict():
                return window(self._playing.turn.history)
        return []

    def _events(self, message: JsonObject) -> Iterator[NodeEventPayload]:
        match message:
            case {"type": "text" | "link", "message": {"text": str(text)}}:
                yield self._chunk("text", text)
            case {
                "type": "variable",
                "message": {"variable_name": str(name), "variable_value": str(text), "stream": True},
            }:
                yield self._chunk(name, text)
            case {"type": "log", "message": dict(entry)}:
                yield AgentLogEvent(
                    message_id=entry["id"],
                    label=entry["label"],
                    node_execution_id=self.execution_id,
                    parent_id=entry.get("parent_id"),
                    error=entry.get("error"),
                    status=entry["status"],
                    data=entry["data"],
                    metadata=entry.get("metadata") or {},
                    node_id=self.id,
                )

    def _result(self, run: Run) -> NodeRunResult:
        if run.error is not None:
            shows = run.error.node.shows if run.error.node else run.error.message
            return _failed(shows, run.error.node.type if run.error.node else run.error.kind, self._inputs)
        files = [made_by_tool(self._playing.files.tool_file(file["id"])) for file in run.outputs.files]
        return NodeRunResult(
            status=WorkflowNodeExecutionStatus.SUCCEEDED,
            inputs=self._inputs,
            outputs={**run.outputs.by_name(), "files": list_of(files)},
            metadata={
                WorkflowNodeExecutionMetadataKey(key): value
                for key, value in run.outputs.workflow_totals.items()
                if key in set(WorkflowNodeExecutionMetadataKey)
            },
        )

    def _chunk(self, output: str, text: str, *, is_final: bool = False) -> StreamChunkEvent:
        self._streamed.add(output)
        return StreamChunkEvent(selector=[self.id, output], chunk=text, is_final=is_final)


def _shown_inputs(settings: Mapping[str, object], variables: JsonObject) -> JsonObject:
    """What the node's row shows: the parameters before their cast, without those that the pickers fill."""
    known = NodeVariables(variables)
    read = {name: read_setting(value) for name, value in settings.items()}
    return {name: resolved(setting, known) for name, setting in read.items() if not isinstance(setting, Picked)}


def _failed(shows: str, error_type: str, inputs: JsonObject | None = None) -> NodeRunResult:
    failed = WorkflowNodeExecutionStatus.FAILED
    return NodeRunResult(status=failed, inputs=inputs or {}, error=shows, error_type=error_type)
