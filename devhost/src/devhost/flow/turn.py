"""What a turn of a flow is played with, and the engine that plays it."""

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

# What the user says, and what devhost puts in the place of Dify's services.


@dataclass(frozen=True)
class FlowTurn:
    """One message of a conversation, or the one run of a workflow."""

    query: str = ""
    inputs: Mapping[str, object] = field(default_factory=dict)
    """The fields of the Start node, by variable; a field for files has a `LocalFile`, or a list of them."""
    files: Sequence[LocalFile] = ()
    """`sys.files`."""
    conversation_id: str = ""
    dialogue_count: int = 1
    """1 in the first turn, as Dify counts."""
    conversation: Mapping[str, object] = field(default_factory=dict)
    """Conversation variables that an earlier turn has set, by name; the others have the file's values."""
    history: Sequence[JsonObject] = ()
    """The messages of the turns before, all of them: each node with memory gets as many as its settings allow."""


type Heard = Callable[[FlowNode, Literal["llm", "tool"], JsonObject, Iterator[JsonObject]], Iterator[JsonObject]]
"""Hands on the answer to what a node asks of a model or a tool itself."""


def unheard(_node: FlowNode, _kind: str, _request: JsonObject, answer: Iterator[JsonObject], /) -> Iterator[JsonObject]:
    return answer


@dataclass(frozen=True)
class TurnContext:
    host: ToolHost | None
    """A `Host` if the flow has Agent nodes; None only for a flow without plugins and files."""
    model: ModelOfNode
    others: Sequence[Tool] = ()
    """Tools beside those of the host, in place of others of their name: of a recording, of Dify, of the script."""
    answers: GivenAnswers = field(default_factory=dict)
    """To the forms of the flow."""
    ask: Ask | None = None
    """For forms without a given answer."""
    knowledge: Knowledge = field(default_factory=dict)
    stop: Stop | None = None
    """Ends the turn from outside."""
    allowed: OutsideAccess = NOTHING
    heard: Heard = unheard

    @property
    def tools(self) -> Sequence[Tool]:
        return (*(() if self.host is None else self.host.tools), *self.others)


type FlowEngine = Callable[[FlowFile, FlowTurn, TurnContext], Iterator[FlowEvent]]
"""Plays one turn; the last event is a `FlowEnded`."""


# Where Dify's workflow engine is: in devhost's own environment, or in `.venv-flow` of the repository.
#
# The first `devhost flow` makes `.venv-flow`. Nothing else of devhost needs the engine.


def go_on_in_flow_environment(arguments: Sequence[str], repository: Path | None = REPOSITORY) -> NoReturn:
    """Makes the environment when it is missing or out of date; HostError if that fails."""
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
    os.execv(python, devhost_command(python, arguments))  # noqa: S606 - its own interpreter


def has_engine() -> bool:
    """Whether this interpreter's environment has the engine."""
    return importlib.util.find_spec("graphon") is not None


def load_engine() -> FlowEngine:
    return cast("FlowEngine", importlib.import_module("devhost.flow.engine.play").play)


def asked_engine(file: FlowFile) -> list[str] | None:
    """What it does not take of the file; None where no environment has it. It plays nothing."""
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
