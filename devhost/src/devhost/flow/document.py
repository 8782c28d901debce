"""Reads DSL files as Dify exports them: the graph, the variables of the app, and the fields of the Start node."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import AliasPath, BaseModel, ConfigDict, Field

from devhost.errors import DeclarationError, FlowFileError, OtherAppError, ParameterError
from devhost.files import LocalFile
from devhost.flow.app_package import SUFFIX, AppPackage
from devhost.flow.loaded import as_loaded
from devhost.limits import HostLimits
from devhost.protocol.wire import JsonObject
from devhost.reach import within_reach
from devhost.scenario import pairs
from devhost.text import json_or, load_yaml, worded
from devhost.trace.flow import FlowNode


class DifyModel(BaseModel):
    """Base class for data from Dify's files. Unknown keys are ignored, because Dify adds keys in new versions."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class FlowVariable(DifyModel):
    """An environment or conversation variable."""

    name: str
    value_type: str
    value: Any = None


class _NodeEntry(DifyModel):
    id: str
    type: str = ""
    """The value is `custom-note` for a note on the canvas, which is not part of the flow."""
    parentId: str | None = None  # noqa: N815 - the name is Dify's
    data: dict[str, Any]

    @property
    def node(self) -> FlowNode:
        kind = str(self.data.get("type", ""))
        title = str(self.data.get("title", ""))
        return FlowNode(self.id, kind, title, self.data, self.parentId)


class _Dependency(DifyModel):
    value: dict[str, Any]


def _app(path: Path) -> AppPackage:
    """Reads an app package, or a YAML file as a package that contains only the app."""
    if path.suffix.lower() == SUFFIX:
        return AppPackage.read(path)
    return AppPackage(load_yaml(path), unused=())


_WORKFLOW = partial(AliasPath, "workflow")


class FlowFile(DifyModel):
    """A workflow or chatflow from a DSL file."""

    document: Literal["app"] = Field(alias="kind")
    path: Path
    unused: tuple[str, ...] = ()
    """The contents of an app package that only Dify uses, in words."""
    name: str = Field("", validation_alias=AliasPath("app", "name"))
    """The app's name."""
    mode: Literal["workflow", "advanced-chat"] = Field(validation_alias=AliasPath("app", "mode"))
    graph: JsonObject = Field(validation_alias=_WORKFLOW("graph"))
    """The graph as Dify's editor loads it."""
    entries: tuple[_NodeEntry, ...] = Field(validation_alias=_WORKFLOW("graph", "nodes"))
    edges: tuple[JsonObject, ...] = Field((), validation_alias=_WORKFLOW("graph", "edges"))
    conversation_variables: tuple[FlowVariable, ...] = Field((), validation_alias=_WORKFLOW("conversation_variables"))
    environment_variables: tuple[FlowVariable, ...] = Field((), validation_alias=_WORKFLOW("environment_variables"))
    imported: tuple[_Dependency, ...] = Field((), alias="dependencies")
    alone: str = ""
    """The id of the node that is played alone; empty for a whole flow."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads a YAML file or an app package. Raises FlowFileError if the app is not a workflow or chatflow."""
        try:
            app = _app(path)
        except DeclarationError as error:
            raise FlowFileError(str(error)) from error
        if what := _other_app(app.data):
            raise OtherAppError(f"{path} is {what}. devhost plays workflows and chatflows")
        with worded(lambda why: FlowFileError(f"{path} is not a workflow or chatflow as Dify exports it: {why}")):
            given = {"path": path, "unused": app.unused, "workflow": _loaded(app.data.get("workflow"))}
            file = cls.model_validate({**app.data, **given})
        ids = Counter(entry.id for entry in file.entries if entry.type != "custom-note")
        if twice := [name for name, count in ids.items() if count > 1]:
            raise FlowFileError(f"{path} has several nodes with the id {', '.join(twice)}: each needs an id of its own")
        return file

    def with_graph(self, nodes: Sequence[JsonObject], edges: Sequence[JsonObject], *, alone: str) -> Self:
        """Returns a copy of the app with another graph."""
        known = {name: getattr(self, name) for name in type(self).model_fields}
        graph = {"nodes": list(nodes), "edges": list(edges)}
        entries = tuple(map(_NodeEntry.model_validate, nodes))
        return self.model_construct(
            **{**known, "graph": graph, "entries": entries, "edges": tuple(edges), "alone": alone}
        )

    @cached_property
    def nodes(self) -> Mapping[str, FlowNode]:
        """The nodes by id, without the notes on the canvas."""
        return {entry.id: entry.node for entry in self.entries if entry.type != "custom-note"}

    @property
    def start(self) -> FlowNode:
        """The Start node. A flow that can be played has exactly one Start node."""
        return next(node for node in self.nodes.values() if node.type == "start")

    @property
    def dependencies(self) -> tuple[str, ...]:
        """The plugins that Dify offers to install when the app is imported, as author/name."""
        return tuple(
            str(identifier).partition(":")[0]  # an identifier is author/name:version@checksum
            for each in self.imported
            for key, identifier in each.value.items()
            if key.endswith("plugin_unique_identifier")
        )

    def node(self, name: str) -> FlowNode:
        """Finds a node by its id, or by its title if no other node has it. Raises FlowFileError otherwise."""
        titled = [node for node in self.nodes.values() if node.title == name]
        if name in self.nodes:
            return self.nodes[name]
        if len(titled) == 1:
            return titled[0]
        if titled:
            what = f"{len(titled)} nodes have the title {name!r}: name one by its id"
        else:
            what = f"no node is {name!r}"
        raise FlowFileError(f"{what}; the ids are: {', '.join(self.nodes)}")

    @property
    def secrets(self) -> list[str]:
        """The values of the environment variables that Dify hides."""
        return [str(each.value) for each in self.environment_variables if each.value_type == "secret"]

    @property
    def has_agents(self) -> bool:
        return any(node.type == "agent" for node in self.nodes.values())

    @property
    def is_chatflow(self) -> bool:
        return self.mode == "advanced-chat"

    @property
    def kind(self) -> str:
        """The kind of app, as Dify's users call it."""
        if self.is_chatflow:
            return "chatflow"
        return "workflow"


