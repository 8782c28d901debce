"""`/new`: a question to a strategy or a flow. The form is made and checked without starting anything."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from devhost.console import forms, setup
from devhost.console.conversation import said
from devhost.console.folder import refusal
from devhost.console.forms import Field, Options, RunForm
from devhost.console.found import Things, find, shortened
from devhost.console.setup import Setup, Values
from devhost.console.web import Console, console_of, posted
from devhost.errors import ConsoleError, HostError, ParameterError
from devhost.flow.script import FlowScript
from devhost.hosting import ScenarioOptions, strategy_plugin
from devhost.limits import HostLimits
from devhost.models.scripted.script import Script
from devhost.plugin.credentials import environment_name
from devhost.plugin.declaration import PluginDeclaration, nearest_strategy_plugin
from devhost.scenario import SCENARIOS, Scenario, examples_of, refuse_misfit, typed_settings
from devhost.scenario import SCRIPT as DEFAULT_SCRIPT

NO_WORDS = "a question needs words"


@dataclass(frozen=True, kw_only=True)
class NewRun(RunForm):
    plugin: Path | None = None
    """None if it cannot be read."""
    plugins: Sequence[Path] = ()
    """Others to choose from."""
    strategies: Options = ()
    """Name and label."""
    about_strategy: str = ""
    groups: Sequence[tuple[str, Options]] = ()
    """What can be asked, in groups with a name."""
    description: str = ""
    tools: Sequence[str] = ()
    """Names of those that are offered."""
    tool_plugins: Sequence[Path] = ()
    credentials: Sequence[tuple[str, bool, bool]] = ()
    """What tools take from the environment: the variable, whether it is required, and whether it is set."""
    is_flow: bool = False

    @property
    def knows_source(self) -> bool:
        return any(value == self.values["source"] for _, choices in self.groups for value, _ in choices)


def planned(values: Values, default: Path | None, environment: Mapping[str, str], runs: Path = Path()) -> NewRun:
    """`default`: the plugin if none is chosen; None for the nearest one. `runs`: the folder of runs."""
    things, declaration, wrong = find(default, runs), None, dict[str, str]()
    try:
        declaration = _read_plugin(values, default)
    except (HostError, OSError, ValueError) as error:
        wrong = {"plugin": str(error)}
    groups = list(_choices(things, declaration))
    values = _completed(values, declaration, groups)
    form = NewRun(
        values=values,
        plugin=None if declaration is None else declaration.directory,
        plugins=things.of("strategy plugin"),
        groups=groups,
        tool_plugins=[*dict.fromkeys((*things.of("tool plugin"), *setup.paths_in(values, "tools")))],
        is_flow=values["source"].startswith(setup.FLOW),
    )
    if form.is_flow:
        form, mistakes = _flow(form, environment)
    elif declaration is None:
        return replace(form, mistakes=wrong)
    else:
        form, mistakes = _strategy(form, declaration, environment)
    if values.get("real") == "yes":
        mistakes |= dict(forms.wrong_model(values, environment))
    if form.setup.converses and not form.setup.question:
        mistakes = {setup.TYPED + setup.QUESTION: NO_WORDS, **mistakes}
    return form.judged(mistakes, Path)


def _read_plugin(values: Values, default: Path | None) -> PluginDeclaration:
    folder = setup.path_in(values, "plugin") or default or nearest_strategy_plugin()
    if why := refusal(folder):
        raise ParameterError(why)
    return strategy_plugin(folder)


def _choices(things: Things, declaration: PluginDeclaration | None) -> Iterator[tuple[str, Options]]:
    """The folder's own scenarios and flows, then the examples: one's own script has its name."""
    examples = None if declaration is None else shortened(examples_of(declaration.directory))
    own = [path for path in things.of("script") if examples is None or not path.is_relative_to(examples)]
    yield "Scenarios of this folder", [(f"{setup.SCRIPT}{path}", str(path.with_suffix(""))) for path in own]
    for folder in [] if examples is None else sorted(file.parent for file in examples.glob(f"*/{DEFAULT_SCRIPT}")):
        others = sorted((folder / SCENARIOS).glob("*.yaml"))
        yield (
            folder.name,
            [
                (f"{setup.EXAMPLE}{folder.name}", folder.name),
                *((f"{setup.EXAMPLE}{folder.name}/{file.stem}", f"{folder.name} / {file.stem}") for file in others),
            ],
        )
    for label, kind in (("Flows, each with a script", "flow script"), ("Flows without a script", "flow")):
        yield label, [(f"{setup.FLOW}{path}", str(path.with_suffix(""))) for path in things.of(kind)]  # type: ignore[arg-type]


def _completed(values: Values, declaration: PluginDeclaration | None, groups: Sequence[tuple[str, Options]]) -> Values:
    """What is not chosen, or is not among what this plugin has, gets its default."""
    known = [value for _, group in groups for value, _ in group]
    source, strategy = values.get("source", ""), values.get("strategy", "")
    if source not in {*known, setup.NO_SCRIPT} and not source.startswith((setup.SCRIPT, setup.FLOW)):
        source = next(iter(known), setup.NO_SCRIPT)
    if declaration is not None and strategy not in declaration.strategies:
        strategy = next(iter(declaration.strategies))
    tools = "\n".join(str(shortened(path)) for path in setup.paths_in(values, "tools"))
    return {**values, "source": source, "strategy": strategy, "tools": tools}


KEPT = ("source", "strategy", "tools", "files", "real", "model", "api", "completion", "http", "code", "plugin")


def _setup(form: NewRun, question: Field, **others: str) -> Setup:
    """Only what differs from the scenario."""
    values = {name: form.values[name] for name in KEPT if form.values.get(name)}
    asked = {**others, setup.TYPED + setup.QUESTION: question.text.strip()}
    return Setup(kind="flow" if form.is_flow else "chat", values={**values, **asked, **form.changed})


# A strategy with a scenario: an example's, or one of the folder.


def _strategy(
    form: NewRun, declaration: PluginDeclaration, environment: Mapping[str, str]
) -> tuple[NewRun, dict[str, str]]:
    values, plugin = form.values, declaration.directory
    options = replace(setup.scenario_options(values), parameters=(), plugin=plugin)
    script, scenario, mistakes = _read(values, options, environment)
    _, strategy = declaration.strategies[values["strategy"]]
    question = forms.question_of("" if script is None else script.query, values)
    form = replace(
        form,
        fields=forms.fields_of(strategy, {} if script is None else script.params, values),
        question=question,
        strategies=[(name, each.identity.label.en_US) for name, (_, each) in declaration.strategies.items()],
        about_strategy=strategy.description.en_US,
        description="" if script is None else script.description,
        tools=_tools(scenario),
        credentials=tuple(_credentials(options, environment)),
    )
    form = replace(form, setup=_setup(form, question, plugin=str(plugin)))
    is_real = values.get("real") == "yes"
    if script is None and not mistakes and not is_real:
        mistakes["source"] = "without a script only a real model can answer: choose a scenario, or a real model"
    if scenario is not None:
        wrong = forms.wrong_texts(form.fields)
        if not wrong:
            _, wrong = forms.tried(lambda: _check(scenario, form, is_real=is_real), {"script": "source"})
        mistakes |= wrong
    return form, mistakes


def _read(
    values: Values, options: ScenarioOptions, environment: Mapping[str, str]
) -> tuple[Script | None, Scenario | None, dict[str, str]]:
    """The script, which may be right when the tools are wrong; the scenario without what the form sets; mistakes."""
    file, places = setup.source_file(values), {"script": "source", "": "source"}
    refused = forms.wrong_paths(values, "tools", "files")
    if file is not None and (why := refusal(file)):
        return None, None, {"source": why}
    script, wrong = forms.tried(lambda: options.read_script(options.strategy), places)
    if refused or wrong:
        return script, None, refused or wrong
    copy = dict(environment)  # because reading takes the credentials out of it
    scenario, wrong = forms.tried(lambda: options.read(limits=HostLimits(), environment=copy), places)
    return script, scenario, wrong


def _check(scenario: Scenario, form: NewRun, *, is_real: bool) -> None:
    given = replace(scenario, given=typed_settings(scenario.strategy, form.settings))
    given.check(form.setup.question or "?")
    if not is_real:
        refuse_misfit(given)


def _tools(scenario: Scenario | None) -> list[str]:
    if scenario is None:
        return []
    offered = [tool.declared.identity.name for setup in scenario.tools for tool in setup.tools]
    return [*offered, *scenario.recorded_names]


def _credentials(options: ScenarioOptions, environment: Mapping[str, str]) -> Iterator[tuple[str, bool, bool]]:
    """Of tools that cannot be read, nothing."""
    example = () if options.example is None else (examples_of(options.folder) / options.example,)
    for folder in (*example, *options.tools):
        declared, _ = forms.tried(lambda folder=folder: PluginDeclaration.read(folder), {})  # type: ignore[misc]
        for provider in () if declared is None else declared.tool_providers:
            for key, credential in provider.credentials.items():
                variable = environment_name(provider.identity.name, key)
                yield variable, credential.required, bool(environment.get(variable))


# A chatflow or a workflow.


def _flow(form: NewRun, environment: Mapping[str, str]) -> tuple[NewRun, dict[str, str]]:
    values, places = form.values, {"script": "source", "": "source", "inputs": "source"}
    file = setup.source_file(values) or Path()
    wrong = {"source": why} if (why := refusal(file)) else forms.wrong_paths(values, "tools")
    plugin = {} if form.plugin is None else {"plugin": str(form.plugin)}
    options = replace(setup.flow_options({**values, **plugin}), inputs=())
    script, mistakes = (None, wrong) if wrong else forms.tried(options.read_script, places)
    flow, unread = (None, mistakes) if script is None else forms.tried(options.read_file, places)
    script = script or FlowScript()
    question = forms.question_of(script.query, values)
    form = replace(
        form,
        fields=() if flow is None else forms.inputs_of(flow, script.inputs, values),
        question=question if flow is None or flow.is_chatflow else None,
        description=script.description,
    )
    play = {} if flow is None or flow.is_chatflow else {"play": "run"}
    form = replace(form, setup=_setup(form, question, **play, **plugin))
    if flow is None:
        return form, unread
    asked, models = replace(options, inputs=form.settings), setup.model_options(values)
    _, wrong = forms.tried(lambda: asked.read(dict(environment), HostLimits(), models), places)
    return form, {name or "source": sentence for name, sentence in wrong.items()}


# The pages.


def form(request: Request) -> Response:
    """`from`: the name of a run whose setup fills the form; else the address may choose what the form does."""
    console, name = console_of(request), request.query_params.get("from")
    values = forms.read_values(request.query_params.items()) if name is None else _again(console, name)
    plan = planned(values, console.plugin, os.environ, console.folder.path)
    return console.page("new_run.html.j2", form=plan, asked="")


def _again(console: Console, name: str) -> Values:
    console.folder.trace(name)
    setup = console.folder.setup(name)
    if setup is None:
        raise ConsoleError(f"how {name} was started is not known: it was not started from a form")
    return setup.values


@posted
def submit(request: Request, given: Mapping[str, str]) -> Response:
    """`do`: "start"; "load" and "reset NAME" leave all that was not chosen unmarked."""
    console = console_of(request)
    plan = planned(forms.read_values(given.items()), console.plugin, os.environ, console.folder.path)
    first = [said(plan.setup.question)] if plan.setup.converses else []
    do = given.get("do", "load")

    def start() -> Response:
        return RedirectResponse(f"/runs/{console.start(plan.setup, *first)}", 303)

    return forms.answered(console, "new_run.html.j2", plan, do if do == "start" else "", start)


ROUTES = (Route("/new", form), Route("/new", submit, methods=["POST"]))
