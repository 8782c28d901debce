"""`devhost init` creates the folder of a new plugin or chatflow from the templates beside this module."""

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
from devhost.plugin.declaration import PluginDeclaration, nearest_strategy_plugin
from devhost.protocol.wire import JsonObject
from devhost.scaffold.flow_folder import QUESTION, AgentTools, Approval, FlowAgent
from devhost.text import real_path

type Kind = Literal["strategy", "tool", "flow"]

TEMPLATES = Path(__file__).parent / "templates"
SUFFIX = ".jinja"
NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
"""A valid name for a plugin and for a Python module. For a plugin, the daemon accepts `^[a-z0-9_-]{1,128}$`."""
SDK = "0.10.2"
"""The version of the SDK that a new plugin requires (November 2026)."""


@dataclass(frozen=True)
class NewPlugin:
    """A plugin or a chatflow to create."""

    kind: Kind
    name: str
    author: str
    folder: Path
    agent: FlowAgent | None = None
    """The agent of a flow; None for a plugin."""
    tools: AgentTools | None = None
    """The existing tools of a flow's agent; None if the flow comes with a new tool."""
    approval: Approval = "chat"
    """How calls of `tools` are approved."""
    asking: tuple[str, ...] = ()
    """The names of the tools whose calls need approval; empty for all tools."""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name) or not re.fullmatch(r"[a-z0-9_-]{1,64}", self.author):  # the daemon's pattern
            raise ParameterError(
                f"the name {self.name!r} must be small letters, digits and _, a letter first, and the author "
                f"{self.author!r} small letters, digits, _ and -, 64 at most"
            )

    def write(self) -> list[Path]:
        """Write the files and return their paths. Raises ParameterError if the folder is not empty."""
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise ParameterError(f"{self.folder} exists and is not empty: name another folder")
        home = TEMPLATES / self.kind
        if self.tools is not None:
            home = TEMPLATES / "flow_with_tools"
        environment = Environment(  # noqa: S701 - no template is HTML
            loader=FileSystemLoader([home, TEMPLATES]),
            undefined=StrictUndefined,
            keep_trailing_newline=True,
            trim_blocks=True,
        )
        environment.filters["json"] = partial(json.dumps, ensure_ascii=False)
        written = list[Path]()
        values = self._values
        if self.agent is not None and self.tools is not None:
            values |= self.tools.values(self.agent, self.approval, self.asking)
            values["folders"] = [self._path_to(plugin) for plugin in self.tools.plugins]
        elif self.agent is not None:
            tools = NewPlugin("tool", f"{self.name}_tools", self.author, self.folder / "tools")
            written += tools.write()
            values |= _with_new_tool(self.agent, PluginDeclaration.read(tools.folder))
        for template in sorted(path for path in home.rglob(f"*{SUFFIX}") if path.is_file()):
            name = template.relative_to(home).as_posix()
            file = self.folder / environment.from_string(name.removesuffix(SUFFIX)).render(values)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(environment.get_template(name).render(values), encoding="utf-8")
            written.append(file)
        return written

    @property
    def _values(self) -> JsonObject:
        """The values that every template may use."""
        words = self.name.split("_")
        values: JsonObject = {
            "name": self.name,
            "author": self.author,
            "title": " ".join(words).strip().capitalize(),
            "class_name": "".join(word.capitalize() for word in words),
            "today": datetime.now(UTC).date().isoformat(),
            "sdk": SDK,
        }
        if self.agent is not None:
            values["plugin"] = f" --plugin {shlex.quote(self._path_to(self.agent.plugin))}"
        return values

    def _path_to(self, plugin: PluginDeclaration) -> str:
        """Return the path of a plugin relative to the new folder."""
        return os.path.relpath(real_path(plugin.directory), real_path(self.folder))


def _with_new_tool(agent: FlowAgent, tools: PluginDeclaration) -> JsonObject:
    given = {"query": QUESTION, "instruction": "Write what is asked for, in one line. Count its words."}
    return {**agent.values([tools]), "panels": {"agent": agent.panel(tools.tools, given)}}


@dataclass(frozen=True)
class InitOptions:
    kind: Kind = argument("{strategy|tool|flow}")
    name: str = argument("NAME")
    folder: Path | None = option("--folder DIR", "Where it is written; by default a folder with its name.")
    plugin: Path | None = option("--plugin DIR", "Of a flow, the strategy plugin of its agent; else the nearest.")
    tools: tuple[Path, ...] = option(
        "--tools DIR...", "A tool plugin whose tools a flow's agent gets; repeatable. By default a new one."
    )
    approval: Approval | None = option(
        "--approval [chat|form|none]",
        "Where calls of these tools wait for a yes: in the chat (default), in a form, or not at all.",
    )
    ask: tuple[str, ...] = option("--ask NAME...", "A tool that waits for a yes; repeatable. By default all do.")
    author: str = option("--author NAME", "Your name in Dify's marketplace.", default="me", show_default=True)

    def refuse_what_does_not_go_together(self) -> None:
        if self.kind != "flow" and self.plugin is not None:
            raise ParameterError("--plugin is for a flow, whose agent is a strategy of that plugin")
        if self.kind != "flow" and self.tools:
            raise ParameterError("--tools is for a flow, whose agent gets the tools of that plugin")
        if not self.tools and (self.approval is not None or self.ask):
            raise ParameterError("--approval and --ask need the tools that they are about: give --tools DIR")
        if self.approval == "none" and self.ask:
            raise ParameterError("--ask names tools that wait for a yes, and with --approval none no tool waits")


@command(InitOptions)
def init(options: InitOptions) -> int:
    """Write a new plugin that runs, with a scenario and a test.

    Or write a chatflow with an agent, a tool, an approval and a memory, with a script and a case that run.

    For example:
      devhost init strategy my_strategy
      devhost init tool my_tool --author my-name
      devhost init flow my_flow --plugin my_strategy
      devhost init flow my_desk --tools my_tool --approval form
    """
    options.refuse_what_does_not_go_together()
    agent = None
    tools = None
    if options.kind == "flow":
        agent = FlowAgent.of(PluginDeclaration.read(options.plugin or nearest_strategy_plugin()))
    if options.tools:
        tools = AgentTools(tuple(map(PluginDeclaration.read, options.tools)))
    folder = options.folder or Path(options.name)
    approval = options.approval or "chat"
    plugin = NewPlugin(options.kind, options.name, options.author, folder, agent, tools, approval, options.ask)
    for file in plugin.write():
        click.echo(file)
    for notice in () if tools is None else tools.notices:
        click.echo(f"notice: {notice}", err=True)
    click.echo(f"\nREADME.md in {plugin.folder} says how to run it.")
    if shutil.which("devhost") is None:
        click.echo(f'Its commands need devhost in your PATH: export PATH="{Path(sys.executable).parent}:$PATH"')
    return 0
