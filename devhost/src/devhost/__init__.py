"""devhost: an embedded stand-in for Dify's plugin daemon and Agent node.

`devhost run --example helpdesk` shows a run in the terminal. From Python, one host serves many runs at once:

    from devhost import FunctionTool, Host, HostLimits, ScriptedModel

    with Host.start(PLUGIN_DIR, tools=[TOOLS_DIR], limits=HostLimits(run_seconds=60)) as host:
        model = ScriptedModel.of([{"text": "Hello"}])
        run = host.run("my_strategy", {"query": "Hi"}, model=model)

`devhost/docs/devhost.md` describes the commands, and `devhost/docs/testing.md` describes this module's classes. A
package imports only packages above it in this list (devhost/tests/test_architecture.py checks that):

    errors, home, limits, words  the exceptions, devhost's location, the host's limits, and shared wording
    options             declarations of command options
    golang              JSON as Go reads and writes it
    text                YAML, JSON and secret values
    archive             zip files from other people, opened within size limits
    reach               which files and addresses a script may use
    protocol            the messages between the host, the daemon and a plugin
    plugin              a plugin's directory as data, and the rules for it
    models              the interface of a model, and facts about OpenAI's models
    models.scripted     scripts, and the model that answers from one
    models.openai_api   models behind OpenAI's APIs
    node                an Agent node's parameters, and how it handles each message
    node.outputs        an Agent node's outputs
    files               files that plugins fetch over HTTP
    process             a running plugin, in one of Dify's three runtimes, and its sessions
    tools               tools from tool plugins, and tools that are Python functions
    scaffold            the templates for the folder of a new plugin or chatflow
    model_plugin        models from model plugins
    sent_tools          a check of whether a model plugin sends tools to its provider
    host                the Agent node and the daemon around one strategy plugin
    direct              one tool, called without an agent
    trace               runs recorded in a file, with their turns and nodes
    observed            the observed result of a node, a turn or a conversation
    expected            the expected result of a node, a turn or a conversation, and its checks
    script              what a user says turn by turn, how models answer, and what is expected
    scenario            option values that many commands share
    page                a trace as an HTML page
    telemetry           a trace as OpenTelemetry spans
    terminal            the view of a run or a trace in a terminal
    hosting             the model, host and trace of a command
    case                what to play, with its script, tools and models
    conversation        successive turns, and the state that they pass on
    playing             playing a case's turns and checking each against its expectations
    alone               a strategy's Agent node, played without a flow around it
    chat                a conversation in a terminal
    flow                a chatflow or workflow around the Agent node
    flow.engine         Dify's own workflow engine, with devhost's nodes in it
    recording           a script made from a traced run or flow
    overview            a summary of what a plugin declares
    package             a plugin packed as one file
    case_options        the options of `devhost run`, `chat` and `flow`, read as a case
    fork                a traced run, repeated with changes
    comparison          two runs side by side
    evaluation          cases that run in parallel in one host, and reports that compare them
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
    """Import a name when it is first used. A command needs few names, and importing all of them takes half a second."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"devhost.{_MODULES[name]}"), name)
