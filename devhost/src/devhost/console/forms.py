"""The form in which a person chooses what to run, made from the strategy's YAML."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Self

from devhost.cli.options.hosting_options import BASE_URL, KEY, ModelOptions
from devhost.cli.options.scenario_options import ScenarioOptions
from devhost.console.runs import Model, Setup, refusal, typed_path
from devhost.errors import HostError, ParameterError
from devhost.limits import HostLimits
from devhost.models.scripted.script import Script
from devhost.plugin.credentials import environment_name
from devhost.plugin.declaration import PluginDeclaration, Strategy
from devhost.plugin.keys import Parameter
from devhost.plugin.nearest import nearest_strategy_plugin
from devhost.scenario import PICKED, SCENARIOS, Example, Scenario, examples_of
from devhost.scenario import SCRIPT as DEFAULT_SCRIPT

# What a person has typed into the form of a new run.

EXAMPLE, SCRIPT, NO_SCRIPT = "example:", "script", "none"
"""Where the scenario comes from: `example:NAME` or `example:NAME/SCENARIO`, a script file, or nowhere."""
TYPED, WAS = "p.", "was."
"""Before the name of a parameter: its text, and the text that the scenario had when the form was made."""
QUESTION = "query"


RESET = "reset "
"""Before the name of a parameter, in the value of the button that resets it."""


@dataclass(frozen=True)
class Choices:
    plugin: str = ""
    strategy: str = ""
    source: str = ""
    script: str = ""
    tools: tuple[str, ...] = ()
    real: bool = False
    model: str = ""
    api: str = ""
    completion: tuple[str, ...] = ()
    """Lines: KEY=VALUE."""
    files: tuple[str, ...] = ()
    typed: Mapping[str, str] = field(default_factory=dict)
    """By parameter."""
    was: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        """Browsers send CR LF at the end of a line."""
        given = {name: text.replace("\r\n", "\n") for name, text in pairs}
        return cls(
            plugin=given.get("plugin", "").strip(),
            strategy=given.get("strategy", "").strip(),
            source=given.get("source", "").strip(),
            script=given.get("script", "").strip(),
            tools=_lines(given.get("tools", "")),
            model=given.get("model", "").strip(),
            api=given.get("api", "").strip(),
            completion=_lines(given.get("completion", "")),
            files=_lines(given.get("files", "")),
            real=given.get("real") == "yes",
            typed=_named(given, TYPED),
            was=_named(given, WAS),
        )

    @classmethod
    def of(cls, setup: Setup) -> Self:
        """Everything that it sets counts as typed."""
        return cls(
            plugin=_text(setup.plugin),
            strategy=setup.strategy or "",
            source=_source(setup),
            script=_text(setup.script),
            tools=tuple(map(str, setup.tools)),
            real=not setup.model.scripted,
            model=setup.model.name or "",
            api=setup.model.api or "",
            completion=tuple(f"{name}={text}" for name, text in setup.model.completion.items()),
            files=tuple(map(str, setup.files)),
            typed={**setup.parameters, QUESTION: setup.question},
        )

    def changed(self, name: str) -> str | None:
        """What was typed, if it is not what the form held."""
        text = self.typed.get(name)
        return None if text is None or text == self.was.get(name) else text

    @property
    def example(self) -> tuple[str | None, str | None]:
        """Its name, and that of its scenario."""
        if not self.source.startswith(EXAMPLE):
            return None, None
        name, _, scenario = self.source.removeprefix(EXAMPLE).partition("/")
        return name, scenario or None


def after_reset(given: Mapping[str, str]) -> Mapping[str, str]:
    """What a form holds, without what was typed into the field that its button `do` resets."""
    do = given.get("do", "")
    reset = f"{TYPED}{do.removeprefix(RESET)}" if do.startswith(RESET) else None
    return {name: text for name, text in given.items() if name != reset}


def _source(setup: Setup) -> str:
    if setup.example is not None:
        return f"{EXAMPLE}{setup.example}" + (f"/{setup.scenario}" if setup.scenario else "")
    return SCRIPT if setup.script is not None else NO_SCRIPT


def _text(path: Path | None) -> str:
    return "" if path is None else str(path)


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.split("\n") if line.strip())


def _named(given: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): text for name, text in given.items() if name.startswith(prefix)}


# One field of the form for each parameter that the strategy's YAML declares.

type Widget = Literal["text", "json", "number", "select", "shown"]
NOT_EDITED = PICKED | {"secret-input"}
"""Picked types, and secrets, which belong into no form."""


@dataclass(frozen=True)
class Field:
    name: str
    label: str
    help: str
    widget: Widget
    required: bool
    default: str
    """As text; empty without one."""
    options: tuple[tuple[str, str], ...]
    """Value and label."""
    low: float | None
    high: float | None
    base: str
    """What the scenario sets, as text; empty for nothing."""
    text: str
    secret: bool = False
    mistake: str = ""

    @property
    def changed(self) -> bool:
        return self.text != self.base

    @property
    def bounds(self) -> str:
        """In words; empty without any."""
        if self.low is not None and self.high is not None:
            return f"between {self.low:g} and {self.high:g}"
        if self.low is not None:
            return f"at least {self.low:g}"
        return "" if self.high is None else f"at most {self.high:g}"

    def with_mistake(self, sentence: str) -> "Field":
        return replace(self, mistake=sentence)


def fields_of(strategy: Strategy, set_by_scenario: Mapping[str, object], choices: Choices) -> tuple[Field, ...]:
    """Those of all parameters but the question; what was typed is kept where it fits."""
    return tuple(
        _field(parameter, set_by_scenario.get(parameter.name), choices.changed(parameter.name))
        for parameter in strategy.parameters
        if parameter.name != QUESTION
    )


def as_text(value: object) -> str:
    """As a person would type it: JSON for anything but a text."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, dict | list) else None)


