"""devhost: an embedded stand-in for Dify's plugin daemon and Agent node.

`python -m devhost run --example helpdesk` shows a run in the terminal. From Python, one host serves many runs at once:

    from devhost import FunctionTool, Host, HostLimits, ScriptedModel

    with Host.start(PLUGIN_DIR, tools=[EXAMPLE_DIR], limits=HostLimits(run_seconds=60)) as host:
        model = ScriptedModel.of([{"text": "Hello"}])          # turns as in script.yaml; .from_file(path, query=…)
        run = host.run("gpt5_function_calling", {"query": "Hi"}, model=model)

    A real model: `devhost.openai_api.backend.OpenAIModel(Connection(key, base_url), "responses" | "chat", name)`.

    run.error                   None | RunError(kind, message, traceback)
    run.outputs                 text, files, json, usage, variables, logs (tree), dropped_retriever_resources
    run.messages                every message of the strategy, as it came over the wire
    run.asked                   how many backwards calls there were, by type: llm, tool
    run.findings                rules of Dify's that the run broke: (name, sentence)
    model.requests              every decoded ModelRequest, in order; model.remaining = turns nobody asked for

`host.run` fills the strategy's model-selector and array[tools] itself, builds the rest as Dify's node does, and
raises `ParameterError` for what Dify would refuse before the plugin is asked. A parameter is a constant, a template
(`"{{#start.items#}}"`) or a variable (`{"variable": "start.items"}`) of `variables={"start.items": […]}`. Call it
from as many threads as you like. Its options: `tools=[…]` (instead of `host.tools`), `history=[prompt message
dicts]`, `opaque_body="drop"|"refuse"|"keep"`, `api_fails={"tool": read_fault("closes")}` (from
`devhost.daemon.failures`), `on_message=callable(dict)`, `raw=True` (build nothing), `strict=True`
(go on after what fails the node, to find everything). `Host.start(transport="tcp"|"http")` runs the plugin as in
remote debugging or serverless instead of locally. A tool without a plugin is `FunctionTool("add",
{"a": "number"}, lambda arguments: "3")`: the function returns a text, a JSON object or a list of messages, or raises.
A tool plugin with credentials or fixed values is `ToolSetup.read(DIR, credentials={"charts": {"api_key": "…"}},
fixed={"draw_chart": {"color": "red"}})` in `Host.start(tools=[…])`. `stop=Stop()` lets another thread end a run
(`stop.request()`), `conversation_id` and `history` make it a turn of a conversation.
`Host.start(watcher=…)` tells a `devhost.watcher.Watcher`, such as a `TraceWriter`, of every message that crosses.
A run's files lie in `host.files.directory` until the host stops.
"""

from devhost.errors import HostError, ParameterError, PluginLostError, PluginStartError
from devhost.function_tool import FunctionTool
from devhost.host import Host
from devhost.limits import HostLimits
from devhost.run import Run, RunError
from devhost.scripted import ScriptedModel
from devhost.stop import Stop
from devhost.tool_setup import ToolSetup

__all__ = [
    "FunctionTool",
    "Host",
    "HostError",
    "HostLimits",
    "ParameterError",
    "PluginLostError",
    "PluginStartError",
    "Run",
    "RunError",
    "ScriptedModel",
    "Stop",
    "ToolSetup",
]
