"""Builds cases from flows. A case has a flow file, its inputs and its script, and is checked before anything starts."""

from collections.abc import Sequence
from pathlib import Path

from devhost.case import Case, refuse_unknown_nodes
from devhost.errors import ParameterError, ScriptError
from devhost.flow.checks import check_flow, judged_by_engine, refuse
from devhost.flow.document import FlowFile, filled_inputs, typed_inputs, with_read_files
from devhost.flow.outside import NOTHING, OutsideAccess
from devhost.flow.turn import has_engine
from devhost.flow.whole import WholeFlow
from devhost.host.host import ToolHost
from devhost.limits import HostLimits
from devhost.playing import play
from devhost.plugin.declaration import PluginDeclaration
from devhost.protocol.wire import JsonObject
from devhost.script import Script
from devhost.tools.mcp import McpServer
from devhost.tools.setup import ToolSetup


def flow_file(file: Path | None, script: Script) -> FlowFile:
    """Reads a flow. The default for `file` is the file that the script names."""
    if file is None and script.flow is None:
        raise ParameterError("there is no flow: give FILE, or a --script that names it under the key flow")
    return FlowFile.read(file or script.flow or Path())


def read_inputs(
    file: FlowFile, script: Script, folder: Path | None, assignments: Sequence[str], limits: HostLimits
) -> JsonObject:
    """Returns the values of the Start node's fields. Values from the command line override values from the script.

    `folder` is the script's path.
    """
    return {
        **with_read_files(file, script.inputs, limits, folder),
        **with_read_files(file, typed_inputs(file, assignments), limits),
    }


def checked_flow(  # noqa: PLR0913, PLR0917 - a flow needs all of these
    file: FlowFile,
    script: Script,
    inputs: JsonObject,
    plugins: Sequence[PluginDeclaration],
    setups: Sequence[ToolSetup],
    servers: Sequence[McpServer],
    allowed: OutsideAccess,
    limits: HostLimits,
) -> Case:
    """Checks a flow and returns it as a case. `inputs` do not contain the defaults of the form.

    Raises FlowFileError if the flow cannot be played.
    """
    notices = check_flow(
        file,
        inputs,
        plugins,
        [setup.declaration for setup in setups],
        allowed,
        recorded=script.recorded.tool_names,
        answers=script.tool_answers,
        servers=[server.name for server in servers],
    )
    if has_engine():
        refuse(file, (each.sentence for each in judged_by_engine(file, ())))
    case = Case(
        script=script,
        played=WholeFlow(file, inputs if file.alone else filled_inputs(file, inputs), allowed),
        plugins=tuple(plugins),
        setups=tuple(setup.with_every_tool() for setup in setups),
        servers=tuple(servers),
        limits=limits,
        remarks=notices,
    )
    if not file.alone:
        refuse_unknown_nodes(case)
        case.played.check(case, script.said)
    return case


def refuse_misfit(file: FlowFile, script: Script) -> None:
    """Raises ScriptError if the script names an unknown node, and ParameterError if it names an unknown form."""
    case = Case(script=script, played=WholeFlow(file, {}))
    refuse_unknown_nodes(case)
    case.played.check(case, script.said)


def flow_case(script: Path, limits: HostLimits | None = None, allowed: OutsideAccess = NOTHING) -> Case:
    """Builds a case from a script and the flow that the script names. The case uses the tools of the host.

    Raises ScriptError if the script does not name its flow or does not fit it.
    """
    read = Script.of_flow(script)
    limits = limits or HostLimits()
    if read.flow is None:
        raise ScriptError(f"{script} does not name its flow: add the key flow, the path of a DSL file")
    file = FlowFile.read(read.flow)
    inputs = filled_inputs(file, with_read_files(file, read.inputs, limits, script))
    case = Case(script=read, played=WholeFlow(file, inputs, allowed), limits=limits)
    refuse_unknown_nodes(case)
    case.played.check(case, read.said)
    return case


def failed_expectations(script: Path, host: ToolHost | None = None, allowed: OutsideAccess = NOTHING) -> list[str]:
    """Plays the flow of a script and returns the failed expectations of all turns. Requires the workflow engine.

    `host` runs the tools and strategies of the flow, if it has any. `allowed` says whether HTTP Request and Code nodes
    may run. In a test: `failed_expectations(Path("cases/order.yaml"), host) == []` with a started `Host`.
    """
    case = flow_case(script, None if host is None else host.limits, allowed)
    return [sentence for turn in play(case, host) for sentence in turn.failures]
