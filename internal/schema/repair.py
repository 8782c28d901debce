"""What authors of tools, or the host on the way, plainly got wrong in a parameter's schema.

In: the schema as it came. Out: the same schema without the part that no value could satisfy or no check could follow,
and a note on each; the schema around it stays. Dify drops ``$defs`` of MCP servers, so that references lead nowhere.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from internal.schema.check import MAX_SCHEMAS, Steps, Unchecked, check_of
from internal.schema.patterns import compiled
from internal.schema.references import REFERENCES, SchemaUnusable, resolve, rewritten
from internal.schema.types import names_of_type, possible_types
from internal.text.notes import Note, OurWords, Quoting, Sentence

_REMARKS = frozenset({"title", "description", "$comment", "$defs", "definitions", "$schema"})
"""Keywords that check nothing."""
_FOR_A_VALUE = frozenset({"properties", "items", "prefixItems", "additionalProperties"})
"""Keywords whose schemas speak of values that may well be there."""


def repaired(own: Mapping[str, Any], note: Note) -> dict[str, Any]:
    """A parameter's schema without its plain mistakes.

    Raises:
        SchemaUnusable: nothing is left of it, or no value can satisfy it.
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
    """A schema, given as JSON, without its mistakes, and the notes; kept, since a node's tools stay the same."""
    own, notes = json.loads(text), list[Sentence]()
    schema = rewritten(own, lambda part, _keyword: _with_options_of_items(_checkable(part, own, notes.append)))
    if not schema.keys() - _REMARKS:
        raise SchemaUnusable("; ".join([*notes, "nothing is left of it"]))
    return _satisfiable(schema, notes.append), tuple(notes)


def _checkable(part: Mapping[str, Any], root: Mapping[str, Any], note: Note) -> Mapping[str, Any]:
    """The part without references that cannot be followed and patterns that cannot be matched."""
    lost = []
    for keyword in (*REFERENCES, "pattern"):
        if isinstance(said := part.get(keyword), str):
            try:
                _ = compiled(said) if keyword == "pattern" else resolve(root, said)
            except SchemaUnusable as reason:
                note(Quoting(f"nothing is checked there: {reason}"))
                lost.append(keyword)
    return {key: value for key, value in part.items() if key not in lost} if lost else part


def _with_options_of_items(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part with options that stand at an array, and are none of it, at its items."""
    options = part.get("enum")
    kinds = {*names_of_type(part)}
    if not (isinstance(options, list) and options and "array" in kinds and kinds <= {"array", "null"}):
        return part
    if any(isinstance(option, list | dict) for option in options):
        return part
    items = part.get("items")
    of_items = [option for option in options if option is not None or "null" not in kinds]
    meant = items if isinstance(items, Mapping) and "enum" in items else {"enum": of_items}
    return {
        **{key: value for key, value in part.items() if key != "enum"},
        "items": {**items, **meant} if isinstance(items, Mapping) else meant,
    }


def _satisfiable(schema: dict[str, Any], note: Note) -> dict[str, Any]:
    """The schema without the parts of a value that no value could have.

    Raises:
        SchemaUnusable: no value can satisfy it as a whole.
    """
    check, steps = check_of(schema), Steps()
    replaced = []

    def change(part: Mapping[str, Any], keyword: str) -> Mapping[str, Any]:
        if keyword not in _FOR_A_VALUE or part == {"not": {}} or possible_types(part, check, steps):
            return part
        replaced.append(part)
        return {key: value for key, value in part.items() if key in {"title", "description"}}

    try:
        changed = rewritten(schema, change)
        check = check_of(changed) if replaced else check
        if not possible_types(changed, check, steps):
            raise SchemaUnusable("no value can satisfy it")
    except Unchecked:
        return schema
    if replaced:
        note(OurWords("nothing is checked where no value could satisfy it"))
    return dict(changed)
