"""The optional variables of a run that had so many texts, and their size on the wire."""

import json
from typing import Any

from hypothesis import strategies as st

from internal.call import CallStatus, EndedCall, RejectedCall, ToolCall
from internal.errors import StopReason
from internal.events import CallsAnswered, RunSummary, Tally, Thought
from internal.memory.records import State, UserRecord
from internal.node.params import ExtraOutput
from internal.render.outputs import Variables
from internal.text.secrets import KnownSecrets, Redactor

KIB = 1024


CHARACTERS = st.sampled_from(["a", "é", "検", "\U0001f600", '"', "\n", "\x01"])
"""Of each width on the wire: one to six bytes."""


TEXTS = st.builds(lambda character, times: character * times, CHARACTERS, st.integers(0, 300_000))


def made(
    texts: list[str] | None = None, thoughts: list[str] | None = None, state: str = "", arguments: str = ""
) -> Variables:
    """The variables of a run with one call for each text, and a thought in each round."""
    written = json.dumps({"q": arguments})
    ended = [
        EndedCall(RejectedCall(ToolCall(f"call_{number}", "search", written), ""), CallStatus.OK, said)
        for number, said in enumerate(texts or ())
    ]
    tally = Tally(
        tool_rounds=[CallsAnswered(number, (call,)) for number, call in enumerate(ended, start=1)],
        thoughts=[Thought(number, said) for number, said in enumerate(thoughts or (), start=1)],
    )
    summary = RunSummary(
        *(StopReason.ANSWERED, 1, "Done.", tally),
        extra_outputs=frozenset(ExtraOutput),
        state=State(strategy="s", entries=(UserRecord(text=state),)),
    )
    return Variables.of(summary, KnownSecrets(Redactor()))


def size(value: object) -> int:
    """Bytes as the SDK writes them."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def rounds(entries: list[dict[str, Any]]) -> list[int]:
    return [entry["round"] for entry in entries]
