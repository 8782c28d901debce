"""`/runs/NAME/again`: a run once more, with something changed from a round on. Nothing starts before it fits."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from devhost.console import forms
from devhost.console.folder import RunFolder, refusal
from devhost.console.forms import Options, RunForm
from devhost.console.found import find
from devhost.console.setup import EXAMPLE, QUESTION, TYPED, Setup, Values, fork_options
from devhost.console.web import console_of, posted
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
    rounds: Options
    """Those after which a fork can go on: number and gist."""
    at: int
    scripts: Sequence[Path]
    """To choose from, for what the model says."""
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
    answered_rounds = [each for each in rounds(origin.run) if each.is_answered]
    at = _number(values.get("at") or "0", 0, len(answered_rounds))
    example = trace.header.example
    live, _ = forms.tried(
        lambda: live_plugins(ForkOptions(example=example or None, tools=was.options.tools, plugin=found), origin), {}
    )
    form = ForkForm(
        values=values,
        fields=forms.fields_of(strategy, origin.run.parameters, values),
        question=forms.question_of(origin.run.question, values),
        name=name,
        origin=origin,
        questions=questions,
        turn=turn or len(questions),
        rounds=[(str(each.number), gist(each)) for each in answered_rounds],
        at=at or 0,
        scripts=find(plugin, folder.path).of("script"),
        tools=[tool.identity.name for each in live or () for one in each.tool_providers for tool in one.tools],
    )
    form = replace(form, setup=_setup(form, directory, example, was.values.get("tools", "")))
    mistakes = dict(_mistakes(form, found))
    if values.get("turn") and turn is None:
        mistakes["turn"] = f"there is no turn {values['turn']!r}; there are 1 to {len(questions)}"
    if at is None:
        mistakes["at"] = f"there is no round {values['at']!r} to go on from; there are 0 to {len(answered_rounds)}"
    return form.judged(mistakes, folder.trace)


def live_plugins(asked: ForkOptions, origin: Origin) -> list[PluginDeclaration]:
    """The tool plugins that `--live-tools` runs; HostError for one that is not there."""
    return [PluginDeclaration.read(folder) for folder in asked.live_folders(origin)]


def _number(typed: str, least: int, most: int) -> int | None:
    """None for what is not such a number."""
    is_number = typed.isascii() and typed.isdigit() and len(typed) < 10  # noqa: PLR2004 - digits
    return int(typed) if is_number and least <= int(typed) <= most else None


ANSWERS: Mapping[str, Sequence[str]] = {"script": ("script",), "real": ("api", "model", "completion")}
"""What else the form holds of each kind of answers."""


def _setup(form: ForkForm, plugin: Path | None, example: str, tools: str) -> Setup:
    """Only what was changed."""
    given, question = form.values, form.question
    names = ("answers", "live", *ANSWERS.get(given.get("answers", ""), ()))
    live = {"source": f"{EXAMPLE}{example}" if example else "", "tools": tools} if given.get("live") == "yes" else {}
    return Setup(
        kind="fork",
        of=form.name,
        values={
            **{name: given[name] for name in names if given.get(name)},
            **live,
            **({} if plugin is None else {"plugin": str(plugin)}),
            **({"turn": str(form.turn)} if len(form.questions) > 1 else {}),
            "at": str(form.at),
            "strategy": form.origin.strategy,
            TYPED + QUESTION: "" if question is None else question.text.strip(),
            **({"asks": "other"} if question is not None and question.changed else {}),
            **form.changed,
        },
    )


def _mistakes(form: ForkForm, plugin: Path) -> Iterator[tuple[str, str]]:
    yield from (wrong := forms.wrong_texts(form.fields)).items()
    asked = replace(fork_options(form.setup.values, form.origin.file), plugin=plugin)
    environment = dict(os.environ)  # a copy, because reading takes the credentials out of it
    checks: list[Callable[[], object]] = [
        lambda: _read_script(form, asked),
        lambda: asked.read_tools(form.origin, environment),
        *([] if wrong else [lambda: asked.read(form.origin, form.at, HostLimits())]),
    ]
    for check in checks:
        _, mistakes = forms.tried(check, {"files": "", "set": "live", "credential": "live"})
        yield from mistakes.items()
    if form.values.get("answers") == "real":
        yield from forms.wrong_model(form.values, os.environ)
    if not form.setup.question and form.origin.run.question.strip():
        yield TYPED + QUESTION, "a question needs words"


def _read_script(form: ForkForm, asked: ForkOptions) -> None:
    with about("script"):
        if asked.script is None and form.values.get("answers") == "script":
            raise ParameterError("choose the script")
        if asked.script is not None and (why := refusal(asked.script)):
            raise ParameterError(why)
    asked.read_script(form.origin)


# The pages.


def form(request: Request) -> Response:
    """The address may choose the turn and the round."""
    console = console_of(request)
    return console.page("run_again.html.j2", form=_form_of(request, request.query_params), asked="")


@posted
def submit(request: Request, given: Mapping[str, str]) -> Response:
    """`do`: what the form was sent for, such as "start"."""
    console, name, form = console_of(request), request.path_params["name"], _form_of(request, given)

    def start() -> Response:
        return RedirectResponse(f"/compare/{name}/{console.start(form.setup)}", 303)

    return forms.answered(console, "run_again.html.j2", form, given.get("do", "start"), start)


def _form_of(request: Request, given: Mapping[str, str]) -> ForkForm:
    console = console_of(request)
    return planned_fork(console.folder, request.path_params["name"], forms.read_values(given.items()), console.plugin)


ROUTES = (Route("/runs/{name}/again", form), Route("/runs/{name}/again", submit, methods=["POST"]))
