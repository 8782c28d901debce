"""What the form's choices lead to: a plugin, its strategies, the scenarios that it can play.

In: choices, and a copy of the environment. Out: values, or sentences by the field in which the mistake is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from devhost.cli.options.scenario_options import ScenarioOptions
from devhost.console.forms.choices import EXAMPLE, NO_SCRIPT, SCRIPT, Choices
from devhost.console.runs.typed import refusal, typed_path
from devhost.errors import HostError, ParameterError
from devhost.limits import HostLimits
from devhost.models.scripted.script import Script
from devhost.plugin.credentials import environment_name
from devhost.plugin.declaration import PluginDeclaration
from devhost.plugin.nearest import nearest_strategy_plugin
from devhost.scenario.scenario import SCENARIOS, Example, Scenario, examples_of
from devhost.scenario.scenario import SCRIPT as DEFAULT_SCRIPT

DEMO = f"{EXAMPLE}helpdesk"
"""The example of `make demo` and of docs/."""

type Groups = Sequence[tuple[str, Sequence[tuple[str, str]]]]
"""Of a list to choose from: the group's name, then value and label of each."""


def read_plugin(typed: str, default: Path | None) -> PluginDeclaration:
    """HostError for one that cannot be read, or that has no strategy."""
    folder = typed_path(typed) if typed else default or nearest_strategy_plugin(Path.cwd())
    if why := refusal(folder):
        raise ParameterError(why)
    declaration = PluginDeclaration.read(folder)
    if not declaration.strategies:
        raise ParameterError(f"{folder} has no agent strategy")
    return declaration


def scenarios_of(plugin: Path) -> Groups:
    """An example's own script has its name; its other scenarios stand under it."""
    folders = sorted(file.parent for file in examples_of(plugin).glob(f"*/{DEFAULT_SCRIPT}"))
    return [(folder.name, list(_scenarios(folder))) for folder in folders]


def _scenarios(example: Path) -> Iterator[tuple[str, str]]:
    yield f"{EXAMPLE}{example.name}", example.name
    for file in sorted((example / SCENARIOS).glob("*.yaml")):
        yield f"{EXAMPLE}{example.name}/{file.stem}", f"{example.name} / {file.stem}"


@dataclass(frozen=True)
class Read:
    """As far as it could be read."""

    scenario: Scenario | None
    """Without what the form sets; None if there is a mistake in what it is made of."""
    script: Script | None
    mistakes: Mapping[str, str]


def read_scenario(choices: Choices, plugin: Path, environment: Mapping[str, str]) -> Read:
    options = _options(choices, plugin)
    if refused := _refused(options):
        return Read(None, None if "script" in refused else _script_alone(options), refused)
    try:
        scenario = _read(options, environment)
    except (HostError, OSError, ValueError) as error:
        place, less = _culprit(options, environment)
        if place == "source" and choices.source == SCRIPT:
            place = "script"
        return Read(less, less.script if less else _script_alone(options), {place: str(error)})
    return Read(scenario, scenario.script, {})


def _options(choices: Choices, plugin: Path) -> ScenarioOptions:
    example, scenario = choices.example
    return ScenarioOptions(
        example,
        scenario,
        typed_path(choices.script) if choices.source == SCRIPT else None,
        tuple(map(typed_path, choices.tools)),
        credentials=(),
        settings=(),
        files=tuple(map(typed_path, choices.files)),
        strategy=choices.strategy,
        parameters=(),
        variables=(),
        plugin=plugin,
        examples=None,
    )


def _refused(options: ScenarioOptions) -> dict[str, str]:
    """By the field in which the paths stand."""
    paths = {
        "script": () if options.script is None else (options.script,),
        "tools": options.tools,
        "files": options.files,
    }
    return {field: why for field, typed in paths.items() for path in typed if (why := refusal(path))}


def _read(options: ScenarioOptions, environment: Mapping[str, str]) -> Scenario:
    """From a copy, because reading takes the credentials out of it, and the child needs them."""
    return options.read(raw=False, limits=HostLimits(), environment=dict(environment))


def _culprit(options: ScenarioOptions, environment: Mapping[str, str]) -> tuple[str, Scenario | None]:
    """The field without which the scenario can be read, and that scenario."""
    without_files = replace(options, files=())
    for place, less in (("files", without_files), ("tools", replace(without_files, tools=()))):
        try:
            return place, _read(less, environment)
        except (HostError, OSError, ValueError):
            continue
    return "source", None


def _script_alone(options: ScenarioOptions) -> Script | None:
    """The tools may be what cannot be read, such as those whose credentials are missing."""
    try:
        if options.script is not None:
            return Script.read(options.script, options.strategy)
        if options.example is None or options.plugin is None:
            return None
        found = Example.find(examples_of(options.plugin), options.example, options.scenario)
        return Script.read(found.file, options.strategy)
    except HostError:
        return None


@dataclass(frozen=True)
class Credential:
    variable: str
    required: bool
    is_set: bool


def credentials_of(choices: Choices, plugin: Path, environment: Mapping[str, str]) -> Iterator[Credential]:
    """What the tools take from the environment; of tools that cannot be read, nothing."""
    example, _ = choices.example
    folders = [] if example is None else [examples_of(plugin) / example]
    for folder in (*folders, *map(typed_path, choices.tools)):
        try:
            declaration = PluginDeclaration.read(folder)
        except (HostError, OSError, ValueError):
            continue
        for provider in declaration.tool_providers:
            for key, field in provider.credentials_for_provider.items():
                variable = environment_name(provider.identity.name, key)
                yield Credential(variable, field.required, bool(environment.get(variable)))


def default_source(groups: Groups) -> str:
    """The demo's example if the plugin has it, else the first one."""
    known = [value for _, group in groups for value, _ in group]
    return DEMO if DEMO in known else next(iter(known), NO_SCRIPT)