CONVERTED = "Dify makes a chatflow or workflow of it: Switch to Workflow Orchestrate, in the menu beside the app's name"
OTHER_MODES: Mapping[object, str] = {
    "agent-chat": "an Agent app, which has a prompt and tools in place of nodes; a chatflow has Agent nodes for this",
    "chat": f"a Chatbot app, which has a prompt in place of nodes; {CONVERTED}",
    "completion": f"a Text Generator app, which has a prompt in place of nodes; {CONVERTED}",
    "agent": "an app of Dify's new agent, which has no nodes",
}


def _other_app(data: Mapping[str, Any]) -> str:
    """Describes a Dify app that is not a flow. Returns an empty string for a flow, and for any other file."""
    match data:
        case {"kind": "app", "app": {"mode": str(mode)}} if mode in OTHER_MODES:
            return f"of the mode {mode}: {OTHER_MODES[mode]}"
        case {"kind": "rag_pipeline"}:
            return "a knowledge pipeline, which fills a knowledge base"
        case _:
            return ""


def _loaded(workflow: object) -> object:
    if not isinstance(workflow, dict):
        return workflow
    return {**workflow, "graph": as_loaded(workflow.get("graph"))}


# The fields of a flow's Start node, filled in from the command line and the script as in Dify's form.

FILES = frozenset({"file", "file-list"})


def start_fields(file: FlowFile) -> Mapping[str, JsonObject]:
    """Returns the fields by the name of their variable, in the order of the form."""
    return {
        str(field["variable"]): field
        for node in file.nodes.values()
        if node.type == "start" and isinstance(node.data.get("variables"), list)
        for field in node.data["variables"]
        if isinstance(field, dict) and "variable" in field
    }


def typed_inputs(file: FlowFile, assignments: Iterable[str]) -> JsonObject:
    """Parses `--input KEY=VALUE` pairs. A text field gets the value as typed. Other fields get parsed JSON if possible.

    A file field gets a list of strings, one for each pair. `with_read_files` reads the files.
    """
    fields = start_fields(file)
    inputs: JsonObject = {}
    for name, text in pairs(assignments, "--input"):
        kind = fields.get(name, {}).get("type")
        if kind in FILES:
            inputs[name] = [*inputs.get(name, ()), text]
        elif kind in {"text-input", "paragraph", "select"}:
            inputs[name] = text
        else:
            inputs[name] = json_or(text, text)
    return inputs


def with_read_files(
    file: FlowFile, inputs: Mapping[str, object], limits: HostLimits, script: Path | None = None
) -> JsonObject:
    """Returns the inputs with a `LocalFile`, or a list of `LocalFile` objects, in place of the paths in file fields.

    Paths in a script are relative to the script's folder and must stay inside it, unless the command allows more.
    Other paths are relative to the current folder.

    Raises ParameterError for a file that cannot be read or is too large for Dify.
    """
    fields = start_fields(file)
    read = dict(inputs)
    for name, value in inputs.items():
        kind = fields.get(name, {}).get("type")
        if kind in FILES and value not in (None, "", []):
            files = [_read(name, text, script, limits) for text in (value if isinstance(value, list) else [value])]
            if kind == "file" and len(files) == 1:
                read[name] = files[0]
            else:
                read[name] = files
    return read


def _read(name: str, text: object, script: Path | None, limits: HostLimits) -> LocalFile:
    if not isinstance(text, str) or not text.startswith("@"):
        raise ParameterError(f"--input {name}: the field holds files: write {name}=@PATH, not {text!r}")
    path = Path(text.removeprefix("@"))
    if script is not None:
        path = within_reach(script.parent / path, script.parent)
    return LocalFile.read(path, limits)


def wrong_inputs(file: FlowFile, given: Mapping[str, object]) -> Iterator[str]:
    """Yields a sentence for each input that the Start node does not accept, and for each missing one."""
    fields = start_fields(file)
    for name in given:
        if name not in fields:
            yield f"--input {name}: the Start node has no such field; it has: {', '.join(fields) or 'none'}"
    for name, asked in fields.items():
        value = given.get(name, asked.get("default"))
        if asked.get("required") and value in (None, "", []):
            kind = asked.get("type")
            written = f"{name}={'@PATH' if kind in FILES else 'VALUE'}"
            yield f"the Start node needs the field {name!r} ({kind}): give it with --input {written}"
        elif asked.get("type") == "select" and value not in (None, "", *(options := asked.get("options") or ())):
            yield f"--input {name}: {value!r} is not one of the options: {', '.join(map(str, options))}"


def filled_inputs(file: FlowFile, given: Mapping[str, object]) -> JsonObject:
    """Returns a value for each field of the Start node. A field without an input gets its default."""
    return {name: given.get(name, field.get("default")) for name, field in start_fields(file).items()}
