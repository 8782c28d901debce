"""The inputs and services of one turn of a flow, and the engine that plays it."""

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NoReturn, cast

from devhost.errors import HostError
from devhost.files import LocalFile
from devhost.flow.document import FlowFile
from devhost.flow.outside import NOTHING, OutsideAccess
from devhost.home import REPOSITORY, devhost_command
from devhost.host.host import ToolHost
from devhost.models.scripted.knowledge import Knowledge
from devhost.process.session import Stop
from devhost.protocol.wire import JsonObject
from devhost.script import Ask, GivenAnswers, ModelOfNode
from devhost.tools.tool import Tool
from devhost.trace.flow import FlowEvent, FlowNode

# The user's message, and devhost's replacements for Dify's services.


@dataclass(frozen=True)
class FlowTurn:
    """One message of a conversation, or the single run of a workflow."""

    query: str = ""
    inputs: Mapping[str, object] = field(default_factory=dict)
    """The values of the Start node's fields, by variable. A file field has a `LocalFile` or a list of them."""
    files: Sequence[LocalFile] = ()
    """The files of the message, which are the value of `sys.files`."""
    conversation_id: str = ""
    dialogue_count: int = 1
    """The number of the turn. As in Dify, the first turn is 1."""
    conversation: Mapping[str, object] = field(default_factory=dict)
    """Conversation variables that an earlier turn has set, by name. Other variables have the file's values."""
    history: Sequence[JsonObject] = ()
    """All messages of the earlier turns. Each node with memory gets as many as its settings allow."""


type Heard = Callable[[FlowNode, Literal["llm", "tool"], JsonObject, Iterator[JsonObject]], Iterator[JsonObject]]
"""A callback that receives each call that a node itself makes to a model or a tool, and passes the answer on."""


def unheard(_node: FlowNode, _kind: str, _request: JsonObject, answer: Iterator[JsonObject], /) -> Iterator[JsonObject]:
    """Passes the answer on without recording anything."""
    return answer


@dataclass(frozen=True)
class TurnContext:
    """The services that the nodes of a turn use, and what the nodes may do."""

    host: ToolHost | None
    """A `Host` if the flow has Agent nodes. None is allowed only for a flow without plugins and files."""
    model: ModelOfNode
    others: Sequence[Tool] = ()
    """Recorded tools, Dify's own tools, and tools of the script, which replace host tools of the same name."""
    answers: GivenAnswers = field(default_factory=dict)
    """The given answers to the flow's forms."""
    ask: Ask | None = None
    """Asks a person for the answer to a form that has no given answer."""
    knowledge: Knowledge = field(default_factory=dict)
    stop: Stop | None = None
    """Lets the caller end the turn early."""
    allowed: OutsideAccess = NOTHING
    heard: Heard = unheard

    @property
    def tools(self) -> Sequence[Tool]:
        return (*(() if self.host is None else self.host.tools), *self.others)


type FlowEngine = Callable[[FlowFile, FlowTurn, TurnContext], Iterator[FlowEvent]]
"""A function that plays one turn and yields its events. The last event is a `FlowEnded`."""


# Dify's workflow engine is installed either in devhost's own environment or in the repository's `.venv-flow`.
#
# The first `devhost flow` creates `.venv-flow`. No other part of devhost needs the engine.


def go_on_in_flow_environment(arguments: Sequence[str], repository: Path | None = REPOSITORY) -> NoReturn:
    """Restarts the command in the engine's environment, after creating or updating that environment if necessary.

    Raises HostError if this fails.
    """
    if repository is None:
        raise HostError(
            "a flow runs on Dify's workflow engine, which is not installed: pip install 'dify-devhost[flow]', with "
            "Python 3.12 or 3.13"
        )
    set_up = repository / "scripts" / "setup"
    python = str(repository / ".venv-flow" / "bin" / "python")
    made = subprocess.run([str(set_up), "flow"], check=False, stdout=sys.stderr)
    if made.returncode:
        raise HostError(f"{set_up} flow could not make the environment of the workflow engine; see above")
    os.execv(python, devhost_command(python, arguments))  # noqa: S606 - starts a known interpreter


def has_engine() -> bool:
    """Returns whether this interpreter's environment has the engine."""
    return importlib.util.find_spec("graphon") is not None


def load_engine() -> FlowEngine:
    return cast("FlowEngine", importlib.import_module("devhost.flow.engine.play").play)


def asked_engine(file: FlowFile) -> list[str] | None:
    """Returns the engine's objections to a file without playing it, or None if the engine cannot be asked."""
    if has_engine():
        refusals: list[str] = importlib.import_module("devhost.flow.engine.judge").refusals(file)
        return refusals
    python = REPOSITORY and REPOSITORY / ".venv-flow" / "bin" / "python"
    if python is None or not python.is_file():
        return None
    command = [str(python), "-P", "-m", "devhost.flow.engine.judge", str(file.path)]
    asked = subprocess.run(command, check=False, capture_output=True, text=True)
    if asked.returncode:
        return None
    return list(json.loads(asked.stdout))
