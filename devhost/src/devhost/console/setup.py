"""The setup of a run: the values of its form, which are stored beside its trace and determine its command."""

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from devhost.case_options import CaseOptions, with_models
from devhost.console.found import kind_of, label_of, own_tools
from devhost.errors import ConsoleError, ParameterError, about
from devhost.fork import ForkOptions
from devhost.hosting import ModelOptions
from devhost.limits import HostLimits
from devhost.options import arguments
from devhost.plugin.declaration import PluginDeclaration
from devhost.script import TurnScript
from devhost.text import worded, write_file

if TYPE_CHECKING:
    from devhost.models.openai_api.provider import Api

SETUP = ".setup.json"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}")
"""Matches the name of a run. The name is part of addresses and is never a path."""
EXAMPLE = "example:"
SCRIPT = "script:"
FLOW = "flow:"
PLUGIN = "plugin"
"""The value of the field `real` if a model plugin answers."""
NO_SCRIPT = "none"
"""The value of the field `source` for a strategy without a script.

Other values are `example:NAME`, `example:NAME/SCENARIO`, `script:FILE` and `flow:FILE`.
"""
TYPED = "p."
"""Prefix of the form fields that hold the texts of parameters."""
QUESTION = "query"
INSTRUCTION = "instruction"

type Values = Mapping[str, str]
"""The values of a form by the names of its fields. A field for several paths has one path on each line."""


def is_name(text: str) -> bool:
    """Returns whether a run can have this name. Names of files with the results of an evaluation are excluded."""
    return NAME.fullmatch(text) is not None and not text.endswith((".results", ".results.previous"))


class Setup(BaseModel):
    """How a run was started, without the key of a model, which stays in the environment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["chat", "flow", "fork"] = "chat"
    of: str = ""
    """The name of the original run, if this run repeats one with changes. The page of the run links to the original."""
    values: dict[str, str] = Field(default_factory=dict)
    """The values of form fields that were filled in. A parameter is included only if it was changed."""

    @property
    def question(self) -> str:
        """The first question."""
        return self.values.get(TYPED + QUESTION, "")

    @property
    def options(self) -> CaseOptions:
        return case_options(self.values)

    @property
    def converses(self) -> bool:
        """Whether the command of the run reads questions."""
        return self.kind == "chat" or (self.kind == "flow" and self.values.get("play") != "run")

    @property
    def about(self) -> str:
        """A short name for the script, flow or strategy, which becomes part of the run's name."""
        asked = self.options
        file = asked.script or asked.file
        name = asked.scenario or asked.example or (file.stem if file else asked.strategy) or "run"
        if self.kind == "fork":
            return f"{asked.strategy or 'run'}-again"
        return name

    @property
    def details(self) -> Iterator[str]:
        """Details that distinguish the run from others with the same question: its source and what was changed."""
        values = self.values
        if self.kind == "fork":
            at = values.get("at", "0")
            yield f"again from round {at}".replace("round 0", "the start")
        for name, text in values.items():
            if name.startswith(TYPED) and name != TYPED + QUESTION:
                yield f"{name.removeprefix(TYPED)}: {shorten(text, 60, placeholder=' …')}"
        for name in ("tools", "mcp", "completion", "script"):
            yield from (shorten(line, 60, placeholder=" …") for line in lines_in(values, name))
        file = source_file(values)
        if file is not None:
            yield label_of(file)
        elif values.get("source", "").startswith(EXAMPLE):
            yield values["source"].removeprefix(EXAMPLE)

    def arguments(self, trace_of: Callable[[str], Path]) -> tuple[str, ...]:
        """Returns the arguments of the command as a person would type them. A chat reads its question afterwards.

        `trace_of` returns the path of a run's trace.
        """
        if self.kind == "chat":
            asked = ("chat", *arguments(self.options))
        elif self.kind == "flow":
            asked = ("flow", self.values.get("play", "chat"), *arguments(self.options))
        else:
            asked = ("fork", *arguments(fork_options(self.values, trace_of(self.of))))
        return (*asked, *arguments(model_options(self.values)))

    def check(self, trace_of: Callable[[str], Path]) -> None:
        """Reads everything that the command will read, before anything starts. Raises HostError or OSError."""
        environment = dict(os.environ)  # a copy, because reading removes the credentials from it
        models = model_options(self.values)
        if self.values.get("real") == PLUGIN:
            refuse_without_model(models)
        if self.converses and not self.question:
            with about(QUESTION):
                raise ParameterError("the question is empty")
        if self.kind == "fork":
            asked = fork_options(self.values, trace_of(self.of))
            origin = asked.origin()
            asked.read(origin, HostLimits(), asked.read_tools(origin, environment))
            with about("script"):
                if asked.read_script(origin) is None and self.values.get("answers") == "script":
                    raise ParameterError("choose the script")
            if not models.scripted and models.model_plugin is None:
                with about("model"):
                    models.choose(None, self.question, environment)
            return
        case = self.options.read(limits=HostLimits(), environment=environment)
        if self.kind == "chat":
            case.played.check(case, [TurnScript(query=self.question, files=case.first_files)])
        if models.model_plugin is None:
            with about("model"):
                with_models(case, models, environment, starts=self.kind == "chat")

    def write(self, file: Path) -> None:
        with worded(lambda why: ConsoleError(f"{file} cannot be written: {why}")):
            write_file(file, f"{self.model_dump_json(indent=2, exclude_defaults=True)}\n".encode())


