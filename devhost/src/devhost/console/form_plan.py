"""The form of a new run with everything that it shows, and what is wrong with it; nothing is started."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from devhost.console.forms import (
    NO_SCRIPT,
    NUL,
    QUESTION,
    SCRIPT,
    TYPED,
    Choices,
    Credential,
    Field,
    Groups,
    Read,
    can_be_real,
    credentials_of,
    default_source,
    fields_of,
    is_schema,
    read_plugin,
    read_scenario,
    real_model,
    scenarios_of,
    wrong_model,
)
from devhost.console.runs import Model, Setup, typed_path
from devhost.errors import HostError
from devhost.plugin.declaration import PluginDeclaration
from devhost.scenario import CHANGE_THE_TURNS, Scenario, refuse_misfit, typed_settings
from devhost.text import typed_json, validator_of


def mistakes_of(scenario: Scenario, fields: Sequence[Field], question: str, *, scripted: bool) -> dict[str, str]:
    """By the name of the field in the form; under an empty name, what belongs to none."""
    changed = [field for field in fields if field.changed]
    found = {f"{TYPED}{field.name}": sentence for field in changed if (sentence := _in_itself(field))}
    whole = _refused(scenario, changed, question)
    if whole and not found:
        refused = {field.name: _refused(scenario, [field], question) for field in changed}
        own = {f"{TYPED}{name}": sentence for name, sentence in refused.items() if sentence}
        found = own if own and not _refused(scenario, [], question) else {"": whole}
    if not found and scripted:
        return _misfit(scenario, changed)
    return found


def _in_itself(field: Field) -> str:
    if "\0" in field.text:
        return NUL
    if is_schema(field.name) and field.text.strip():
        return _wrong_schema(field.text)
    if field.bounds and field.text.strip():
        try:
            number = float(field.text)
        except ValueError:
            return ""  # a variable, or what the check of the type refuses
        too_low = field.low is not None and number < field.low
        too_high = field.high is not None and number > field.high
        return f"must be {field.bounds}" if too_low or too_high else ""
    return ""


def _wrong_schema(text: str) -> str:
    try:
        schema = typed_json(text)
    except ValueError as error:
        return f"not JSON: {error}"
    if isinstance(schema, dict) and set(schema) == {"variable"}:
        return ""
    if not isinstance(schema, dict):
        return "a JSON Schema must be an object"
    try:
        validator_of(schema)
    except ValueError as error:
        return f"not a JSON Schema: {error}"
    return ""


def _refused(scenario: Scenario, changed: Sequence[Field], question: str) -> str:
    try:
        _with(scenario, changed).check(question)
    except HostError as error:
        return str(error)
    return ""


def _misfit(scenario: Scenario, changed: Sequence[Field]) -> dict[str, str]:
    try:
        refuse_misfit(_with(scenario, changed))
    except HostError as error:
        names = [field.name for field in changed if field.name in CHANGE_THE_TURNS]
        return {f"{TYPED}{names[0]}" if names else "source": str(error)}
    return {}


def _with(scenario: Scenario, changed: Sequence[Field]) -> Scenario:
    return replace(
        scenario, given=typed_settings(scenario.strategy, [f"{field.name}={field.text}" for field in changed])
    )


# The form of a new run with all that it shows.
#
# Nothing is started, and nothing is written.


@dataclass(frozen=True)
class Plan:
    choices: Choices
    plugin: Path | None = None
    """None if it cannot be read."""
    strategies: Sequence[tuple[str, str]] = ()
    """Name and label."""
    about_strategy: str = ""
    groups: Groups = ()
    description: str = ""
    question: Field | None = None
    fields: Sequence[Field] = ()
    tools: Sequence[str] = ()
    credentials: Sequence[Credential] = ()
    can_be_real: bool = False
    mistakes: Mapping[str, str] = field(default_factory=dict)

    @property
    def general(self) -> str:
        return self.mistakes.get("", "")

    @property
    def setup(self) -> Setup:
        """Only what differs from the scenario."""
        chosen = self.choices
        example, scenario = chosen.example
        return Setup(
            question="" if self.question is None else self.question.text.strip(),
            plugin=self.plugin,
            example=example,
            scenario=scenario,
            script=typed_path(chosen.script) if chosen.source == SCRIPT else None,
            tools=tuple(map(typed_path, chosen.tools)),
            strategy=chosen.strategy,
            model=real_model(chosen) if chosen.real else Model(),
            parameters={each.name: each.text for each in self.fields if each.changed},
            files=tuple(map(typed_path, chosen.files)),
        )


def planned(choices: Choices, default: Path | None, environment: Mapping[str, str]) -> Plan:
    """`default`: the plugin if none is typed; None for the nearest one."""
    is_real = can_be_real(environment)
    try:
        declaration = read_plugin(choices.plugin, default)
    except (HostError, OSError, ValueError) as error:
        return Plan(choices, can_be_real=is_real, mistakes={"plugin": str(error)})
    groups = scenarios_of(declaration.directory)
    choices = _completed(choices, declaration, groups)
    read = read_scenario(choices, declaration.directory, environment)
    _, strategy = declaration.strategies[choices.strategy]
    params = {} if read.script is None else read.script.params
    plan = Plan(
        choices,
        plugin=declaration.directory,
        strategies=[(name, each.identity.label.en_US) for name, (_, each) in declaration.strategies.items()],
        about_strategy=strategy.description.en_US,
        groups=groups,
        description="" if read.script is None else read.script.description,
        question=_question("" if read.script is None else read.script.query, choices),
        fields=fields_of(strategy, params, choices),
        tools=_tools(read),
        credentials=tuple(credentials_of(choices, declaration.directory, environment)),
        can_be_real=is_real,
    )
    return _marked(plan, {**read.mistakes, **_checked(plan, read, environment)})


def _completed(choices: Choices, declaration: PluginDeclaration, groups: Groups) -> Choices:
    """What is not chosen, or is not among what this plugin has, gets its default."""
    known = {value for _, group in groups for value, _ in group} | {SCRIPT, NO_SCRIPT}
    return replace(
        choices,
        strategy=choices.strategy if choices.strategy in declaration.strategies else next(iter(declaration.strategies)),
        source=choices.source if choices.source in known else default_source(groups),
    )


def _question(query: str, choices: Choices) -> Field:
    typed = choices.changed(QUESTION)
    text = query if typed is None else typed
    return Field(QUESTION, "Question", "", "text", True, "", (), None, None, query, text)  # noqa: FBT003


def _tools(read: Read) -> list[str]:
    if read.scenario is None:
        return []
    offered = [tool.declared.identity.name for setup in read.scenario.tools for tool in setup.tools]
    return [*offered, *read.scenario.recorded_names]


def _checked(plan: Plan, read: Read, environment: Mapping[str, str]) -> dict[str, str]:
    chosen, found = plan.choices, dict[str, str]()
    if plan.question is None or not plan.question.text.strip():
        found[TYPED + QUESTION] = "a question needs words"
    if sentence := _wrong_model(chosen, read, environment):
        found["model" if chosen.real else "source"] = sentence
    if read.scenario is not None and not read.mistakes:
        question = "?" if TYPED + QUESTION in found or plan.question is None else plan.question.text
        found |= mistakes_of(read.scenario, plan.fields, question, scripted=not chosen.real)
    return found


def _wrong_model(chosen: Choices, read: Read, environment: Mapping[str, str]) -> str:
    if not chosen.real:
        missing = read.script is None and not read.mistakes
        return "without a script only a real model can answer: choose an example or a script" if missing else ""
    return wrong_model(chosen, environment)


def _marked(plan: Plan, mistakes: Mapping[str, str]) -> Plan:
    fields = [each.with_mistake(mistakes.get(TYPED + each.name, "")) for each in plan.fields]
    question = None if plan.question is None else plan.question.with_mistake(mistakes.get(TYPED + QUESTION, ""))
    return replace(plan, fields=fields, question=question, mistakes=mistakes)
