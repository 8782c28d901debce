"""Repeats a run and changes something from a round on. Mistakes are reported before anything starts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.responses import Response

from devhost.console import flow_again
from devhost.console.forms import RunForm, fields_of, submitted
from devhost.console.found import find
from devhost.console.setup import QUESTION, TYPED, Setup, Values, number_in
from devhost.console.web import Console
from devhost.fork import ForkOrigin, find_origin
from devhost.host.host import find_strategy
from devhost.plugin.declaration import PluginDeclaration
from devhost.recording.case import conversation_of
from devhost.trace.lines import read_trace

LABELS = {
    "script": ("script", "Script"),
    **dict.fromkeys(("model", "completion", "api"), ("answers-real", "Model")),
    **dict.fromkeys(("live", "live-tools", "tools", "credential", "set"), ("live", "Tools")),
}
ANSWERS: Mapping[str, Sequence[str]] = {"script": ("script",), "real": ("model", "completion")}
"""The form fields that belong to each kind of answers."""


@dataclass(frozen=True, kw_only=True)
class ForkForm(RunForm):
    """A form that repeats a turn of an agent's conversation."""

    labels = LABELS
    name: str
    origin: ForkOrigin
    """The original run of the turn."""
    questions: Sequence[str]
    """The questions of all turns of the conversation."""
    turn: int
    scripts: Sequence[Path]
    """The scripts to choose from as the source of the model's answers."""
    was: Setup
    """The setup of the original run."""
    plugin: Path

    @property
    def setup(self) -> Setup:
        given = self.values
        names = ("at", "answers", "live", *ANSWERS.get(given.get("answers", ""), ()))
        values = {name: given[name] for name in names if given.get(name)}
        values |= {"plugin": str(self.plugin), "strategy": self.origin.strategy, **self.changed}
        if given.get("live") == "yes":
            values["tools"] = "\n".join(map(str, self.was.options.tools))
        if len(self.questions) > 1:
            values["turn"] = str(self.turn)
        if self.question is not None and self.question != self.origin.run.question:
            values[TYPED + QUESTION] = self.question.strip()
        return Setup(kind="fork", of=self.name, values=values)


def form_of(console: Console, name: str, values: Values) -> ForkForm:
    file = console.folder.trace(name)
    was = console.folder.setup(name) or Setup()
    trace = read_trace(file)
    questions = [turn.question for turn in conversation_of(trace, file)]
    turn = number_in(values, "turn") or len(questions)
    origin = find_origin(trace, file, turn)
    things = find(console.plugin, console.folder.path)
    plugin = console.plugin or next(iter(was.options.plugins), None) or things.plugin
    _, strategy = find_strategy(PluginDeclaration.read(plugin), origin.strategy)
    return ForkForm(
        values=values,
        fields=fields_of(strategy, origin.run.parameters, values),
        question=values.get(TYPED + QUESTION, origin.run.question),
        name=name,
        origin=origin,
        questions=questions,
        turn=turn,
        scripts=things.of("script"),
        was=was,
        plugin=plugin,
    )


def form(console: Console, asked: Values, name: str) -> Response:
    """Shows the form. For an agent's run, the address may name the turn and the round."""
    values = {each: asked[each] for each in ("turn", "at") if each in asked}
    trace = read_trace(console.folder.trace(name))
    if trace.header.command == "flow":
        return console.page("flow_again.html.j2", form=flow_again.form_of(console, name, trace, {}))
    return console.page("run_again.html.j2", form=form_of(console, name, values))


def submit(console: Console, given: Values, name: str) -> Response:
    file = console.folder.trace(name)
    trace = read_trace(file)
    if trace.header.command == "flow":
        of_flow = flow_again.with_recording(flow_again.form_of(console, name, trace, given), trace, file)
        return submitted(console, "flow_again.html.j2", of_flow)
    return submitted(console, "run_again.html.j2", form_of(console, name, given))
