"""What a conversation waits for: a pure function over the turns of its trace and what is known of its child."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from devhost.conversation.state import KeptState
from devhost.node.outputs.run import Run

type Word = Literal["running", "question", "approval", "ended", "elsewhere", "over"]
"""`ended`: its process ended. `elsewhere`: a process that is not this console's writes its trace. `over`: none does."""


@dataclass(frozen=True)
class ChildFacts:
    told: int
    """How many lines it got: each is a turn."""
    exit_code: int | None
    """None while it goes on."""
    converses: bool = True
    """Whether it is a chat; any other command has no input."""


@dataclass(frozen=True)
class State:
    word: Word
    calls: tuple[object, ...] = ()
    """Those that wait for approval, as the run put them out."""


def state_of(ended: Iterable[Run], child: ChildFacts | None, *, is_written: bool = False) -> State:
    """`ended`: the turns of the trace that have an end, in order; `is_written`: by any process."""
    runs = list(ended)
    if child is None:
        return State("elsewhere" if is_written else "over")
    if child.exit_code is not None:
        return State("ended")
    if not child.converses or child.told > len(runs):
        return State("running")
    kept = KeptState()
    for run in runs:
        kept = kept.after(run)
    return State("approval", kept.waiting) if kept.waiting else State("question")
