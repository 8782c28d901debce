"""What a plugin declares, and how well, in lines for a terminal: the commands `list` and `check`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from devhost.direct import Found, tools_of
from devhost.errors import HostError
from devhost.flow.checks import seen_in_the_editor, wrong_in_file
from devhost.flow.document import FlowFile
from devhost.models.scripted.script import Script
from devhost.options import DIRECTORY, PATH, argument, color_option, option, takes
from devhost.plugin.casting import range_text
from devhost.plugin.check import Checked, check_plugin
from devhost.plugin.credentials import environment_name
from devhost.plugin.declaration import Parameter, PluginDeclaration, nearest_plugin, nearest_strategy_plugin
from devhost.plugin.problems import RULES, Level
from devhost.scenario import SCENARIOS, SCRIPT, examples_of
from devhost.terminal.screen import open_console
from devhost.terminal.tables import preview, printable
from devhost.text import real_path
from devhost.tools.entity import refused_parameters
from devhost.words import UNWRAPPED, counted, examples

# What a static check found, in lines.

HEADINGS: Mapping[Level, str] = {"marketplace": "for the marketplace: ", "notice": "notice: ", "refused": ""}
STYLES: Mapping[Level, str] = {"marketplace": "yellow", "notice": "yellow", "refused": "bold"}


def check_lines(checked: Checked, *, marketplace: bool = False) -> Iterator[Text]:
    """With `marketplace`, what only the marketplace refuses counts as refused."""
    refused = checked.of("refused", *(("marketplace",) if marketplace else ()))
    for problem in checked.problems:
        where = f"{problem.file}: {problem.key}" if problem.key else problem.file
        level: Level = "refused" if problem in refused else problem.level
        style = STYLES[level]
        found = Text.assemble(HEADINGS[level], (printable(where), style), f": {printable(problem.sentence)}")
        yield found.append(f" ({problem.rule})", "dim")
    if checked.unchecked:
        kinds = ", ".join(checked.unchecked)
        yield Text(f"not checked: {kinds} (devhost has rules for the manifest, tools and strategies only)", "yellow")
    files = f"{checked.declarations} declarations and {len(checked.contents.paths)} files"
    if not refused:
        yield Text(f"{files}, as Dify takes them", "green")
    else:
        count = len(refused)
        yield Text(f"{counted(count, 'refusal')} in {files}", "red")


# Strategies, tools and their parameters, a line each.

INDENT = "    "


def tool_lines(tools: Iterable[Found]) -> Iterator[Text]:
    for found in tools:
        files = refused_parameters(found.tool)
        note = f"  (needs a file, so that no agent can have it: {', '.join(files)})" if files else ""
        name = f"{found.provider.identity.name}/{found.tool.identity.name}"
        yield line(name, found.tool.description.human.en_US, note)
        yield from parameter_lines(found.tool.parameters)


def model_lines(plugin: PluginDeclaration) -> Iterator[Text]:
    """The language models of a model plugin, and the credentials that it takes."""
    for provider in plugin.model_providers:
        yield line(f"provider {provider.provider}", provider.label.en_US)
        for field in provider.every_credential.values():
            needed = "required" if field.required and not field.default else f"default {preview(field.default)}"
            facts = [field.type, needed] if field.required or field.default else [field.type]
            variable = environment_name(provider.provider, field.variable)
            yield Text.assemble(INDENT, printable(field.variable), (f"  {', '.join(facts)}", "cyan"), f"  {variable}")
        for model in plugin.language_models(provider).values():
            window = model.model_properties.get("context_size")
            facts = [*model.features, *([f"{window:,} tokens"] if isinstance(window, int) else [])]
            yield line(f"model {model.model}", ", ".join(facts), "  deprecated" if model.deprecated else "")
        if provider.takes_any_model:
            yield Text("any other model, by its name", "dim")


def parameter_lines(parameters: Sequence[Parameter]) -> Iterator[Text]:
    width = max((len(parameter.name) for parameter in parameters), default=0)
    for parameter in parameters:
        about = parameter.human_description or parameter.label
        facts = ", ".join(_facts(parameter))
        yield Text.assemble(
            INDENT,
            printable(parameter.name).ljust(width),
            (f"  {printable(facts)}", "cyan"),
            (f"  {_plain(about.en_US)}", "dim"),
        )


def line(name: str, description: str, note: str = "") -> Text:
    return Text.assemble(
        (printable(name), "bold"),
        f"  {_plain(description)}",
        (printable(note), "yellow"),
    )


def _facts(parameter: Parameter) -> Iterator[str]:
    yield f"{parameter.type}[]" if parameter.multiple else parameter.type
    if parameter.required:
        yield "required"
    if parameter.form == "form":
        yield "set in the panel"
    if parameter.options:
        yield f"one of {' | '.join(option.value for option in parameter.options)}"
    if limits := range_text(parameter):
        yield limits
    if parameter.default not in (None, ""):
        yield f"default {preview(parameter.default)}"


def _plain(text: str) -> str:
    return " ".join(printable(text).split())


# What there is in and beside a plugin: strategies, tools, examples and their scenarios, a line each.


def inventory(plugin: PluginDeclaration, examples: Path | None) -> Iterator[Text]:
    """`examples` is None for a plugin that has no strategies, and so nothing to show one with."""
    yield line(f"plugin {plugin.manifest.author}/{plugin.manifest.name} {plugin.manifest.version}", "")
    for name, (_, strategy) in plugin.strategies.items():
        yield line(f"strategy {name}", strategy.description.en_US)
        yield from parameter_lines(strategy.parameters)
    yield from _tools(plugin)
    yield from model_lines(plugin)
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


# The commands `check` and `list`, which read a plugin's files and start nothing.


def plugin_argument() -> Any:  # noqa: ANN401 - a field
    return argument(metavar="[PLUGIN]", required=False, type=DIRECTORY)


def accept_option() -> Any:  # noqa: ANN401 - a field
    return option(
        "--accept",
        metavar="RULE:FILE",
        multiple=True,
        help="A finding that is meant, such as secret:README.md; it becomes a notice. Can be repeated.",
    )


@dataclass(frozen=True)
class CheckOptions:
    plugin: Path | None = argument(metavar="[PLUGIN | APP]", required=False, type=PATH)
    accept: tuple[str, ...] = accept_option()
    color: bool = color_option()


_LISTED = (f"  {name:<16} {rule}" for name, rule in RULES.items())
RULES_IN_WORDS = "\n".join((f"{UNWRAPPED}The rules of a plugin:", *_LISTED))


@click.command(
    epilog=f"{RULES_IN_WORDS}\n\n"
    + examples(
        "devhost check",
        "devhost check examples/helpdesk",
        "devhost check examples/workflows/approval.yml",
    )
)
@takes(CheckOptions)
def check(options: CheckOptions) -> int:
    """Check a plugin by the daemon's rules, or an app by the editor's.

    Nothing is started. PLUGIN is a folder; by default the nearest plugin in or above the current one. APP is a file
    that Dify exports; its Agent nodes are checked against the nearest plugin with strategies.
    """
    if options.plugin is not None and options.plugin.is_file():
        return _check_app(options.plugin, color=options.color)
    checked = check_plugin(real_path(options.plugin or nearest_plugin()), options.accept)
    console = open_console(stderr=False, color=options.color)
    for text in check_lines(checked):
        console.print(text, soft_wrap=True)
    return int(bool(checked.refusals))


def _check_app(path: Path, *, color: bool) -> int:
    file = FlowFile.read(path)
    has_agent = any(node.type == "agent" for node in file.nodes.values())
    declared = PluginDeclaration.read(nearest_strategy_plugin()) if has_agent else None
    found = wrong_in_file(file, declared) or seen_in_the_editor(file, declared)
    console = open_console(stderr=False, color=color)
    for sentence in found:
        console.print(Text(printable(sentence), "bold"), soft_wrap=True)
    if not found:
        console.print(Text(f"{file.kind} with {counted(len(file.nodes), 'node')}: Dify's editor publishes it", "green"))
    return int(bool(found))


@dataclass(frozen=True)
class ListOptions:
    plugin: Path | None = plugin_argument()
    color: bool = color_option()


@click.command("list", epilog=examples("devhost list", "devhost list examples/helpdesk"))
@takes(ListOptions)
def list_(options: ListOptions) -> int:
    """List a plugin's strategies, tools, parameters and examples.

    PLUGIN is a folder; by default the nearest plugin in or above the current one.
    """
    declaration = PluginDeclaration.read(options.plugin or nearest_plugin())
    examples = examples_of(declaration.directory) if declaration.strategies else None
    console = open_console(stderr=False, color=options.color)
    for text in inventory(declaration, examples):
        console.print(text, soft_wrap=True)
    return 0
