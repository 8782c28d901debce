"""`/runs/NAME/again`: a run once more, with something changed from a round on. Nothing starts before it fits."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.status import HTTP_422_UNPROCESSABLE_CONTENT

from devhost.console.folder import RunFolder, refusal
from devhost.console.forms import (
    RunForm,
    can_be_real,
    fields_of,
    read_values,
    tried,
    wrong_model,
    wrong_texts,
)
from devhost.console.setup import EXAMPLE, QUESTION, TYPED, Setup, Values, fork_arguments, fork_options, typed
from devhost.console.web import KEY, Console, console_of, posted
from devhost.errors import ParameterError, about
from devhost.fork import Origin, find_origin, gist, rounds
from devhost.forking import ForkOptions
from devhost.host.host import find_strategy
from devhost.limits import HostLimits
from devhost.plugin.declaration import PluginDeclaration, nearest_strategy_plugin
from devhost.recording.case import runs_of
from devhost.trace.lines import read_trace


@dataclass(frozen=True, kw_only=True)
class ForkForm(RunForm):
    name: str
    origin: Origin
    """The run of the turn."""
    questions: Sequence[str]
    """Of all turns of the conversation."""
    turn: int
    rounds: Sequence[tuple[int, str]]
    """Those after which a fork can go on."""
    at: int
    tools: Sequence[str]
    """Those that live tools would run."""


def planned_fork(folder: RunFolder, name: str, values: Values, plugin: Path | None) -> ForkForm:
    """`plugin`: None for that of the run, or the nearest one."""
    file, was = folder.trace(name), folder.setup(name) or Setup()
    trace = read_trace(file)
    questions = [run.question for run in runs_of(trace, file)]
    turn = _number(values.get("turn", ""), 1, len(questions))
    origin = find_origin(trace, file, turn or len(questions))
    directory = plugin or was.options.plugin
    found = nearest_strategy_plugin() if directory is None else directory
    _, strategy = find_strategy(PluginDeclaration.read(found), origin.strategy)
    answered = [each for each in rounds(origin.run) if each.is_answered]
    at = _number(values.get("at") or "0", 0, len(answered))
    example = trace.header.example
    live, _ = tried(
        lambda: live_plugins(ForkOptions(example=example or None, tools=was.options.tools, plugin=found), origin), {}
    )
    form = ForkForm(
        values,
        fields=tuple(each for each in fields_of(strategy, origin.run.parameters, values) if each.widget != "shown"),
        can_be_real=can_be_real(os.environ),
        name=name,
        origin=origin,
        questions=questions,
        turn=turn or len(questions),
        rounds=[(each.number, gist(each)) for each in answered],
        at=at or 0,
        tools=_tool_names(live or []),
    )
    form = replace(form, setup=_setup(form, directory, example, was.values.get("tools", "")))
    mistakes = dict(_mistakes(form, found))
    if values.get("turn") and turn is None:
        mistakes["turn"] = f"there is no turn {values['turn']!r}; there are 1 to {len(questions)}"
    if at is None:
        mistakes["at"] = f"there is no round {values['at']!r} to go on from; there are 0 to {len(answered)}"
    command = "" if mistakes else typed(fork_arguments(form.setup.values, file))
    return replace(form.with_mistakes(mistakes), command=command)


def live_plugins(asked: ForkOptions, origin: Origin) -> list[PluginDeclaration]:
    """The tool plugins that `--live-tools` runs; HostError for one that is not there."""
    return [PluginDeclaration.read(folder) for folder in asked.live_folders(origin)]


def _tool_names(plugins: Sequence[PluginDeclaration]) -> list[str]:
    return [tool.identity.name for plugin in plugins for provider in plugin.tool_providers for tool in provider.tools]


def _number(typed: str, least: int, most: int) -> int | None:
    """None for what is not such a number."""
    is_number = typed.isascii() and typed.isdigit() and len(typed) < 10  # noqa: PLR2004 - digits
    return int(typed) if is_number and least <= int(typed) <= most else None


def _setup(form: ForkForm, plugin: Path | None, example: str, tools: str) -> Setup:
    """Only what was changed."""
    given = form.values
    answers = {name: given[name] for name in ("answers", "live") if given.get(name)}
    if answers.get("answers") == "script":
        answers["script"] = given.get("script", "")
    if answers.get("answers") == "real":
        answers |= {name: given[name] for name in ("api", "model", "completion") if given.get(name)}
    if answers.get("live") == "yes":
        answers |= {"source": f"{EXAMPLE}{example}" if example else "", "tools": tools}
    return Setup(
        kind="fork",
        of=form.name,
        values={
            **answers,
            **({} if plugin is None else {"plugin": str(plugin)}),
            **({"turn": str(form.turn)} if len(form.questions) > 1 else {}),
            "at": str(form.at),
            "strategy": form.origin.strategy,
            TYPED + QUESTION: form.origin.run.question,
            **form.changed,
        },
    )


def _mistakes(form: ForkForm, plugin: Path) -> Iterator[tuple[str, str]]:
    yield from (wrong := wrong_texts(form.fields)).items()
    asked = replace(fork_options(form.setup.values, form.origin.file), plugin=plugin)
    environment = dict(os.environ)  # a copy, because reading takes the credentials out of it
    checks: list[Callable[[], object]] = [
        lambda: _read_script(form, asked),
        lambda: asked.read_tools(form.origin, environment),
        *([] if wrong else [lambda: asked.read(form.origin, form.at, HostLimits())]),
    ]
    for check in checks:
        _, mistakes = tried(check, {"files": "", "set": "live", "credential": "live"})
        yield from mistakes.items()
    if form.values.get("answers") == "real":
        yield from wrong_model(form.values, os.environ)


def _read_script(form: ForkForm, asked: ForkOptions) -> None:
    with about("script"):
        if asked.script is None and form.values.get("answers") == "script":
            raise ParameterError("name the file")
        if asked.script is not None and (why := refusal(asked.script)):
            raise ParameterError(why)
    asked.read_script(form.origin)


# The pages.


def form(request: Request) -> Response:
    """The address may choose the turn and the round."""
    return _page(console_of(request), _form_of(request, request.query_params))


@posted
def submit(request: Request, given: Mapping[str, str]) -> Response:
    """`do`: what the form was sent for, such as "start" or "check"."""
    console, name, do = console_of(request), request.path_params["name"], given.get("do", "start")
    form = _form_of(request, given)
    if do != "start" or form.mistakes:
        return _page(console, form, 200 if do != "start" else HTTP_422_UNPROCESSABLE_CONTENT, do)
    return RedirectResponse(f"/compare/{name}/{console.start(given.get(KEY, ''), form.setup)}", 303)


def _form_of(request: Request, given: Mapping[str, str]) -> ForkForm:
    console = console_of(request)
    return planned_fork(console.folder, request.path_params["name"], read_values(given.items()), console.plugin)


def _page(console: Console, form: ForkForm, status: int = 200, asked: str = "") -> Response:
    return console.page("run_again.html.j2", status, form=form, asked=asked)


ROUTES = (Route("/runs/{name}/again", form), Route("/runs/{name}/again", submit, methods=["POST"]))
