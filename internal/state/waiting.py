"""What must hold of the calls in a state beyond the fields of its records.

In: a state that was read from a text. Out: nothing, or a ValueError. What waits, waits at the end of its conversation.
"""

from internal.state.records import EntryRecord, RoundRecord, State, UserRecord
from internal.text.fairness import in_turns
from internal.tooling import parse_object


def check_calls(state: State) -> None:
    """Refuse calls that no run could have left like this.

    Raises:
        ValueError: calls wait before the end of a conversation or under the same id, a plan has no question or
            waits for nothing, or arguments are not the text of a JSON object.
    """
    waiting = [call.id for call in state.waiting]
    if len(set(waiting)) < len(waiting):
        raise ValueError("two calls wait under one id")
    if state.plan and not (waiting and state.entries and isinstance(state.entries[-1], UserRecord)):
        raise ValueError("a plan without a question, or without a call that waits")
    for entries in state.conversations:
        _check_conversation(entries)


def _check_conversation(entries: tuple[EntryRecord, ...]) -> None:
    rounds = [entry for entry in entries if isinstance(entry, RoundRecord)]
    if any(entry.waiting for entry in rounds if entry is not entries[-1]):
        raise ValueError("a call waits before the end of its conversation")
    for call in in_turns(call for entry in rounds for call in entry.calls):
        parse_object(call.arguments)
