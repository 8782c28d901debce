"""The commands `list` and `check`: lines for a terminal about what a plugin declares and which rules it violates."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from devhost.errors import HostError, OtherAppError, ParameterError
from devhost.flow.checks import judged, judged_by_engine
from devhost.flow.document import FlowFile
from devhost.flow.judgement import FlowFinding, Judge
from devhost.options import DIRECTORY, PLUGIN_PATH, Declared, argument, color_option, command, option
from devhost.plugin.check import CheckedPlugin, check_plugin
from devhost.plugin.credentials import CredentialFields, environment_name
from devhost.plugin.declaration import (
    Parameter,
    PluginDeclaration,
    ProvidedTool,
    nearest_plugin,
    nearest_strategy_plugin,
)
from devhost.plugin.problems import RULES, Level
from devhost.scenario import SCENARIOS, SCRIPT, examples_of
from devhost.script import Script
from devhost.terminal.screen import open_console
from devhost.terminal.tables import printable
from devhost.text import real_path
from devhost.tools.entity import refused_parameters
from devhost.words import UNWRAPPED, counted, preview

# The findings of a static check, as lines.

HEADINGS: Mapping[Level, str] = {"marketplace": "for the marketplace: ", "notice": "notice: ", "refused": ""}


def check_lines(checked: CheckedPlugin) -> Iterator[Text]:
    yield line(f"plugin {checked.contents.directory}")
    for problem in checked.problems:
        where = problem.file
        if problem.key:
            where = f"{problem.file}: {problem.key}"
        style = "yellow"
        if problem.level == "refused":
            style = "bold"
        found = Text.assemble(HEADINGS[problem.level], (printable(where), style), f": {printable(problem.sentence)}")
        yield found.append(f" ({problem.rule})", "dim")
    if checked.unchecked:
        kinds = ", ".join(checked.unchecked)
        yield Text(f"not checked: {kinds} (devhost has rules for the manifest, tools and strategies only)", "yellow")
    files = f"{checked.declarations} declarations and {len(checked.contents.paths)} files"
    if checked.refusals:
        yield Text(f"{counted(len(checked.refusals), 'refusal')} in {files}", "red")
    else:
        yield Text(f"{files}, as Dify takes them", "green")


# The contents of a plugin, as lines: strategies, tools and models with their parameters, and examples.

INDENT = "    "


def line(name: str, facts: Iterable[str] = (), description: str = "") -> Text:
    style = "bold"
    if name.startswith(INDENT):
        style = ""
    parts = [(name, style), (", ".join(facts), "cyan"), (" ".join(description.split()), "dim")]
    return Text("  ").join(Text(printable(words), look) for words, look in parts if words)


def tool_lines(tools: Sequence[ProvidedTool]) -> Iterator[Text]:
    """Yield lines about the tools, and about the credentials that their providers take."""
    for provider in {found.provider_id: found.provider for found in tools}.values():
        yield from credential_lines(provider.identity.name, provider.identity.label.en_US, provider.credentials)
    for found in tools:
        files = refused_parameters(found.declared.parameters)
        note = []
        if files:
            note = [f"Dify does not offer it to agents, because it needs a file: {', '.join(files)}"]
        yield line(f"tool {found.names[1]}", note, found.declared.description.human.en_US)
        yield from parameter_lines(found.declared.parameters)


def model_lines(plugin: PluginDeclaration) -> Iterator[Text]:
    """Yield lines about the language models of a model plugin, and about the credentials that it takes."""
    for provider in plugin.model_providers:
        yield from credential_lines(provider.provider, provider.label.en_US, provider.every_credential)
        for model in plugin.language_models(provider).values():
            window = model.model_properties.get("context_size")
            facts = [*model.features, *([f"{window:,} tokens"] if isinstance(window, int) else [])]
            yield line(f"model {model.model}", facts, "deprecated" if model.deprecated else "")
        if provider.takes_any_model:
            yield line("any other model, by its name")


def credential_lines(provider: str, label: str, fields: CredentialFields) -> Iterator[Text]:
    """Yield a line for each credential, with the environment variable that is read for it."""
    if fields:
        yield line(f"provider {provider}", description=label)
    for key, field in fields.items():
        facts = [field.type, *(["required"] if field.required else []), *_default(field.default)]
        yield line(f"{INDENT}{key}", facts, environment_name(provider, key))


def parameter_lines(parameters: Sequence[Parameter]) -> Iterator[Text]:
    width = max((len(parameter.name) for parameter in parameters), default=0)
    for each in parameters:
        facts = [
            f"{each.type}[]" if each.multiple else each.type,
            *(["required"] if each.required else []),
            *(["set in the panel"] if each.form == "form" else []),
            *([f"one of {' | '.join(option.value for option in each.options)}"] if each.options else []),
            *([f"at least {each.min}"] if each.min is not None else []),
            *([f"at most {each.max}"] if each.max is not None else []),
            *_default(each.default),
        ]
        yield line(f"{INDENT}{each.name.ljust(width)}", facts, (each.human_description or each.label).en_US)


def _default(value: object) -> list[str]:
    if value is None or value == "":
        return []
    return [f"default {preview(value)}"]


def inventory(plugin: PluginDeclaration, examples: Path | None) -> Iterator[Text]:
    """Yield lines about the whole plugin. `examples` is None for a plugin without strategies, which has no examples."""
    manifest = plugin.manifest
    yield line(f"plugin {manifest.author}/{manifest.name} {manifest.version}", description=str(plugin.directory))
    for name, (_, strategy) in plugin.strategies.items():
        yield line(f"strategy {name}", description=strategy.description.en_US)
        yield from parameter_lines(strategy.parameters)
    yield from tool_lines(plugin.tools)
    yield from model_lines(plugin)
    for script in sorted(examples.glob(f"*/{SCRIPT}")) if examples is not None else ():
        folder = script.parent
        yield line(f"example {folder.name}", description=_description(script))
        for scenario in sorted((folder / SCENARIOS).glob("*.yaml")):
            yield line(f"scenario {folder.name}/{scenario.stem}", description=_description(scenario))


def _description(script: Path) -> str:
    try:
        return Script.read(script).description
    except HostError as error:
        return f"cannot be read: {error}"


# The commands `check` and `list`, which read a plugin's files and start nothing.


def accept_option() -> Declared:
    return option(
        "--accept RULE:FILE...", "An intended finding, such as secret:README.md; it becomes a notice. Can be repeated."
    )


@dataclass(frozen=True)
class CheckOptions:
    plugin: Path | None = argument("[PLUGIN | APP]", PLUGIN_PATH)
    of_app: tuple[Path, ...] = option(
        "--plugin DIR...", "Of an app's Agent nodes, a strategy plugin; else the nearest. Can be repeated."
    )
    accept: tuple[str, ...] = accept_option()
    color: bool = color_option()


_LISTED = (f"  {name:<16} {rule}" for name, rule in RULES.items())
RULES_IN_WORDS = "\n".join((f"{UNWRAPPED}The rules of a plugin:", *_LISTED))


@command(CheckOptions, epilog=f"{RULES_IN_WORDS}\n\n")
def check(options: CheckOptions) -> int:
    """Check a plugin by the daemon's rules, or an app by the editor's.

    Nothing is started. PLUGIN is a folder; by default the nearest plugin in or above the current one. APP is a file
    that Dify exports; its Agent nodes are checked against a plugin with strategies.

    For example:
      devhost check
      devhost check examples/helpdesk
      devhost check examples/workflows/approval.yml
    """
    if options.plugin is not None and options.plugin.is_file():
        return _check_app(options.plugin, options.of_app, color=options.color)
    folder = options.plugin or next(iter(options.of_app), None) or nearest_plugin()
    checked = check_plugin(real_path(folder), options.accept)
    console = open_console(stderr=False, color=options.color)
    for text in check_lines(checked):
        console.print(text, soft_wrap=True)
    return int(bool(checked.refusals))


OBJECTIONS: Mapping[Judge, str] = {
    "editor": "Dify's editor does not publish this app",
    "engine": "Dify's engine does not play it",
    "devhost": "devhost does not play it",
    "given": "devhost flow has to be given",
    "notice": "Notices",
}


def _check_app(path: Path, given: Sequence[Path], *, color: bool) -> int:
    """Check an app. The exit code is 1 if Dify itself refuses the app."""
    console = open_console(stderr=False, color=color)
    try:
        file = FlowFile.read(path)
    except OtherAppError as error:
        console.print(Text(f"{OBJECTIONS['devhost']}:\n  {printable(str(error))}", "yellow"), soft_wrap=True)
        return 0
    found = _judgements(file, given)
    for judge, heading in OBJECTIONS.items():
        sentences = [each.sentence for each in found if each.by == judge]
        if sentences:
            console.print(Text(f"{heading}:", STYLES.get(judge, "yellow")), soft_wrap=True)
        for sentence in sentences:
            console.print(Text(f"  {printable(sentence)}"), soft_wrap=True)
    refused = any(each.by in REFUSE for each in found)
    if not refused and not any(each.by == "devhost" for each in found):
        what = f"{file.kind} with {counted(len(file.nodes), 'node')}"
        console.print(Text(f"{what}: nothing was found that Dify's editor or engine refuses", "green"))
    return int(refused)


REFUSE = frozenset({"editor", "engine"})
STYLES = dict.fromkeys(REFUSE, "bold")


def _judgements(file: FlowFile, given: Sequence[Path]) -> list[FlowFinding]:
    found = judged(file, [PluginDeclaration.read(plugin) for plugin in given or _nearest(file)])
    return [*found, *judged_by_engine(file, found)]


def _nearest(file: FlowFile) -> list[Path]:
    """Return the nearest strategy plugin. Without one, the app's use of strategies is not checked."""
    if not file.has_agents:
        return []
    try:
        return [nearest_strategy_plugin()]
    except ParameterError:
        return []


@dataclass(frozen=True)
class ListOptions:
    plugin: Path | None = argument("[PLUGIN]", DIRECTORY)
    color: bool = color_option()


@command(ListOptions, name="list")
def list_(options: ListOptions) -> int:
    """List a plugin's strategies, tools, parameters and examples.

    PLUGIN is a folder; by default the nearest plugin in or above the current one.

    For example:
      devhost list
      devhost list examples/helpdesk
    """
    declaration = PluginDeclaration.read(options.plugin or nearest_plugin())
    examples = None
    if declaration.strategies:
        examples = examples_of(declaration.directory)
    console = open_console(stderr=False, color=options.color)
    for text in inventory(declaration, examples):
        console.print(text, soft_wrap=True)
    return 0
