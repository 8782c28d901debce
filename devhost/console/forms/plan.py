"""The form of a new run with all that it shows.

In: choices, the console's plugin, the environment. Out: a `Plan`: fields, what can be chosen, mistakes by field; and
the `Setup` of a plan without mistakes. Nothing is started, and nothing is written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from devhost.console.forms.checks import mistakes_of
from devhost.console.forms.choices import NO_SCRIPT, QUESTION, SCRIPT, TYPED, Choices
from devhost.console.forms.fields import Field, fields_of
from devhost.console.forms.model import can_be_real, real_model, wrong_model
from devhost.console.forms.reading import (
    Credential,
    Groups,
    Read,
    credentials_of,
    default_source,
    read_plugin,
    read_scenario,
    scenarios_of,
)
from devhost.console.runs.setup import Model, Setup
from devhost.console.runs.typed import typed_path
from devhost.errors import HostError
from devhost.plugin.declaration import PluginDeclaration


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
