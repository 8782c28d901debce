"""Which tools a fork may run, and which of its calls ran.

In: the run that is forked, the fork's setup. Out: tools by name; lines such as those of `devhost fork`.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from devhost.comparison.sides import raised
from devhost.console.runs.setup import Setup
from devhost.errors import HostError
from devhost.fork.fork import Origin
from devhost.fork.rounds import Past
from devhost.models.scripted.recorded import RecordedCall
from devhost.plugin.declaration import PluginDeclaration
from devhost.plugin.nearest import nearest_strategy_plugin
from devhost.protocol.wire import JsonObject
from devhost.recording.tool_calls import tool_calls
from devhost.scenario.scenario import Example, examples_of
from devhost.tools.recorded.answers import RecordedAnswers
from devhost.tools.recorded.tool import NOT_RECORDED
from devhost.trace.calls import Call


def live_plugins(plugin: Path | None, example: str | None, tools: Sequence[Path]) -> list[PluginDeclaration]:
    """The tool plugins that `--live-tools` runs; HostError for one that is not there."""
    directory = nearest_strategy_plugin(Path.cwd()) if plugin is None else plugin
    found = [] if not example else [Example.find(examples_of(directory), example).directory]
    return [PluginDeclaration.read(folder) for folder in (*found, *tools)]


def tool_names(plugins: Sequence[PluginDeclaration]) -> list[str]:
    return [tool.identity.name for plugin in plugins for provider in plugin.tool_providers for tool in provider.tools]


def calls_that_ran(before: Origin, after: Origin, fork: Setup) -> tuple[str, ...]:
    """Those of live tools that were not among the calls of the rounds that stayed."""
    if not fork.live_tools:
        return ()
    try:
        plugins = live_plugins(fork.plugin, fork.example, fork.tools)
        past = Past.of(before.run, fork.at or 0, before.file)
    except HostError:  # the folder of the plugin is gone since then
        return ()
    live = {plugin.provider_id(provider) for plugin in plugins for provider in plugin.tool_providers}
    made = RecordedAnswers(
        [
            RecordedCall(tool=_tool(call), provider=_provider(call), arguments=_given(call))
            for call in tool_calls(before.run.calls)
            if call.began < past.until
        ],
        once=True,
    )
    return tuple(
        f"{_tool(call)} {json.dumps(_given(call), ensure_ascii=False, sort_keys=True)}"
        for call in tool_calls(after.run.calls)
        if _provider(call) in live
        and made.take(_provider(call), _tool(call), _given(call)) is None
        and raised(call) != NOT_RECORDED
    )


def _tool(call: Call) -> str:
    return str(call.request.get("tool"))


def _provider(call: Call) -> str:
    return str(call.request.get("provider"))


def _given(call: Call) -> JsonObject:
    given = call.request.get("tool_parameters")
    return given if isinstance(given, dict) else {}
