"""Scripted turns whose calls are written as text, as a model without tool calls writes them."""

import copy
import json
from collections.abc import Iterable, Sequence
from typing import Any

from tests.support.host import Json, Step, When

IN_TEXT: Json = {"tool_calls": "text"}
"""The parameter that asks for this form."""


def block(name: str, arguments: str = "{}", fence: str = "```") -> str:
    """One call."""
    return f'{fence}tool_call\n{{"name": {json.dumps(name)}, "arguments": {arguments}}}\n{fence}'


def in_text(steps: Iterable[Step]) -> list[Step]:
    """The same turns with each call as a block at the place where it came."""
    return [_step_in_text(step) for step in steps]


def _step_in_text(step: Step) -> Step:
    if isinstance(step, When):
        return When(step.text, _turn_in_text(step.turn))
    return _turn_in_text(step)


def _turn_in_text(turn: Sequence[Any]) -> list[Any]:
    return [_item_in_text(item) for item in turn]


def _item_in_text(item: Any) -> Any:  # noqa: ANN401 - a chunk, a failure, or what happens between
    """A chunk with whole calls; its content has to be a text."""
    if not isinstance(item, dict):
        return item
    chunk: Json = item
    made = copy.deepcopy(chunk)
    message = made["delta"]["message"]
    entries = message.get("tool_calls") or ()
    blocks = [block(entry["function"]["name"], entry["function"]["arguments"] or "{}") for entry in entries]
    if blocks:
        message["tool_calls"] = []
        message["content"] = "\n".join([message["content"] or "", *blocks])
    return made