def refuse_without_model(models: ModelOptions) -> None:
    """Raises ParameterError for mistakes about a model plugin that can be found before it is started."""
    with about("model_plugin"):
        if models.model_plugin is None:
            raise ParameterError("choose the model plugin")
        declared = PluginDeclaration.read(models.model_plugin)
        if not declared.model_providers:
            raise ParameterError(f"{models.model_plugin} has no models")
    with about("model"):
        if models.name is None:
            raise ParameterError("give the name of the model")


def lines_in(values: Values, name: str) -> tuple[str, ...]:
    """Returns the lines of a field that are not empty."""
    return tuple(line.strip() for line in values.get(name, "").split("\n") if line.strip())


def paths_in(values: Values, name: str) -> tuple[Path, ...]:
    return tuple(map(Path, lines_in(values, name)))


def path_in(values: Values, name: str) -> Path | None:
    if values.get(name):
        return Path(values[name])
    return None


def number_in(values: Values, name: str) -> int | None:
    text = values.get(name, "")
    if text.isdecimal():
        return int(text)
    return None


def typed_in(values: Values, but: str) -> tuple[str, ...]:
    """Returns KEY=VALUE for each parameter except `but`."""
    texts = {name.removeprefix(TYPED): text for name, text in values.items() if name.startswith(TYPED)}
    return tuple(f"{name}={text}" for name, text in texts.items() if name != but)


def source_file(values: Values) -> Path | None:
    """Returns the file of a script or flow, or `None` for an example and for a run without a script."""
    kind, colon, file = values.get("source", "").partition(":")
    if colon and f"{kind}:" in {SCRIPT, FLOW}:
        return Path(file)
    return None


def case_options(values: Values) -> CaseOptions:
    """Returns the options that choose what is run."""
    source = values.get("source", "")
    file = source_file(values)
    own = ("", "", "")
    if source.startswith(EXAMPLE):
        own = source.removeprefix(EXAMPLE).partition("/")
    is_flow = source.startswith(FLOW)
    is_script = not is_flow or (file is not None and kind_of(file) == "flow script")
    beside = () if file is None or is_flow else own_tools(file)
    return CaseOptions(
        file=None if is_script else file,
        example=own[0] or None,
        scenario=own[2] or None,
        script=file if is_script else None,
        node=values.get("node") or None,
        tools=tuple(dict.fromkeys((*beside, *paths_in(values, "tools")))),
        servers=lines_in(values, "mcp"),
        files=() if is_flow else paths_in(values, "files"),
        strategy=None if is_flow else values.get("strategy") or None,
        parameters=() if is_flow else typed_in(values, QUESTION),
        inputs=typed_in(values, QUESTION) if is_flow else (),
        plugins=tuple(filter(None, (path_in(values, "plugin"),))),
        http=values.get("http") == "yes",
        code=values.get("code") == "yes",
    )


def model_options(values: Values) -> ModelOptions:
    """Returns the model options of a new or repeated run. The key of the model stays in the environment."""
    if values.get("real") not in {"yes", PLUGIN} and values.get("answers") != "real":
        return ModelOptions(scripted=True)
    name = values.get("model") or None
    completion = lines_in(values, "completion")
    if values.get("real") == PLUGIN:
        return ModelOptions(model_plugin=path_in(values, "model_plugin"), name=name, completion=completion)
    api = cast("Api | None", values.get("api") or None)
    return ModelOptions(api=api, name=name, completion=completion)


def fork_options(values: Values, trace: Path) -> ForkOptions:
    """Returns the options of `devhost fork`. The question is one of the parameters if it was changed.

    `trace` is the trace of the original run.
    """
    is_live = values.get("live") == "yes"
    return ForkOptions(
        trace=trace,
        at=number_in(values, "at") or 0,
        question=number_in(values, "turn"),
        instruction=values.get(TYPED + INSTRUCTION),
        parameters=typed_in(values, INSTRUCTION),
        script=path_in(values, "script"),
        live_tools=is_live,
        tools=paths_in(values, "tools") if is_live else (),
        plugin=path_in(values, "plugin"),
    )


def typed(given: Iterable[str]) -> str:
    """Returns a command of devhost as a person would type it in a shell."""
    return shlex.join(("devhost", *given))
