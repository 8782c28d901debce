"""What there is in and beside a plugin: strategies, tools, examples and their scenarios, a line each.

In: a plugin's directory, and the folder of its examples. Out: texts.
"""

from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from devhost.direct.asked import tools_of
from devhost.errors import HostError
from devhost.models.scripted.script import Script
from devhost.overview.listing import line, parameter_lines, tool_lines
from devhost.plugin.declaration import PluginDeclaration
from devhost.scenario.scenario import SCENARIOS, SCRIPT


def inventory(plugin: PluginDeclaration, examples: Path | None) -> Iterator[Text]:
    """`examples` is None for a plugin that has no strategies, and so nothing to show one with."""
    yield line(f"plugin {plugin.manifest.author}/{plugin.manifest.name} {plugin.manifest.version}", "")
    for name, (_, strategy) in plugin.strategies.items():
        yield line(f"strategy {name}", strategy.description.en_US)
        yield from parameter_lines(strategy.parameters)
    yield from _tools(plugin)
    for script in sorted(examples.glob(f"*/{SCRIPT}")) if examples is not None else ():
        yield from _example(script.parent)


def _tools(plugin: PluginDeclaration) -> Iterator[Text]:
    for text in tool_lines(tools_of([plugin])):
        yield text if text.plain.startswith(" ") else Text.assemble(("tool ", "bold"), text)


def _example(directory: Path) -> Iterator[Text]:
    yield line(f"example {directory.name}", _description(directory / SCRIPT))
    for scenario in sorted((directory / SCENARIOS).glob("*.yaml")):
        yield line(f"scenario {directory.name}/{scenario.stem}", _description(scenario))
    try:
        tools = list(_tools(PluginDeclaration.read(directory)))
    except HostError:  # an example need not be a tool plugin
        tools = []
    yield from (text for text in tools if not text.plain.startswith(" "))


def _description(script: Path) -> str:
    try:
        return Script.read(script).description
    except HostError as error:
        return f"cannot be read: {error}"
