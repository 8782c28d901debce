"""`/new`: choose what to run, edit it, and start it. The form is made and checked without starting anything."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.status import HTTP_422_UNPROCESSABLE_CONTENT

from devhost.console.conversation import said
from devhost.console.folder import refusal
from devhost.console.forms import (
    Field,
    RunForm,
    can_be_real,
    fields_of,
    question_of,
    read_values,
    tried,
    wrong_model,
    wrong_paths,
    wrong_texts,
)
from devhost.console.setup import (
    EXAMPLE,
    NO_SCRIPT,
    QUESTION,
    SCRIPT,
    TYPED,
    Setup,
    Values,
    chat_arguments,
    path_in,
    scenario_options,
    typed,
)
from devhost.console.web import KEY, Console, console_of, posted
from devhost.errors import ConsoleError, HostError, ParameterError
from devhost.hosting import ScenarioOptions
from devhost.limits import HostLimits
from devhost.models.scripted.script import Script
from devhost.plugin.credentials import environment_name
from devhost.plugin.declaration import PluginDeclaration, nearest_strategy_plugin
from devhost.scenario import SCENARIOS, Scenario, examples_of, refuse_misfit, typed_settings
from devhost.scenario import SCRIPT as DEFAULT_SCRIPT

type Groups = Sequence[tuple[str, Sequence[tuple[str, str]]]]
"""Of a list to choose from: the group's name, then value and label of each."""


@dataclass(frozen=True)
class Credential:
    """What a tool takes from the environment."""

    variable: str
    required: bool
    is_set: bool


@dataclass(frozen=True)
class NewRun(RunForm):
    plugin: Path | None = None
    """None if it cannot be read."""
    strategies: Sequence[tuple[str, str]] = ()
    """Name and label."""
    about_strategy: str = ""
    groups: Groups = ()
    description: str = ""
    question: Field | None = None
    tools: Sequence[str] = ()
    credentials: Sequence[Credential] = ()


def planned(values: Values, default: Path | None, environment: Mapping[str, str]) -> NewRun:
    """`default`: the plugin if none is typed; None for the nearest one."""
    is_real = can_be_real(environment)
    try:
        declaration = _read_plugin(values, default)
    except (HostError, OSError, ValueError) as error:
        return NewRun(values, {"plugin": str(error)}, can_be_real=is_real)
    groups = _scenarios_of(declaration.directory)
    values = _completed(values, declaration, groups)
    script = path_in(values, "script") if values["source"] == SCRIPT else None
    options = replace(scenario_options(values), script=script, parameters=(), plugin=declaration.directory)
    read, scenario, mistakes = _read(values, options, environment)
    _, strategy = declaration.strategies[values["strategy"]]
    form = NewRun(
        values,
        fields=fields_of(strategy, {} if read is None else read.params, values),
        can_be_real=is_real,
        plugin=declaration.directory,
        strategies=[(name, each.identity.label.en_US) for name, (_, each) in declaration.strategies.items()],
        about_strategy=strategy.description.en_US,
        groups=groups,
        description="" if read is None else read.description,
        question=question_of("" if read is None else read.query, values),
        tools=_tools(scenario),
        credentials=tuple(_credentials(options, environment)),
    )
    form = replace(form, setup=_setup(form))
    return _marked(form, {**mistakes, **_mistakes(form, read, scenario, environment, has_others=bool(mistakes))})


def _read_plugin(values: Values, default: Path | None) -> PluginDeclaration:
    folder = path_in(values, "plugin") or default or nearest_strategy_plugin()
    if why := refusal(folder):
        raise ParameterError(why)
    declaration = PluginDeclaration.read(folder)
    if not declaration.strategies:
        raise ParameterError(f"{folder} has no agent strategy")
    return declaration


def _scenarios_of(plugin: Path) -> Groups:
    """An example's own script has its name; its other scenarios stand under it."""
    folders = sorted(file.parent for file in examples_of(plugin).glob(f"*/{DEFAULT_SCRIPT}"))
    return [(folder.name, list(_scenarios(folder))) for folder in folders]


def _scenarios(example: Path) -> Iterator[tuple[str, str]]:
    yield f"{EXAMPLE}{example.name}", example.name
    for file in sorted((example / SCENARIOS).glob("*.yaml")):
        yield f"{EXAMPLE}{example.name}/{file.stem}", f"{example.name} / {file.stem}"


def _completed(values: Values, declaration: PluginDeclaration, groups: Groups) -> Values:
    """What is not chosen, or is not among what this plugin has, gets its default."""
    known = [value for _, group in groups for value, _ in group]
    source, strategy = values.get("source", ""), values.get("strategy", "")
    if source not in {*known, SCRIPT, NO_SCRIPT}:
        source = next(iter(known), NO_SCRIPT)
    if strategy not in declaration.strategies:
        strategy = next(iter(declaration.strategies))
    return {**values, "source": source, "strategy": strategy}


