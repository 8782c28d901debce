"""Plays a case, a flow's script that names its flow, beside what it expects.

    with Host.start(PLUGIN, tools=[TOOLS]) as host:
        assert failed_expectations(Path("cases/order.yaml"), host) == []

In: the script and a host. Out: each turn as it ends, with a sentence for each expectation that failed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from devhost.files.local_file import local_files
from devhost.flow.cases.case import FlowCase
from devhost.flow.cases.checking import checks
from devhost.flow.cases.outcome import Outcome
from devhost.flow.chat.conversation import FlowConversation
from devhost.flow.document import FlowFile
from devhost.flow.engine_loading import load_engine
from devhost.flow.expectations.expected import FlowExpected
from devhost.flow.outside.allowed import NOTHING, Allowed
from devhost.flow.script import TurnScript
from devhost.flow.view.watching import PlayedTurn, watched
from devhost.host.tool_host import ToolHost
from devhost.text.secrets import Secrets


@dataclass(frozen=True)
class CaseTurn:
    said: TurnScript
    played: PlayedTurn
    failures: tuple[str, ...]
    """A sentence for each expectation that failed: what was expected, what came, where."""

    @property
    def has_expectations(self) -> bool:
        return self.said.expect is not None


def failed_expectations(script: Path, host: ToolHost | None = None, allowed: Allowed = NOTHING) -> list[str]:
    """Of all turns. `host` runs the tools and strategies of the flow, if it has any; needs the workflow engine.

    `allowed`: whether HTTP request and code nodes run.
    """
    case = FlowCase.read(script, None if host is None else host.limits)
    return [sentence for turn in case_turns(case, host, allowed) for sentence in turn.failures]


def case_turns(case: FlowCase, host: ToolHost | None, allowed: Allowed = NOTHING) -> Iterator[CaseTurn]:
    """After a turn that failed the user goes on, as in a chat."""
    conversation = FlowConversation(case.file, load_engine(), case.inputs)
    for number, said in enumerate(case.script.turns, start=1):
        events = conversation.play(said.query, case.around(host, said, allowed), local_files(said.files, case.limits))
        played = watched(events, lambda _: None, Secrets(case.file.secrets))
        yield CaseTurn(said, played, failures(case.file, said, played, number))


def failures(file: FlowFile, said: TurnScript, played: PlayedTurn, number: int) -> tuple[str, ...]:
    """`number`: of the turn, from 1. A turn that expects nothing has to succeed."""
    place = f"turn {number}" + (f" ({said.query})" if said.query else "")
    found = checks(said.expect or FlowExpected(), Outcome.of(played.nodes, played.ended), file)
    return tuple(f"{place}: {check.sentence}" for check in found if not check.passed)
