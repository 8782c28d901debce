"""The parameters of an offered tool, as a table says them.

In: a tool with its JSON Schema. Out: a row for each parameter at the top of the schema; what is nested only the schema
itself says.
"""

import json
from dataclasses import dataclass

from devhost.page.calls.opened import OfferedTool


@dataclass(frozen=True)
class ParameterRow:
    name: str
    type: str
    is_required: bool
    description: str


def parameter_rows(tool: OfferedTool) -> list[ParameterRow]:
    """Empty if the schema, which may come from any plugin, has no properties."""
    schema = json.loads(tool.schema)
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return []
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    return [_row(name, value, is_required=name in needed) for name, value in properties.items()]


def _row(name: str, schema: object, *, is_required: bool) -> ParameterRow:
    given = schema if isinstance(schema, dict) else {}
    return ParameterRow(name, type_words(schema), is_required, str(given.get("description") or ""))


def type_words(schema: object) -> str:
    """Such as "string or null", "array of integer", or `one of "a", "b"`; "any" where the schema says none."""
    match schema:
        case {"enum": list(options)}:
            return f"one of {', '.join(json.dumps(option, ensure_ascii=False) for option in options)}"
        case {"anyOf": list(options)} | {"oneOf": list(options)}:
            return " or ".join(dict.fromkeys(map(type_words, options)))
        case {"type": "array", "items": dict(items)}:
            return f"array of {type_words(items)}"
        case {"type": list(types)}:
            return " or ".join(map(str, types))
        case {"type": str(name)}:
            return name
        case _:
            return "any"
