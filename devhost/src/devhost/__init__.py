"""devhost: an embedded stand-in for Dify's plugin daemon and Agent node.

`devhost run --example helpdesk` shows a run in the terminal. From Python, one host serves many runs at once:

    from devhost import FunctionTool, Host, HostLimits, ScriptedModel

    with Host.start(PLUGIN_DIR, tools=[TOOLS_DIR], limits=HostLimits(run_seconds=60)) as host:
        model = ScriptedModel.of([{"text": "Hello"}])
        run = host.run("my_strategy", {"query": "Hi"}, model=model)

`devhost/docs/devhost.md` describes the commands, `devhost/docs/testing.md` this module's classes. A package imports
only packages above it in this list (devhost/tests/test_architecture.py checks that):

    errors, home, limits, words  the exceptions, where devhost lies, the host's limits, and words of many pages
    options             how a command's options are declared
    golang              JSON as Go reads and writes it
    text                YAML, JSON and secret values
    archive             zip files that somebody else made
    reach               which files and addresses a script may use
    protocol            what passes between the host, the daemon and a plugin
    plugin              a plugin's directory as data, and the rules for it
    models              the interface of a model, and facts about OpenAI's models
    models.scripted     scripts, and the model that answers from one
    models.openai_api   models behind OpenAI's APIs
    node                an Agent node's parameters, and what it does with each message
    node.outputs        what an Agent node leaves behind
    files               files that plugins fetch over HTTP
    process             a running plugin, in one of the three ways in which Dify runs one, and its sessions
    tools               tools of tool plugins, and Python functions
    scaffold            the folder of a new plugin or chatflow
    model_plugin        models of model plugins
    sent_tools          whether a model plugin sends tools
    host                the Agent node and the daemon around one strategy plugin
    direct              one tool, called without an agent
    trace               a run in a file, and its turns and nodes
    observed            what came of a node, a turn or a conversation
    expected            what a node, a turn or a conversation is expected to be, and whether it is
    script              what a user says turn by turn, how models answer, and what is expected
    scenario            what the options of many commands say
    page                a trace as an HTML page
    telemetry           a trace as OpenTelemetry spans
    terminal            the view of a run or a trace in a terminal
    hosting             what a command is given: model, host, trace
    case                what is played, by which script, with which tools and models
    conversation        turn after turn, and what each leaves to the next
    playing             a case's turns, beside what is expected of them
    alone               a strategy's Agent node, played without a flow around it
    chat                a conversation in a terminal
    flow                a chatflow or workflow around the Agent node
    flow.engine         Dify's own workflow engine, with devhost's nodes in it
    recording           a traced run or flow as a script
    overview            what a plugin declares, in lines
    package             a plugin as one file: written, installed, opened
    case_options        what `devhost run`, `chat` and `flow` are given, read as a case
    fork                a traced run once more, with something changed
    comparison          two runs side by side
    evaluation          cases, run side by side in one host, compared, and reported
    console             the console: a local web server, with a module for each family of its pages
    cli                 the commands and their options
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from devhost.direct import ToolOutcome, call_one_tool
    from devhost.errors import HostError, ParameterError, PluginLostError, PluginStartError, TraceError
    from devhost.evaluation.scoring import Score, ScoredRun
    from devhost.host.host import Host, start_tools
    from devhost.limits import HostLimits
    from devhost.model_plugin import ModelPlugin
    from devhost.models.backend import ModelBackend, ModelCallError, ModelDescription, ModelRequest, chunk, tool_call
    from devhost.models.openai_api.backend import Connection, OpenAIModel
    from devhost.models.scripted.model import ScriptedModel
    from devhost.node.outputs.outputs import Finding, NodeOutputs
    from devhost.node.outputs.run import Run, RunError
    from devhost.process.session import Stop, Watcher
    from devhost.protocol.failures import read_fault
    from devhost.tools.setup import ToolSetup
    from devhost.tools.tool import FunctionTool
    from devhost.trace.lines import TraceWriter, read_trace
    from devhost.trace.runs import TracedRun, run_of, traced_runs
    from devhost.trace.turns import TracedTurn, traced_turns

__all__ = ["Connection", "Finding", "FunctionTool", "Host", "HostError", "HostLimits", "ModelBackend"]
__all__ += ["ModelCallError", "ModelDescription", "ModelRequest", "NodeOutputs", "OpenAIModel", "ParameterError"]
__all__ += ["PluginLostError", "PluginStartError", "Run", "RunError", "ScriptedModel", "Stop", "ToolSetup"]
__all__ += ["TraceError", "TraceWriter", "TracedRun", "Watcher", "chunk", "read_fault", "read_trace", "run_of"]
__all__ += ["Score", "ScoredRun"]
__all__ += ["ModelPlugin", "ToolOutcome", "call_one_tool", "start_tools", "tool_call", "traced_runs"]
__all__ += ["TracedTurn", "traced_turns"]

_PLACES = {
    "direct": ("ToolOutcome", "call_one_tool"),
    "errors": ("HostError", "ParameterError", "PluginLostError", "PluginStartError", "TraceError"),
    "evaluation.scoring": ("Score", "ScoredRun"),
    "host.host": ("Host", "start_tools"),
    "limits": ("HostLimits",),
    "model_plugin": ("ModelPlugin",),
    "models.backend": ("ModelBackend", "ModelCallError", "ModelDescription", "ModelRequest", "chunk", "tool_call"),
    "models.openai_api.backend": ("Connection", "OpenAIModel"),
    "models.scripted.model": ("ScriptedModel",),
    "node.outputs.outputs": ("Finding", "NodeOutputs"),
    "node.outputs.run": ("Run", "RunError"),
    "process.session": ("Stop", "Watcher"),
    "protocol.failures": ("read_fault",),
    "tools.setup": ("ToolSetup",),
    "tools.tool": ("FunctionTool",),
    "trace.lines": ("TraceWriter", "read_trace"),
    "trace.runs": ("TracedRun", "run_of", "traced_runs"),
    "trace.turns": ("TracedTurn", "traced_turns"),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> object:
    """Each name is imported when it is first used: a command needs few of them, and all take half a second."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"devhost.{_MODULES[name]}"), name)
