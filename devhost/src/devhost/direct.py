"""Calls one tool directly, without an agent, a model or a script."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from devhost.errors import ParameterError, RunFailure, naming
from devhost.files import FileServer, LocalFile
from devhost.host.backwards import BackwardsCalls
from devhost.host.host import ToolHost
from devhost.models.backend import ModelBackend, NoModel
from devhost.node.messages import RESERVED_VARIABLES, FileMessages
from devhost.node.outputs.outputs import Finding
from devhost.node.outputs.run import RunError
from devhost.plugin.casting import cast_parameter
from devhost.plugin.credentials import filled_credentials
from devhost.plugin.declaration import FILES, Parameter, PluginDeclaration, ProvidedTool, ToolDeclaration
from devhost.protocol.wire import FILE_LINKS, JsonObject
from devhost.text import place_of, properties_of, validator_of
from devhost.tools.entity import parameter_of
from devhost.tools.mcp import McpTool
from devhost.tools.setup import OfferedTool, Texts, ToolSetup
from devhost.tools.tool import Tool, call_tool

# Which tool is called, and with which parameters.
#
# The parameters are those that Dify's Tool node sends: the given ones, the defaults, and every parameter of the panel.


def find_tool(there_are: Iterable[ProvidedTool], name: str) -> ProvidedTool:
    """Find a tool by its name, by provider/name, or by the provider's full id and the name."""
    there_are = list(there_are)
    named = [tool for tool in there_are if name in tool.names]
    if not named:
        raise ParameterError(f"there is no tool {name!r}; {naming(tool.name for tool in there_are)}")
    if len(named) > 1:
        names = ", ".join(tool.names[-1] for tool in named)
        raise ParameterError(f"{name!r} is the name of several tools; say which: {names}")
    return named[0]


@dataclass(frozen=True)
class AskedTool:
    """A tool to call, with its parameters and files."""

    tool: ProvidedTool
    parameters: JsonObject = field(repr=False)
    """The parameters without files. Files are added once the host serves them."""
    files: Mapping[str, Sequence[LocalFile]]

    @classmethod
    def of(cls, tool: ProvidedTool, given: Mapping[str, object], files: Mapping[str, Sequence[LocalFile]]) -> Self:
        """Cast the parameters as Dify does. Every parameter of the panel is included."""
        declared = tool.declared.parameters
        missing = [
            parameter
            for parameter in declared
            if parameter.required and parameter.name not in files and not _has_value(parameter, given)
        ]
        if missing:
            raise ParameterError(f"tool {tool.name} needs {' '.join(map(_option, missing))}")
        parameters = {
            parameter.name: cast_parameter(parameter, given.get(parameter.name))
            for parameter in declared
            if parameter.type not in FILES and (_has_value(parameter, given) or parameter.form == "form")
        }
        return cls(tool, parameters, files)

    def sent(self, server: FileServer) -> JsonObject:
        """Return what Dify's Tool node sends. A parameter for a single file gets the first file."""
        files = {
            name: cast_parameter(parameter_of(self.tool.declared, name), [server.offer(file) for file in given])
            for name, given in self.files.items()
        }
        return {**self.parameters, **files}


def setup_of(
    plugin: PluginDeclaration, tool: ProvidedTool, given: Mapping[str, object], credentials: Texts
) -> ToolSetup:
    """Return the setup of a plugin with only this tool."""
    name = tool.provider.identity.name
    filled = filled_credentials(name, tool.provider.credentials, credentials.get(tool.provider_id, {}))
    offered = OfferedTool(**vars(tool), entity={}, fixed=given)  # no agent sees an entity
    return ToolSetup(plugin.model_copy(update={"tool_providers": (tool.provider,)}), (offered,), {name: filled})


def by_parameter(tool: ToolDeclaration, files: Iterable[tuple[str, LocalFile]]) -> dict[str, list[LocalFile]]:
    """Group files by parameter. Each file comes with a parameter's name, or '' for the tool's only file parameter."""
    takers = [parameter.name for parameter in tool.parameters if parameter.type in FILES]
    given: dict[str, list[LocalFile]] = {}
    for name, file in files:
        if name not in takers and (name or len(takers) != 1):
            there_are = ", ".join(takers) or "none"
            raise ParameterError(
                f"--file {name or file.path.name}: {tool.identity.name}'s parameters for files are: {there_are}. "
                "Write --file NAME=PATH"
            )
        given.setdefault(name or takers[0], []).append(file)
    return given


def _has_value(parameter: Parameter, given: Mapping[str, object]) -> bool:
    return parameter.name in given or parameter.default not in (None, "")


def _option(parameter: Parameter) -> str:
    if parameter.type in FILES:
        return f"--file {parameter.name}=PATH"
    return f"--arg {parameter.name}=VALUE"


