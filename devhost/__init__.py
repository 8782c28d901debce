"""devhost: an embedded stand-in for Dify's plugin daemon and Agent node.

`devhost run --example helpdesk` shows a run in the terminal. From Python, one host serves many runs at once:

    from devhost import FunctionTool, Host, HostLimits, ScriptedModel

    with Host.start(PLUGIN_DIR, tools=[EXAMPLE_DIR], limits=HostLimits(run_seconds=60)) as host:
        model = ScriptedModel.of([{"text": "Hello"}])
        run = host.run("gpt5_function_calling", {"query": "Hi"}, model=model)

`docs/devhost.md` describes the commands, `docs/testing.md` this module's classes. A package imports only packages that
stand above it in this list (tests/devhost/test_architecture.py checks that):

    errors, home, limits  the exceptions, where devhost lies, and the host's limits
    protocol.golang     JSON as Go reads and writes it
    text                YAML, JSON and secret values
    protocol            what passes between the host, the daemon and a plugin
    plugin.rules        the daemon's rules for declarations, and the list of all rules
    plugin.keys         what the YAML files of a plugin may declare
    plugin.contents     what a package of a plugin holds, and the rules for its files
    plugin              a plugin's directory as data
    models              the interface of a model
    models.scripted     scripts, and the model that answers from one
    models.provider     facts about OpenAI's models
    models.openai_api   models behind OpenAI's APIs
    node                the parameters of an Agent node
    node.messages       what an Agent node does with each message
    node.outputs        what an Agent node leaves behind
    files               files that plugins fetch over HTTP
    process.transports  the three ways in which Dify runs a plugin
    process             a running plugin and its sessions
    tools               tools of tool plugins, and Python functions
    tools.recorded      tools that answer from a recording
    host                the Agent node and the daemon around one strategy plugin
    scenario            what a command asks for
    conversation        question after question, and what each run leaves to the next
    direct              one tool, called without an agent
    trace.flow          the lines that a flow adds to a trace
    trace               a run in a file
    recording           a traced run as a script
    page.calls          what the calls of a run say, and what changed from prompt to prompt
    page.parts          the parts of a run as a page shows them
    page                a trace as an HTML page
    telemetry           a trace as OpenTelemetry spans
    terminal.signals    Ctrl-C and the other signals
    terminal.tables     parts of a run as texts, trees and tables
    terminal            the view of a run or a trace in a terminal
    chat                a conversation in a terminal
    fork                a traced run once more, with something changed
    comparison          two runs side by side
    evaluation.checks   what a case expects, and whether a run fits
    flow.expectations   what a flow's script expects of a turn
    flow.outside        what a flow may do on this machine besides calling tools
    flow                a chatflow or workflow around the Agent node
    flow.forms          forms of Human Input nodes, and the answers to them
    flow.tools          the tools that the nodes of a flow hold
    flow.view           what a person or a program sees of a flow
    flow.traces         a flow in a trace
    flow.chat           a conversation with a chatflow
    flow.page           the trace of a flow as an HTML page
    flow.checks         what is wrong with a flow, said before it starts
    flow.cases          a flow's script as a case: every turn beside what it is expected to be
    flow.engine.files   files on the engine
    flow.engine.turn    what the nodes of one turn share
    flow.engine.models  devhost's models in the place of those of Dify's model plugins
    flow.engine.nodes   the nodes that ask Dify's services in Dify, and devhost here
    flow.engine         Dify's own workflow engine, with devhost's nodes in it
    overview            what a plugin declares, in lines
    package             a plugin as one file: written, installed, opened
    evaluation          cases, run side by side in one host, and compared
    evaluation.reports  an evaluation for people and for other programs
    scaffold            the folder of a new plugin
    cli.options         options that several commands have
    cli.flow            the command that plays flows
    console.runs        the runs of a folder, and how each was started
    console.listing     the list of runs, with an index of them
    console.children    the commands that the console started
    console.forms       the form of a new run, made from the strategy's YAML
    console.again       a run once more with one thing changed, and two runs beside each other
    console.asking      what a conversation waits for, and what can be told
    console.suites      files of cases, and how far an evaluation is
    console.cases       a run that is kept as a case
    console.pages       what the pages of the console look like
    console.live        runs as they go on, piece by piece
    console.views       what each address of the console answers
    console.playing     starting a run, and steering it
    console.server      the web server of the console, and who may ask it
    cli.recording       the commands record and fork
    cli.evaluation      the command that evaluates
    cli                 the commands and their options
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from devhost.errors import HostError, ParameterError, PluginLostError, PluginStartError, TraceError
    from devhost.host.host import Host
    from devhost.limits import HostLimits
    from devhost.models.backend import ModelBackend, ModelCallError, ModelDescription, chunk, tool_call
    from devhost.models.openai_api.backend import Connection, OpenAIModel
    from devhost.models.request import ModelRequest
    from devhost.models.scripted.model import ScriptedModel
    from devhost.node.outputs.outputs import Finding, NodeOutputs
    from devhost.node.outputs.run import Run, RunError
    from devhost.process.stop import Stop
    from devhost.process.watcher import Watcher
    from devhost.protocol.failures import ApiFault, read_fault
    from devhost.tools.function_tool import FunctionTool
    from devhost.tools.setup import ToolSetup
    from devhost.trace.outcome import run_of
    from devhost.trace.reader import Trace, read_trace
    from devhost.trace.runs import TracedRun, traced_runs
    from devhost.trace.writer import TraceWriter

__all__ = [
    "ApiFault",
    "Connection",
    "Finding",
    "FunctionTool",
    "Host",
    "HostError",
    "HostLimits",
    "ModelBackend",
    "ModelCallError",
    "ModelDescription",
    "ModelRequest",
    "NodeOutputs",
    "OpenAIModel",
    "ParameterError",
    "PluginLostError",
    "PluginStartError",
    "Run",
    "RunError",
    "ScriptedModel",
    "Stop",
    "ToolSetup",
    "Trace",
    "TraceError",
    "TraceWriter",
    "TracedRun",
    "Watcher",
    "chunk",
    "read_fault",
    "read_trace",
    "run_of",
    "tool_call",
    "traced_runs",
]

_PLACES = {
    "errors": ("HostError", "ParameterError", "PluginLostError", "PluginStartError", "TraceError"),
    "host.host": ("Host",),
    "limits": ("HostLimits",),
    "models.backend": ("ModelBackend", "ModelCallError", "ModelDescription", "chunk", "tool_call"),
    "models.openai_api.backend": ("Connection", "OpenAIModel"),
    "models.request": ("ModelRequest",),
    "models.scripted.model": ("ScriptedModel",),
    "node.outputs.outputs": ("Finding", "NodeOutputs"),
    "node.outputs.run": ("Run", "RunError"),
    "process.stop": ("Stop",),
    "process.watcher": ("Watcher",),
    "protocol.failures": ("ApiFault", "read_fault"),
    "tools.function_tool": ("FunctionTool",),
    "tools.setup": ("ToolSetup",),
    "trace.outcome": ("run_of",),
    "trace.reader": ("Trace", "read_trace"),
    "trace.runs": ("TracedRun", "traced_runs"),
    "trace.writer": ("TraceWriter",),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> object:
    """Each name is imported when it is first used: a command needs few of them, and all take half a second."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"devhost.{_MODULES[name]}"), name)
