"""The message to the model: what the user wrote, and what the next turn has to know from the messages' data."""

import json
from collections.abc import Iterator, Sequence

from .messages import BackEndData, ChatMessage, FrontEndData

_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e"})
"""JSON that cannot close the block around it: a page or a name may hold anything."""


def message_to_model(text: str, front_end: FrontEndData, history: Sequence[ChatMessage]) -> str:
    """`history`: the messages before this one."""
    context = {**front_end.model_dump(exclude_defaults=True), **dict(_from_history(history))}
    written = json.dumps(context, ensure_ascii=False, indent=1).translate(_ESCAPES)
    return f"{text}\n\n<order_context>\n{written}\n</order_context>"


def _from_history(history: Sequence[ChatMessage]) -> Iterator[tuple[str, object]]:
    """Of each kind what was said last."""
    added = [message.data.back_end for message in reversed(history)]
    for name in ("saved_order_request_id", "referenced_order_request_id"):
        if found := next((value for data in added if (value := getattr(data, name)) is not None), None):
            yield name, found
    if judged := next((data for data in added if data.annotations), None):
        yield "second_reader", _annotations(judged)


def _annotations(data: BackEndData) -> list[object]:
    return [annotation.model_dump() for annotation in data.annotations]
