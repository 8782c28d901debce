"""What authors of tools, or Dify on the way, got wrong in a parameter's schema."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from internal.schema.check import MAX_SCHEMAS
from internal.schema.fitting import names_of_type
from internal.schema.measure import pattern_size
from internal.schema.references import REFERENCES, SchemaUnusable, resolve, rewritten
from internal.text.notes import Note, Quoting, Sentence

_REMARKS = frozenset({"title", "description", "$comment", "$defs", "definitions", "$schema"})
"""Keywords that check nothing."""


def repaired(own: Mapping[str, Any], note: Note) -> dict[str, Any]:
    """A parameter's schema without what no check could follow, and a note on each such place.

    Dify drops ``$defs`` of MCP servers, so that references lead nowhere. Options at an array are meant for its items.

    Raises:
        SchemaUnusable: nothing is left of it.
    """
    try:
        schema, notes = _repaired(json.dumps(own))
    except RecursionError:
        raise SchemaUnusable("nested too deeply") from None
    for each in notes:
        note(each)
    return schema


@lru_cache(maxsize=MAX_SCHEMAS)
def _repaired(text: str) -> tuple[dict[str, Any], tuple[Sentence, ...]]:
    """Kept, since a node's tools are the same in every run."""
    own, notes = json.loads(text), list[Sentence]()
    schema = rewritten(own, lambda part: _with_options_of_items(_checkable(part, own, notes.append)))
    if not schema.keys() - _REMARKS:
        raise SchemaUnusable("; ".join([*notes, "nothing is left of it"]))
    return schema, tuple(notes)


def _checkable(part: Mapping[str, Any], root: Mapping[str, Any], note: Note) -> Mapping[str, Any]:
    """The part without references that cannot be followed and patterns that cannot be matched."""
    lost = []
    for keyword in (*REFERENCES, "pattern"):
        if isinstance(said := part.get(keyword), str):
            try:
                _ = pattern_size(said) if keyword == "pattern" else resolve(root, said)
            except SchemaUnusable as reason:
                note(Quoting(f"nothing is checked there: {reason}"))
                lost.append(keyword)
    return {key: value for key, value in part.items() if key not in lost} if lost else part


def _with_options_of_items(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part with options that stand at an array, and are not arrays, at its items."""
    options, kinds, items = part.get("enum"), {*names_of_type(part)}, part.get("items")
    if not (isinstance(options, list) and options and "array" in kinds and kinds <= {"array", "null"}):
        return part
    if any(isinstance(option, list | dict) for option in options):
        return part
    meant = {"enum": [option for option in options if option is not None or "null" not in kinds]}
    inside = {**meant, **items} if isinstance(items, Mapping) else meant
    return {**{key: value for key, value in part.items() if key != "enum"}, "items": inside}
