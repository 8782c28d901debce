"""Plays one node of a flow alone, as "Run this step" in Dify's editor does.

The rules are those of Dify's `WorkflowEntry.single_step_run` (api/core/workflow/workflow_entry.py, read on 2026-11-30):
the variables that the node refers to are its inputs, environment variables come from the app, a variable without a
value is an error, and loops and iterations cannot be run alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from devhost.errors import FlowFileError, ParameterError, naming
from devhost.files import LocalFile
from devhost.flow.document import FILES, FlowFile, start_fields
from devhost.flow.editor import OF_A_FORM, Reference, meant_reference, references_of
from devhost.limits import HostLimits
from devhost.protocol.wire import JsonObject
from devhost.scenario import pairs
from devhost.script import Script, TurnScript
from devhost.text import json_or
from devhost.trace.flow import BEFORE_ONE_NODE, FlowNode

PLAYS_OTHERS = "it plays the rounds of other nodes, which Dify runs as a part of the flow; choose a node in it"
NOTHING_TO_RUN = "there is nothing in it to run"
NOT_ALONE: Mapping[str, str] = {
    **dict.fromkeys(("iteration", "loop"), PLAYS_OTHERS),
    **dict.fromkeys(("start", "iteration-start", "loop-start", "loop-end"), NOTHING_TO_RUN),
}
"""Types of nodes that cannot be played alone, with the reason."""
OF_A_CONTAINER = frozenset({"isInIteration", "iteration_id", "isInLoop", "loop_id"})
"""Keys in a node's data that place the node inside an iteration or a loop."""
TEXT_FIELDS = frozenset({"text-input", "paragraph", "select"})

type Kind = Literal["text", "json", "files"]


@dataclass(frozen=True)
class NodeInput:
    """A variable that the node refers to."""

    source: str
    """A node's id, `sys` or `conversation`."""
    name: str
    title: str
    """The title of the source node; the source itself if there is no title."""
    kind: Kind
    is_required: bool

    @property
    def key(self) -> str:
        return f"{self.source}.{self.name}"

    @property
    def label(self) -> str:
        return f"{self.title}.{self.name}"


@dataclass(frozen=True)
class NodeAlone:
    """A node that is played alone, and the flow that it comes from."""

    whole: FlowFile
    node: FlowNode

    @classmethod
    def of(cls, file: FlowFile, name: str) -> "NodeAlone":
        """Finds a node by its id or title. Raises FlowFileError if no node matches or it cannot be played alone."""
        node = file.node(name)
        why = NOT_ALONE.get(node.type)
        if why is not None:
            raise FlowFileError(f"{node} cannot be played alone: {why}")
        return cls(file, node)

    @cached_property
    def file(self) -> FlowFile:
        """A flow with only this node and a Start node without fields."""
        entry = next(each for each in self.whole.graph["nodes"] if each.get("id") == self.node.id)
        data = {key: value for key, value in entry["data"].items() if key not in OF_A_CONTAINER}
        begin = {"id": BEFORE_ONE_NODE, "type": "custom", "data": {"type": "start", "title": "Start", "variables": []}}
        nodes = [begin, {"id": self.node.id, "type": "custom", "data": data}]
        edge = {"id": "edge", "source": BEFORE_ONE_NODE, "sourceHandle": "source", "target": self.node.id}
        return self.whole.with_graph(nodes, [edge], alone=self.node.id)

    @cached_property
    def inputs(self) -> Mapping[str, NodeInput]:
        """The variables that the node refers to, by key and in alphabetical order."""
        meant = (meant_reference(self.whole, each) for each in references_of(self.node))
        outside = (each for each in meant if each.source not in {"env", OF_A_FORM, self.node.id})
        found = map(self._input, outside)
        return {each.key: each for each in found}

    def _input(self, reference: Reference) -> NodeInput:
        source = self.whole.nodes.get(reference.source)
        is_set = reference.source in {"sys", "conversation"}
        title = reference.source
        if source is not None:
            title = source.title or title
        return NodeInput(reference.source, reference.name, title, self._kind(reference), not is_set)

    def _kind(self, reference: Reference) -> Kind:
        kind = reference.source
        if kind in self.whole.nodes:
            kind = self.whole.nodes[kind].type
        if kind == "start":
            field = start_fields(self.whole).get(reference.name, {}).get("type")
            if field in FILES:
                return "files"
            is_text = field in TEXT_FIELDS
        elif reference.source == "conversation":
            types = {each.name: each.value_type for each in self.whole.conversation_variables}
            is_text = types.get(reference.name) == "string"
        else:
            is_text = (kind, reference.name) in {
                ("sys", "query"),
                ("llm", "text"),
                ("agent", "text"),
            }
        if is_text:
            return "text"
        return "json"

    def read(self, assignments: Iterable[str], limits: HostLimits) -> JsonObject:
        """Parses `--input SOURCE.NAME=VALUE` pairs and returns the values by key.

        The value of a text variable is used unchanged, and a file variable takes `@PATH`. Any other value is parsed as
        JSON if possible. Raises ParameterError for a variable that the node does not refer to, and for a missing one.
        """
        by_label = {each.label: each for each in self.inputs.values()}
        there_are = naming(by_label)
        values: JsonObject = {}
        for name, text in pairs(assignments, "--input"):
            known = self.inputs.get(name) or by_label.get(name)
            if known is None and name.startswith("env."):
                raise ParameterError(f"--input {name}: environment variables have the values of the app")
            if known is None:
                raise ParameterError(f"--input {name}: {self.node} does not refer to it; {there_are}")
            if known.kind == "files":
                values[known.key] = [*values.get(known.key, ()), _file(known, text, limits)]
            elif known.kind == "text":
                values[known.key] = text
            else:
                values[known.key] = json_or(text, text)
        missing = [each.label for each in self.inputs.values() if each.is_required and each.key not in values]
        if missing:
            raise ParameterError(
                f"{self.node} needs the values of {', '.join(missing)}: give each with --input SOURCE.NAME=VALUE"
            )
        return {key: self._as_field(key, value) for key, value in values.items()}

    def _as_field(self, key: str, value: object) -> object:
        """Unwraps the list if the field holds a single file."""
        known = self.inputs[key]
        if known.kind == "files" and start_fields(self.whole)[known.name]["type"] == "file" and isinstance(value, list):
            return value[0]
        return value

    def script(self, script: Script) -> Script:
        """Returns a script for this node, made from the first turn that mentions the node."""
        names = {self.node.id, self.node.title}
        turn = next((each for each in script.said if names & {*each.models, *each.knowledge, *_forms(each)}), script)
        answers = {target: words for target, words in turn.answers.items() if names & _targets(target)}
        said = {"models": turn.models, "knowledge": {**script.knowledge, **turn.knowledge}, "answers": answers}
        return script.model_copy(update={**said, "query": turn.query, "files": turn.files, "then": (), "expect": None})


def _forms(turn: TurnScript) -> set[str]:
    return set[str]().union(*map(_targets, turn.answers))


def _targets(target: str) -> set[str]:
    """Returns the nodes that a key of `answers` may name: NODE for a button, or NODE.FIELD for a value."""
    return {target, target.rpartition(".")[0]}


def _file(known: NodeInput, text: str, limits: HostLimits) -> LocalFile:
    if not text.startswith("@"):
        raise ParameterError(f"--input {known.label}: it holds files: write {known.label}=@PATH, not {text!r}")
    return LocalFile.read(Path(text.removeprefix("@")), limits)