# Compares a tool's variables with its `output_schema`. Dify does not check this: its editor offers the declared
# variables, and a node after the tool gets the variables that the tool sent.


COMBINING = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
"""Keywords with which a schema can have properties outside of `properties`."""


def schema_findings(schema: Mapping[str, Any] | None, variables: Mapping[str, object]) -> Iterator[Finding]:
    """Yield a finding for each difference between the variables and the output schema."""
    properties = properties_of(schema)
    # Validate against the whole schema, because a property may refer to `$defs`. Required variables are checked below.
    kept = {name: value for name, value in (schema or {}).items() if name != "required"}
    if not COMBINING & kept.keys():
        kept = {"additionalProperties": False, **kept}
    try:
        whole = validator_of({**kept, "type": "object"})
    except ValueError as error:
        yield Finding("output-schema-invalid", f"the output_schema is not a JSON Schema: {error}")
        return
    for fault in whole.iter_errors(dict(variables)):
        where = place_of(fault.instance_path) or "the variables"
        yield Finding("output-schema-misfit", f"{where}, by the output_schema: {fault.message}")
    for name in sorted(set(map(str, properties)) - variables.keys() - RESERVED_VARIABLES):
        sentence = f"the output_schema declares {name!r}, but no such variable came: a node that chose it gets nothing"
        yield Finding("variable-missing", sentence)


# Calls one tool and collects what it sends.

type OnMessage = Callable[[JsonObject, float], None]
"""Receives each message, and the seconds since the call began."""


@dataclass
class ToolOutcome:
    """The result of a call. Its fields are filled while the tool runs."""

    messages: list[JsonObject] = field(default_factory=list)
    files: list[JsonObject] = field(default_factory=list)
    """The files in the tool's messages, and the files that it uploaded."""
    variables: JsonObject = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    error: RunError | None = None
    told_an_error: bool = False
    """Whether an MCP server reported an error in its result. Dify treats it like any other result."""
    elapsed_seconds: float = 0.0


def call_directly(
    tool: Tool, asked: AskedTool, host: ToolHost, calls: BackwardsCalls, on_message: OnMessage
) -> ToolOutcome:
    outcome = ToolOutcome()
    began = time.monotonic()
    earlier = len(host.files.all())

    def found(rule: str, sentence: str) -> None:
        outcome.findings.append(Finding(rule, sentence))

    files = FileMessages(host.files, host.limits, found)
    try:
        for message in map(host.secrets.masked, call_tool(tool, asked.sent(host.server), files, calls.answer)):
            outcome.messages.append(message)
            match message:
                case {"type": "variable", "message": {"variable_name": name} as body}:
                    before = outcome.variables.get(name, "")
                    value = body.get("variable_value")
                    if body.get("stream"):
                        outcome.variables[name] = f"{before}{value}"
                    else:
                        outcome.variables[name] = value
                case {"type": kind, "message": {"text": link}, "meta": meta} if kind in FILE_LINKS:
                    if not host.files.find(str(link), meta or {}):
                        found("file-link-without-tool-file", f"{link!r} has no tool file: Dify's Tool node fails")
            on_message(message, time.monotonic() - began)
        outcome.told_an_error = isinstance(tool, McpTool) and tool.told_an_error
        if not outcome.told_an_error:
            outcome.findings += schema_findings(asked.tool.declared.output_schema, outcome.variables)
    except RunFailure as failure:
        outcome.error = replace(host.secrets.masked(RunError.of(failure)), node=None)  # only an Agent node shows one
    if calls.fault is not None:
        raise calls.fault
    outcome.elapsed_seconds = round(time.monotonic() - began, 3)
    outcome.findings += calls.findings
    outcome.files += [file.output() for file in host.files.all()[earlier:]]
    return outcome


def call_one_tool(
    host: ToolHost,
    name: str,
    arguments: Mapping[str, object],
    *,
    files: Mapping[str, Sequence[LocalFile]] | None = None,
    model: ModelBackend | None = None,
) -> ToolOutcome:
    """Call a tool of the host's plugins as Dify's Tool node does, with the defaults of its YAML.

    `files` are given by parameter. `model` answers if the tool calls a model. Raises ParameterError for an invalid
    argument.
    """
    running = {f"{tool.provider}/{tool.name}": tool for tool in host.tools}
    there_are = (tool for setup in host.setups for tool in setup.declaration.tools if tool.names[-1] in running)
    tool = find_tool(there_are, name)
    given = files or {}
    for key in (*arguments, *given):
        parameter_of(tool.declared, key)
    asked = AskedTool.of(tool, arguments, given)
    calls = host.calls(model or NoModel(), [])
    return call_directly(running[tool.names[-1]], asked, host, calls, lambda *_: None)
