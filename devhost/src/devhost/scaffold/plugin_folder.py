"""`devhost init`: the folder of a new plugin or chatflow, from the templates beside this module."""

import json
import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal

import click
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from devhost.errors import ParameterError
from devhost.options import argument, command, option
from devhost.plugin.declaration import Parameter, PluginDeclaration, nearest_strategy_plugin
from devhost.protocol.wire import JsonObject
from devhost.text import real_path

type Kind = Literal["strategy", "tool", "flow"]

TEMPLATES = Path(__file__).parent / "templates"
SUFFIX = ".jinja"
NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
"""Of a plugin and of a Python module; the daemon takes `^[a-z0-9_-]{1,128}$` for a plugin."""
SDK = "0.10.2"
"""The version that a new plugin asks for (November 2026)."""


@dataclass(frozen=True)
class NewPlugin:
    kind: Kind
    name: str
    author: str
    folder: Path
    strategy_plugin: Path | None = None
    """Of the agent in a flow."""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name) or not re.fullmatch(r"[a-z0-9_-]{1,64}", self.author):  # the daemon's pattern
            raise ParameterError(
                f"the name {self.name!r} must be small letters, digits and _, a letter first, and the author "
                f"{self.author!r} small letters, digits, _ and -, 64 at most"
            )

    def write(self) -> list[Path]:
        """The files that were written; ParameterError if the folder has anything in it."""
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise ParameterError(f"{self.folder} exists and is not empty: name another folder")
        home = TEMPLATES / self.kind
        environment = Environment(  # noqa: S701 - nothing of it is HTML
            loader=FileSystemLoader(home), undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True
        )
        environment.filters["json"] = partial(json.dumps, ensure_ascii=False)
        words = self.name.split("_")
        written = list[Path]()
        values: JsonObject = {
            "name": self.name,
            "author": self.author,
            "title": " ".join(words).strip().capitalize(),
            "class_name": "".join(word.capitalize() for word in words),
            "today": datetime.now(UTC).date().isoformat(),
            "sdk": SDK,
        }
        if self.strategy_plugin is not None:
            tools = NewPlugin("tool", f"{self.name}_tools", self.author, self.folder / "tools")
            values |= _of_flow(self.strategy_plugin, tools)
            written += tools.write()
        for template in sorted(path for path in home.rglob(f"*{SUFFIX}") if path.is_file()):
            name = template.relative_to(home).as_posix()
            file = self.folder / environment.from_string(name.removesuffix(SUFFIX)).render(values)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(environment.get_template(name).render(values), encoding="utf-8")
            written.append(file)
        return written


# The chatflow of a flow's folder: its agent is the first strategy of the plugin at hand.

MODEL: JsonObject = {
    "type": "model-selector",
    "provider": "langgenius/openai/openai",
    "model": "gpt-5",
    "model_type": "llm",
    "mode": "chat",
    "completion_params": {},
}
TEXTS = {"query": "{{#sys.query#}}", "instruction": "Write what is asked for, in one line. Count its words."}
EDGES = (
    ("start", "source", "agent"),
    ("agent", "source", "form"),
    ("form", "yes", "keep"),
    ("form", "no", "rejected"),
    ("keep", "source", "published"),
)


def _of_flow(plugin: Path, tools: NewPlugin) -> JsonObject:
    declared = PluginDeclaration.read(plugin)
    provider, strategy = next(iter(declared.strategies.values()))
    of_tools = f"{tools.author}/{tools.name}"
    panel = {each.name: _in_panel(each, f"{of_tools}/{tools.name}") for each in strategy.parameters}
    return {
        "edges": EDGES,
        "tools": of_tools,
        "plugin": f" --plugin {shlex.quote(os.path.relpath(real_path(plugin), real_path(tools.folder.parent)))}",
        "strategy": {
            "plugin": f"{declared.manifest.author}/{declared.manifest.name}",
            "provider": declared.provider_id(provider),
            "name": strategy.identity.name,
            "label": strategy.identity.label.en_US,
            "outputs": strategy.output_schema or {},
            "panel": {name: value for name, value in panel.items() if value is not None},
        },
    }


def _in_panel(parameter: Parameter, provider: str) -> object:
    """None for what has a default, or may be empty."""
    if parameter.type == "model-selector":
        return MODEL
    if parameter.type == "array[tools]":
        return [
            {
                "provider_name": provider,
                "type": "builtin",
                "tool_name": "count_words",
                "tool_label": "Count words",
                "tool_description": "Counts the words of a text.",
                "enabled": True,
                "settings": {},
                "parameters": {"text": {"auto": 1, "value": None}},
                "extra": {"description": ""},
            }
        ]
    if parameter.name in TEXTS:
        return TEXTS[parameter.name]
    if not parameter.required or parameter.default is not None:
        return None
    return parameter.options[0].value if parameter.options else parameter.min or 0 if parameter.type == "number" else ""


@dataclass(frozen=True)
class InitOptions:
    kind: Kind = argument("{strategy|tool|flow}")
    name: str = argument("NAME")
    folder: Path | None = option("--folder DIR", "Where it is written; by default a folder with its name.")
    plugin: Path | None = option("--plugin DIR", "Of a flow, the strategy plugin of its agent; else the nearest.")
    author: str = option("--author NAME", "Your name in Dify's marketplace.", default="me", show_default=True)


@command(InitOptions)
def init(options: InitOptions) -> int:
    """Write a new plugin that runs, with a scenario and a test.

    Or a chatflow with an agent, a tool, an approval and a memory, with a script and a case that play.

    For example:
      devhost init strategy my_strategy
      devhost init tool my_tool --author my-name
      devhost init flow my_flow --plugin my_strategy
    """
    strategies = options.plugin
    if options.kind == "flow":
        strategies = strategies or nearest_strategy_plugin()
    elif strategies is not None:
        raise ParameterError("--plugin is for a flow, whose agent is a strategy of that plugin")
    folder = options.folder or Path(options.name)
    plugin = NewPlugin(options.kind, options.name, options.author, folder, strategies)
    for file in plugin.write():
        click.echo(file)
    click.echo(f"\nREADME.md in {plugin.folder} says how to run it.")
    if shutil.which("devhost") is None:
        click.echo(f'Its commands need devhost in your PATH: export PATH="{Path(sys.executable).parent}:$PATH"')
    return 0
