"""Tools that nobody runs: their calls are how the model hands over a plan, a judgement, or an answer in a schema.

In: limits and the ``answer_schema`` parameter. Out: Tool values whose calls are parsed and validated like any other.
"""

import json
from collections.abc import Mapping
from typing import Any

from internal.errors import InvalidParameters
from internal.mcp_schema import SchemaUnusable, check_of, resolve
from internal.toolbox import ArgumentForm, Tool
from prompt import template

SUBMIT_ANSWER = "submit_answer"
SUBMIT_PLAN = "submit_plan"
SUBMIT_REFLECTION = "submit_reflection"
RESERVED_NAMES = frozenset({SUBMIT_ANSWER, SUBMIT_PLAN, SUBMIT_REFLECTION})
"""No tool of the node's may have one of these names."""


def plan_tool(maximum_subtasks: int) -> Tool:
    subtasks = {
        "type": "array",
        "items": {"type": "string", "minLength": 1},
        "minItems": 1,
        "maxItems": maximum_subtasks,
        "description": template.SUBTASKS_DESCRIPTION,
    }
    return _virtual(SUBMIT_PLAN, template.SUBMIT_PLAN_DESCRIPTION, {"subtasks": subtasks})


def reflection_tool() -> Tool:
    properties = {
        "is_completed": {"type": "boolean", "description": template.IS_COMPLETED_DESCRIPTION},
        "advice": {"type": "string", "description": template.ADVICE_DESCRIPTION},
    }
    return _virtual(SUBMIT_REFLECTION, template.SUBMIT_REFLECTION_DESCRIPTION, properties)


def answer_tool(answer_schema: str) -> Tool:
    """The tool whose arguments are the answer.

    Raises:
        InvalidParameters: the text is no JSON Schema of an object.
    """
    try:
        schema = json.loads(answer_schema)
        shown = _as_object(schema)
        check = check_of(schema)
    except (ValueError, RecursionError) as problem:
        raise InvalidParameters(f"parameter 'answer_schema': not JSON ({problem})") from None
    except SchemaUnusable as problem:
        raise InvalidParameters(f"parameter 'answer_schema': {problem}") from None
    return Tool(
        SUBMIT_ANSWER,
        SUBMIT_ANSWER,
        provider="",
        description=template.SUBMIT_ANSWER_DESCRIPTION,
        form=ArgumentForm(shown, check),
    )


def _as_object(schema: object) -> dict[str, Any]:
    """The schema with its type on top, where model APIs look for it; a reference there is written out."""
    if not isinstance(schema, dict):
        raise SchemaUnusable("it must be a JSON Schema of an object, written as a JSON object")
    top = {key: value for key, value in schema.items() if key != "$schema"}
    reference = top.pop("$ref", None)
    if isinstance(reference, str):
        target = resolve(schema, reference)
        top = {**(target if isinstance(target, Mapping) else {}), **top}
    if top.get("type", "object") != "object":
        raise SchemaUnusable(f"it must describe an object, and its type is {top['type']!r}")
    return {**top, "type": "object"}


def _virtual(name: str, description: str, properties: Mapping[str, Any]) -> Tool:
    schema = {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
    return Tool(name, name, provider="", description=description, form=ArgumentForm(schema, check_of(schema)))
