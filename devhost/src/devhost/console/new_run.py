"""The form that asks a strategy or a flow a question. Mistakes are reported before anything starts."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from starlette.responses import Response

from devhost.console.forms import WRONG, Options, RunForm, fields_of, inputs_of, submitted
from devhost.console.found import FoundFiles, asks, find, shortened
from devhost.console.setup import (
    EXAMPLE,
    FLOW,
    NO_SCRIPT,
    PLUGIN,
    QUESTION,
    SCRIPT,
    TYPED,
    Setup,
    Values,
    case_options,
    path_in,
    paths_in,
)
from devhost.console.web import Console
from devhost.errors import ConsoleError, about
from devhost.flow.cases import flow_file
from devhost.hosting import strategy_plugin
from devhost.plugin.declaration import PluginDeclaration
from devhost.scenario import SCENARIOS, examples_of
from devhost.scenario import SCRIPT as DEFAULT_SCRIPT
from devhost.script import UNWRITTEN

LABELS = {
    "plugin": ("plugin", "Strategy plugin"),
    "strategy": ("strategy", "Strategy"),
    "script": ("source", "Scenario"),
    **dict.fromkeys(("tools", "credential", "set"), ("tools", "Tool plugins")),
    **dict.fromkeys(("files", "file"), ("files", "Files")),
    **dict.fromkeys(("model", "completion", "api"), ("real", "Model")),
    "model_plugin": ("model_plugin", "Model plugin"),
    "model-plugin": ("model_plugin", "Model plugin"),
    "mcp": ("mcp", "MCP servers"),
    "allow-http": ("http", "send HTTP requests"),
    "allow-code": ("code", "run its code nodes"),
    QUESTION: ("p.query", "Question"),
}


@dataclass(frozen=True, kw_only=True)
class NewRun(RunForm):
    """A form with the choices and fields of a new run."""

    labels = LABELS
    plugin: PluginDeclaration | None = None
    """The strategy plugin, or `None` if it cannot be read."""
    plugins: Sequence[Path] = ()
    groups: Sequence[tuple[str, Options]] = ()
    """The strategies, scenarios and flows to choose from, in named groups."""
    description: str = ""
    tool_plugins: Sequence[Path] = ()
    model_plugins: Sequence[Path] = ()

    @property
    def is_flow(self) -> bool:
        return self.values["source"].startswith(FLOW)

    @property
    def sources(self) -> Sequence[str]:
        return [value for _, choices in self.groups for value, _ in choices]

    @property
    def setup(self) -> Setup:
        names = ["source", "strategy", "tools", "mcp", "files", "real", "model", "api", "completion", "http", "code"]
        if self.values.get("real") == PLUGIN:
            names.append("model_plugin")
        values = {name: self.values[name] for name in names if self.values.get(name)}
        if self.plugin is not None:
            values["plugin"] = str(self.plugin.directory)
        if self.question is None:
            values["play"] = "run"
        else:
            values[TYPED + QUESTION] = self.question.strip()
        return Setup(kind="flow" if self.is_flow else "chat", values={**values, **self.changed})


def form_of(values: Values, default: Path | None, runs: Path = Path()) -> NewRun:
    """Returns the form filled with `values`.

    `default` is the plugin to use if none is chosen, or `None` for the usual one. `runs` is the folder of runs.
    """
    things = find(default, runs)
    form = NewRun(
        values={"source": "", **values},
        plugins=things.plugins,
        tool_plugins=[*dict.fromkeys((*things.of("tool plugin"), *paths_in(values, "tools")))],
        model_plugins=[*dict.fromkeys((*things.of("model plugin"), *paths_in(values, "model_plugin")))],
    )
    try:
        with about("plugin"):
            plugin = strategy_plugin(path_in(values, "plugin") or things.plugin)
        plugins = dict.fromkeys((*things.plugins, shortened(plugin.directory)))
        form = replace(form, plugin=plugin, plugins=list(plugins))
    except WRONG as error:
        plugin = None
        form = form.refused(error)
    form = replace(form, groups=list(_choices(things, plugin)))
    source = form.values["source"]
    strategy = form.values.get("strategy", "")
    if source not in {*form.sources, NO_SCRIPT} and not source.startswith((SCRIPT, FLOW)):
        source = next(iter(form.sources), NO_SCRIPT)
    if plugin is not None and strategy not in plugin.strategies:
        strategy = next(iter(plugin.strategies))
    form = replace(form, values={**form.values, "source": source, "strategy": strategy})
    if form.is_flow:
        form = replace(form, mistake=None)
    elif plugin is None:
        return form
    return _with_fields(form, plugin)


def _choices(things: FoundFiles, declaration: PluginDeclaration | None) -> Iterator[tuple[str, Options]]:
    yield from _by_folder("Scenarios", filter(asks, things.of("script", own=True)), SCRIPT)
    yield from _by_folder("Flows, each with a script", things.of("flow script", own=True))
    yield from _by_folder("Flows without a script", things.of("flow", own=True))
    examples = [] if declaration is None else examples_of(declaration.directory).glob(f"*/{DEFAULT_SCRIPT}")
    for folder in sorted(file.parent for file in examples):
        name = folder.name
        others = sorted((folder / SCENARIOS).glob("*.yaml"))
        scenarios = [(f"{EXAMPLE}{name}/{file.stem}", f"{name} / {file.stem}") for file in others]
        yield name, [(f"{EXAMPLE}{name}", name), *scenarios]
    yield from _by_folder("Flows, each with a script", things.of("flow script", own=False))
    yield from _by_folder("Flows without a script", things.of("flow", own=False))


def _by_folder(what: str, files: Iterable[Path], before: str = FLOW) -> Iterator[tuple[str, Options]]:
    """Yields a group of choices for each folder."""
    folders = dict[str, list[Path]]()
    for file in files:
        folders.setdefault(os.path.relpath(file.parent), []).append(file)
    for folder, inside in folders.items():
        where = folder
        if folder == os.curdir:
            where = "this folder"
        yield f"{what} · {where}", [(f"{before}{file}", file.stem) for file in inside]


def _with_fields(form: NewRun, plugin: PluginDeclaration | None) -> NewRun:
    """Returns the form with the fields of its case: a strategy's parameters or the inputs of a flow's Start node."""
    values = form.values
    if plugin is not None:
        values = {**values, "plugin": str(plugin.directory)}
    options = case_options(values)
    script = UNWRITTEN
    file = None
    try:
        with about("script"):
            script = options.read_script(options.strategy)
            file = None
            if form.is_flow:
                file = flow_file(options.file, script)
    except WRONG as error:
        form = form.refused(error)
    question: str | None = values.get(TYPED + QUESTION, script.query)
    if file is not None:
        if not file.is_chatflow:
            question = None
        form = replace(form, fields=inputs_of(file, script.inputs, values))
    elif plugin is not None and not form.is_flow:
        _, strategy = plugin.strategies[values["strategy"]]
        form = replace(form, fields=fields_of(strategy, script.params, values))
    return replace(form, question=question, description=script.description)


def form(console: Console, asked: Values) -> Response:
    """Shows the form. The address may contain values for the form, or in `from` a run whose setup fills the form."""
    values: Values = {each: asked[each] for each in ("source", "plugin", "strategy", "tools", "mcp") if asked.get(each)}
    if name := asked.get("from"):
        console.folder.trace(name)
        known = console.folder.setup(name)
        if known is None:
            raise ConsoleError(f"how {name} was started is not known: it was not started from a form")
        values = known.values
    return console.page("new_run.html.j2", form=form_of(values, console.plugin, console.folder.path))


def submit(console: Console, given: Values) -> Response:
    return submitted(console, "new_run.html.j2", form_of(given, console.plugin, console.folder.path))