def _read(
    values: Values, options: ScenarioOptions, environment: Mapping[str, str]
) -> tuple[Script | None, Scenario | None, dict[str, str]]:
    """The script, which may be right when the tools are wrong; the scenario without what the form sets; mistakes."""
    is_file = values["source"] == SCRIPT
    places = {"script": "script" if is_file else "source", "": "source"}
    refused = wrong_paths(values, *(("script",) if is_file else ()), "tools", "files")
    if "script" in refused:
        return None, None, refused
    script, wrong = tried(lambda: options.read_script(options.strategy), places)
    if refused or wrong:
        return script, None, refused or wrong
    copy = dict(environment)  # because reading takes the credentials out of it
    scenario, wrong = tried(lambda: options.read(raw=False, limits=HostLimits(), environment=copy), places)
    return script, scenario, wrong


def _tools(scenario: Scenario | None) -> list[str]:
    if scenario is None:
        return []
    offered = [tool.declared.identity.name for setup in scenario.tools for tool in setup.tools]
    return [*offered, *scenario.recorded_names]


def _credentials(options: ScenarioOptions, environment: Mapping[str, str]) -> Iterator[Credential]:
    """Of tools that cannot be read, nothing."""
    example = () if options.example is None else (examples_of(options.folder) / options.example,)
    for folder in (*example, *options.tools):
        try:
            declaration = PluginDeclaration.read(folder)
        except (HostError, OSError, ValueError):
            continue
        for provider in declaration.tool_providers:
            for key, credential in provider.credentials.items():
                variable = environment_name(provider.identity.name, key)
                yield Credential(variable, credential.required, bool(environment.get(variable)))


KEPT = ("source", "strategy", "tools", "files", "real", "model", "api", "completion")


def _setup(form: NewRun) -> Setup:
    """Only what differs from the scenario."""
    values = {name: form.values[name] for name in KEPT if form.values.get(name)}
    script = {"script": form.values.get("script", "")} if form.values["source"] == SCRIPT else {}
    question = "" if form.question is None else form.question.text.strip()
    asked = {"plugin": str(form.plugin), TYPED + QUESTION: question}
    return Setup(values={**values, **script, **asked, **form.changed})


def _mistakes(
    form: NewRun, script: Script | None, scenario: Scenario | None, environment: Mapping[str, str], *, has_others: bool
) -> dict[str, str]:
    is_real, asked = form.values.get("real") == "yes", form.setup.question
    found = {} if asked else {TYPED + QUESTION: "a question needs words"}
    if is_real:
        found |= dict(wrong_model(form.values, environment))
    elif script is None and not has_others:
        found["source"] = "without a script only a real model can answer: choose an example or a script"
    if scenario is None:
        return found
    wrong = wrong_texts(form.fields)
    if not wrong:
        _, wrong = tried(lambda: _check(scenario, form, asked or "?", is_real=is_real), {"script": "source"})
    return {**found, **wrong}


def _check(scenario: Scenario, form: NewRun, question: str, *, is_real: bool) -> None:
    given = replace(scenario, given=typed_settings(scenario.strategy, form.settings))
    given.check(question)
    if not is_real:
        refuse_misfit(given)


def _marked(form: NewRun, mistakes: Mapping[str, str]) -> NewRun:
    question = form.question and replace(form.question, mistake=mistakes.get(TYPED + QUESTION, ""))
    command = "" if mistakes else typed(chat_arguments(form.setup.values))
    return replace(form.with_mistakes(mistakes), question=question, command=command)


# The pages.


def form(request: Request) -> Response:
    """`from`: the name of a run whose setup fills the form; else the address may choose what the form does."""
    console, name = console_of(request), request.query_params.get("from")
    values = _chosen(console, request.query_params) if name is None else _again(console, name)
    return _page(console, planned(values, console.plugin, os.environ))


def _chosen(console: Console, given: Mapping[str, str]) -> Values:
    """The plugin is the one that was chosen last; a console that was started with another one begins with that."""
    values = read_values(given.items())
    last = console.folder.last_plugin(0 if console.plugin is None else console.began)
    return {**values, "plugin": str(last)} if last is not None and not values.get("plugin") else values


def _again(console: Console, name: str) -> Values:
    console.folder.trace(name)
    setup = console.folder.setup(name)
    if setup is None:
        raise ConsoleError(f"how {name} was started is not known: it was not started from a form")
    return setup.values


@posted
def submit(request: Request, given: Mapping[str, str]) -> Response:
    """`do`: "start"; "check" marks what is wrong; "load" and "reset NAME" leave all that was not chosen unmarked."""
    console, do = console_of(request), given.get("do", "load")
    form = planned(read_values(given.items()), console.plugin, os.environ)
    if do != "start" or form.mistakes:
        status = HTTP_422_UNPROCESSABLE_CONTENT if do == "start" else 200
        return _page(console, form, status, do if do in {"start", "check"} else "")
    name = console.start(given.get(KEY, ""), form.setup, said(form.setup.question))
    return RedirectResponse(f"/runs/{name}", 303)


def _page(console: Console, form: NewRun, status: int = 200, asked: str = "") -> Response:
    """`asked`: what the form was sent for; before, it shows only mistakes of what was chosen."""
    return console.page("new_run.html.j2", status, form=form, asked=asked)


ROUTES = (Route("/new", form), Route("/new", submit, methods=["POST"]))