def _field(parameter: Parameter, base: object, typed: str | None) -> Field:
    text = as_text(base)
    options = _options(parameter)
    shown = text if typed is None or (options and typed not in {"", *dict(options)}) else typed
    return Field(
        name=parameter.name,
        label=parameter.label.en_US,
        help=parameter.help.en_US if parameter.help else "",
        widget=_widget(parameter, (text, shown)),
        required=parameter.required,
        default=as_text(parameter.default),
        options=options,
        low=parameter.min,
        high=parameter.max,
        base=text,
        text=shown,
        secret=parameter.type == "secret-input",
    )


def _options(parameter: Parameter) -> tuple[tuple[str, str], ...]:
    if parameter.type == "boolean":
        return (("true", "true"), ("false", "false"))
    if parameter.type == "select" and not parameter.multiple:
        return tuple((option.value, option.label.en_US) for option in parameter.options)
    return ()


def _widget(parameter: Parameter, texts: tuple[str, ...]) -> Widget:
    """A scenario may set any parameter to a variable, which only a text can show."""
    if parameter.type in NOT_EDITED:
        return "shown"
    if parameter.type == "number":
        return "number" if all(map(_is_number, texts)) else "text"
    options = dict(_options(parameter))
    if options:
        return "select" if all(text in {"", *options} for text in texts) else "text"
    return "text" if parameter.type == "string" and not is_schema(parameter.name) else "json"


def is_schema(name: str) -> bool:
    return name.endswith("schema")


def _is_number(text: str) -> bool:
    try:
        return not text or float(text) == float(text)
    except ValueError:
        return False


# The model of a form: a scripted one, or one behind an API.

NUL = "a NUL character cannot be part of a command"


def can_be_real(environment: Mapping[str, str]) -> bool:
    return any(environment.get(name, "").strip() for name in (KEY, BASE_URL))


def real_model(chosen: Choices) -> Model:
    """ValueError for an API that does not exist."""
    pairs = (line.partition("=") for line in chosen.completion)
    return Model.model_validate(
        {
            "scripted": False,
            "api": chosen.api or None,
            "name": chosen.model or None,
            "completion": {name: text for name, _, text in pairs},
        }
    )


def wrong_model(chosen: Choices, environment: Mapping[str, str]) -> str:
    """Why the real model that was chosen cannot be asked; empty if it can."""
    if not can_be_real(environment):
        return f"a real model needs {KEY} or {BASE_URL} in the environment of devhost ui"
    if any("\0" in text for text in (chosen.model, *chosen.completion)):
        return NUL
    try:
        options = ModelOptions(real_model(chosen).api, chosen.model or None, chosen.completion)
        options.choose(None, "", environment)
    except (HostError, ValueError) as error:
        return str(error)
    return ""


# What the form's choices lead to: a plugin, its strategies, the scenarios that it can play.

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
    options = _options_of(choices, plugin)
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


def _options_of(choices: Choices, plugin: Path) -> ScenarioOptions:
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
            for key, credential in provider.credentials_for_provider.items():
                variable = environment_name(provider.identity.name, key)
                yield Credential(variable, credential.required, bool(environment.get(variable)))


def default_source(groups: Groups) -> str:
    """The demo's example if the plugin has it, else the first one."""
    known = [value for _, group in groups for value, _ in group]
    return DEMO if DEMO in known else next(iter(known), NO_SCRIPT)
