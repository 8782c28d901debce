"""devhost: an embedded stand-in for Dify's plugin daemon and Agent node.

`python -m devhost run --example helpdesk` shows a run in the terminal. From Python, one host serves many runs at once:

    from devhost import FunctionTool, Host, HostLimits, ScriptedModel

    with Host.start(PLUGIN_DIR, tools=[EXAMPLE_DIR], limits=HostLimits(run_seconds=60)) as host:
        model = ScriptedModel.of([{"text": "Hello"}])          # turns as in script.yaml; .from_file(path, query=…)
        run = host.run("gpt5_function_calling", {"query": "Hi"}, model=model)

    run.error                   None | RunError(kind, message, traceback)
    run.outputs                 text, files, json, usage, variables, logs (tree), dropped_retriever_resources
    run.messages                every message of the strategy, as it came over the wire
    run.findings                rules of Dify's that the run broke: (name, sentence)
    model.requests              every decoded ModelRequest, in order; model.remaining = turns nobody asked for

`host.run` fills the strategy's model-selector and array[tools] itself, casts the rest by the strategy's YAML, and
raises `ParameterError` for what Dify would refuse before the plugin is asked. Call it from as many threads as you
like. Its options: `tools=[…]` (instead of `host.tools`), `history=[prompt message dicts]`,
`opaque_body="keep"|"drop"|"refuse"`, `on_message=callable(dict)`. A tool without a plugin is `FunctionTool("add",
{"a": "number"}, lambda arguments: "3")`: the function returns a text, a JSON object or a list of messages, or raises.
A run's files lie in `host.files.directory` until the host stops.
"""

from devhost.errors import HostError, ParameterError, PluginLostError, PluginStartError
from devhost.function_tool import FunctionTool
from devhost.host import Host
from devhost.limits import HostLimits
from devhost.run import Run, RunError
from devhost.scripted import ScriptedModel

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
]
