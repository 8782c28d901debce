"""The fields of the Start node: what the command line and the script give, as Dify's form would take it."""

from collections.abc import Iterable, Iterator, Mapping

from devhost.flow.document import FlowFile, FlowNode
from devhost.protocol.wire import JsonObject
from devhost.scenario.settings import json_or_text, pairs

TEXTS = frozenset({"text-input", "paragraph"})
TYPED = TEXTS | {"select"}
FILES = frozenset({"file", "file-list"})


def start_fields(file: FlowFile) -> Mapping[str, JsonObject]:
    """By the variable's name, in the order of the form."""
    return {
        str(field["variable"]): field
        for node in file.nodes.values()
        if node.type == "start"
        for field in _listed(node)
        if isinstance(field, dict) and "variable" in field
    }


def typed_inputs(file: FlowFile, assignments: Iterable[str]) -> JsonObject:
    """`--input KEY=VALUE` pairs: a text field holds what is typed, other fields hold what the JSON says."""
    fields = start_fields(file)
    return {
        name: text if fields.get(name, {}).get("type") in TYPED else json_or_text(text)
        for name, text in pairs(assignments, "--input")
    }


def wrong_inputs(file: FlowFile, given: Mapping[str, object]) -> Iterator[str]:
    fields = start_fields(file)
    for name in given:
        if name not in fields:
            yield f"--input {name}: the Start node has no such field; it has: {', '.join(fields) or 'none'}"
    for name, field in fields.items():
        value = given.get(name, field.get("default"))
        if field.get("required") and value in (None, "", []):
            yield f"the Start node needs the field {name!r} ({field.get('type')}): give it with --input {name}=VALUE"
        elif name in given and (problem := _problem(field, given[name])):
            yield f"--input {name}: {problem}"


def filled_inputs(file: FlowFile, given: Mapping[str, object]) -> JsonObject:
    """With the defaults of the form."""
    return {name: given.get(name, field.get("default")) for name, field in start_fields(file).items()}


def _listed(node: FlowNode) -> list[object]:
    variables = node.data.get("variables")
    return variables if isinstance(variables, list) else []


def _problem(field: JsonObject, value: object) -> str | None:  # noqa: C901 - one case per type of field
    kind, most = field.get("type"), field.get("max_length")
    if value is None or kind in FILES:
        return None
    if kind in TEXTS:
        if not isinstance(value, str):
            return f"{value!r} must be a text"
        if isinstance(most, int) and len(value) > most > 0:
            return f"the text has {len(value)} characters, and the field takes {most} at most"
    elif kind == "number":
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"{value!r} must be a number"
    elif kind == "checkbox":
        if not isinstance(value, bool):
            return f"{value!r} must be true or false"
    elif kind == "select":
        options = field.get("options") or []
        if value not in options:
            return f"{value!r} is not one of the options: {', '.join(map(str, options))}"
    elif kind == "json_object" and not isinstance(value, dict):
        return f"{value!r} must be a JSON object"
    return None
