"""Makes the form of a run that is run again, and finds what cannot be in it.

In: a run of the folder, what was typed. Out: a `ForkPlan`; a HostError for a run that no fork can be made of.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from devhost.console.again.changes import Changed
from devhost.console.again.pair import setup_of
from devhost.console.again.plan import ForkPlan
from devhost.console.again.ran import live_plugins, tool_names
from devhost.console.forms.choices import TYPED
from devhost.console.forms.fields import Field, fields_of
from devhost.console.forms.model import NUL, can_be_real, wrong_model
from devhost.console.runs.folder import RunFolder
from devhost.console.runs.setup import Setup
from devhost.console.runs.typed import refusal, typed_path
from devhost.errors import HostError, ParameterError
from devhost.fork.fork import Changes, Origin, find_origin, read_fork
from devhost.fork.rounds import gist, rounds
from devhost.host.agent_node import find_strategy
from devhost.limits import HostLimits
from devhost.models.scripted.script import Script
from devhost.plugin.declaration import PluginDeclaration
from devhost.plugin.nearest import nearest_strategy_plugin
from devhost.recording.case import runs_of
from devhost.scenario.tool_assignments import read_tool_setups
from devhost.trace.reader import read_trace


def planned_fork(folder: RunFolder, name: str, changed: Changed, plugin: Path | None) -> ForkPlan:
    """`plugin`: None for that of the run, or the nearest one."""
    file, was = folder.trace(name), setup_of(folder, name)
    trace = read_trace(file)
    questions = [run.question for run in runs_of(trace, file)]
    turn = _number(changed.turn, 1, len(questions))
    origin = find_origin(trace, file, turn or len(questions))
    directory = plugin or was.plugin
    found = nearest_strategy_plugin(Path.cwd()) if directory is None else directory
    _, strategy = find_strategy(PluginDeclaration.read(found), origin.strategy)
    answered = [each for each in rounds(origin.run) if each.is_answered]
    at = _number(changed.at or "0", 0, len(answered))
    live = Setup(example=trace.header.example or None, tools=was.tools)
    plan = ForkPlan(
        name,
        changed,
        origin,
        questions,
        turn or len(questions),
        [(each.number, gist(each)) for each in answered],
        at or 0,
        [each for each in fields_of(strategy, origin.run.parameters, changed.form) if each.widget != "shown"],
        directory,
        live,
        _names(lambda: tool_names(live_plugins(directory, live.example, live.tools))),
        can_be_real=can_be_real(os.environ),
    )
    mistakes = dict(_mistakes(plan, found))
    if changed.turn and turn is None:
        mistakes["turn"] = f"there is no turn {changed.turn!r}; there are 1 to {len(questions)}"
    if at is None:
        mistakes["at"] = f"there is no round {changed.at!r} to go on from; there are 0 to {len(answered)}"
    fields = [each.with_mistake(mistakes.get(f"{TYPED}{each.name}", "")) for each in plan.fields]
    return replace(plan, fields=fields, mistakes=mistakes)


def _number(typed: str, least: int, most: int) -> int | None:
    """None for what is no such number."""
    is_number = typed.isascii() and typed.isdigit() and len(typed) < 10  # noqa: PLR2004 - digits
    return int(typed) if is_number and least <= int(typed) <= most else None


def _names(read: Callable[[], list[str]]) -> Sequence[str]:
    try:
        return read()
    except HostError:
        return ()


def _mistakes(plan: ForkPlan, plugin: Path) -> Iterator[tuple[str, str]]:
    """By the name of the field in the form; under an empty name, what belongs to none."""
    for each in plan.fields:
        if each.changed and (sentence := _refused(plan.origin, plugin, plan.at, [each])):
            yield f"{TYPED}{each.name}", sentence
    if sentence := _said(lambda: _check_script(plan)):
        yield "script", sentence
    if plan.changed.answers == "real" and (sentence := wrong_model(plan.changed.form, os.environ)):
        yield "model", sentence
    if plan.changed.live and (sentence := _said(lambda: _check_tools(plan))):
        yield "live", sentence
    unchanged = _refused(plan.origin, plugin, plan.at, [])
    if unchanged:
        yield "", unchanged


def _refused(origin: Origin, plugin: Path, at: int, fields: Sequence[Field]) -> str:
    if any("\0" in each.text for each in fields):
        return NUL
    given = tuple(f"{each.name}={each.text}" for each in fields)
    return _said(lambda: read_fork(origin, at, plugin, Changes(given), HostLimits()))


def _check_script(plan: ForkPlan) -> None:
    if plan.changed.answers != "script":
        return
    if not plan.changed.form.script:
        raise ParameterError("name the file")
    file = typed_path(plan.changed.form.script)
    if why := refusal(file):
        raise ParameterError(why)
    Script.read(file, plan.origin.strategy)


def _check_tools(plan: ForkPlan) -> None:
    plugins = live_plugins(plan.plugin, plan.live.example, plan.live.tools)
    if not plugins:
        raise ParameterError("the run names no example and no tool plugin: run devhost fork --live-tools --tools DIR")
    environment: dict[str, str] = dict(os.environ)  # a copy, because reading takes the credentials out of it
    read_tool_setups([each.directory for each in plugins], (), (), environment)


def _said(check: Callable[[], object]) -> str:
    try:
        check()
    except (HostError, OSError, ValueError) as error:
        return str(error)
    return ""
