"""Tools that never run: by a call, the model hands over a plan, a judgement or an answer, or reads on in a result.

In: limits and the ``answer_schema`` parameter. Out: Tool values whose calls are parsed and validated like any other.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from internal.errors import InvalidParameters
from internal.schema.check import Problem, check_of
from internal.schema.fitting import allows
from internal.schema.references import SchemaUnusable, resolve
from internal.text.pasted import looks_like_selector, missing_variable, read_pasted
from internal.text.wellformed import without_escaped_nul
from internal.tooling import NoObjectError, UnwritableError, parse_object
from internal.tools.toolbox import Tool, ToolKind, VirtualSchema
from prompt import template

SUBMIT_ANSWER = "submit_answer"
SUBMIT_PLAN = "submit_plan"
SUBMIT_REFLECTION = "submit_reflection"
SUBMIT_REVIEW = "submit_review"
READ_RESULT = "read_result"
SUBMISSIONS = frozenset({SUBMIT_ANSWER, SUBMIT_PLAN, SUBMIT_REFLECTION, SUBMIT_REVIEW})
"""Tools by which the model hands something over; their results say nothing."""
RESERVED_NAMES = SUBMISSIONS | {READ_RESULT}
"""No tool of the node's may have one of these names."""
MAX_WANTED_LENGTH = 200
"""Characters that ``read_result`` looks for at once."""
_MAX_PROBLEMS = 10
"""Problems of one draft."""
_OVERWRITABLE = frozenset({"title", "description", "default", "examples", "$comment", "$defs", "definitions"})
"""Keywords that check nothing: what stands beside a reference says it better than the reference's target."""


def plan_tool(maximum_subtasks: int) -> Tool:
    subtasks = {
        "type": "array",
        "items": {"type": "string", "minLength": 1},
        "minItems": 1,
        "maxItems": maximum_subtasks,
        "description": template.SUBTASKS_DESCRIPTION,
    }
    schema = _closed_object({"subtasks": subtasks})
    arguments = VirtualSchema(schema, check_of(schema).stricter(_blank_subtasks))
    return _virtual(SUBMIT_PLAN, template.SUBMIT_PLAN_DESCRIPTION, arguments)


def reflection_tool() -> Tool:
    schema = _closed_object(
        {
            "is_completed": {"type": "boolean", "description": template.IS_COMPLETED_DESCRIPTION},
            "advice": {"type": "string", "description": template.ADVICE_DESCRIPTION},
        }
    )
    return _virtual(SUBMIT_REFLECTION, template.SUBMIT_REFLECTION_DESCRIPTION, VirtualSchema(schema, check_of(schema)))


def review_tool() -> Tool:
    problems = {
        "type": "array",
        "items": {"type": "string", "minLength": 1},
        "maxItems": _MAX_PROBLEMS,
        "description": template.PROBLEMS_DESCRIPTION,
    }
    schema = _closed_object(
        {"passes": {"type": "boolean", "description": template.PASSES_DESCRIPTION}, "problems": problems}
    )
    arguments = VirtualSchema(schema, check_of(schema).stricter(_unnamed_problems))
    return _virtual(SUBMIT_REVIEW, template.SUBMIT_REVIEW_DESCRIPTION, arguments)


def read_result_tool() -> Tool:
    """The tool that reads on in long results; of ``offset`` and ``find`` it takes one at a time."""
    schema = _closed_object(
        {
            "id": {"type": "string", "description": template.RESULT_ID_DESCRIPTION},
            "offset": {"type": "integer", "minimum": 0, "description": template.OFFSET_DESCRIPTION},
            "find": {"type": "string", "maxLength": MAX_WANTED_LENGTH, "description": template.FIND_DESCRIPTION},
        },
        required=["id"],
    )
    arguments = VirtualSchema(schema, check_of(schema).stricter(_offset_and_find))
    return _virtual(READ_RESULT, template.READ_RESULT_DESCRIPTION, arguments, ToolKind.READS)


def answer_tool(answer_schema: str) -> Tool:
    """The tool whose arguments are the answer.

    Raises:
        InvalidParameters: the text is not the JSON Schema of an object.
    """
    if looks_like_selector(answer_schema):
        raise InvalidParameters(f"parameter 'answer_schema': {missing_variable(answer_schema)}")
    try:
        schema = parse_object(without_escaped_nul(read_pasted(answer_schema)))
        check = check_of(schema)
        arguments = VirtualSchema(_as_object(schema), check)
    except NoObjectError as problem:
        wanted = "it must be the JSON Schema of an object"
        raise InvalidParameters(f"parameter 'answer_schema': {wanted}; {problem}") from None
    except (UnwritableError, SchemaUnusable) as problem:
        raise InvalidParameters(f"parameter 'answer_schema': {problem}") from None
    return _virtual(SUBMIT_ANSWER, template.SUBMIT_ANSWER_DESCRIPTION, arguments)


def _as_object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A checked schema with its type on top, where model APIs look for it; references there are written out."""
    top = {key: value for key, value in schema.items() if key != "$schema"}
    while isinstance(reference := top.pop("$ref", None), str):
        target = resolve(schema, reference)
        top = _both(top, target if isinstance(target, Mapping) else {})
    if not allows(schema, schema, "object"):
        reason = f"its type is {top['type']!r}" if "type" in top else "it allows none"
        raise SchemaUnusable(f"it must describe an object, and {reason}")
    return {**top, "type": "object"}


def _both(own: Mapping[str, Any], target: Mapping[str, Any]) -> dict[str, Any]:
    """What stands beside a reference together with the reference's target, whole once more if they differ."""
    both = {**target, **own}
    ours, theirs = own.get("properties", {}), target.get("properties", {})
    if ours and theirs:
        both["properties"] = {**theirs, **ours}
    if "required" in own and "required" in target:
        both["required"] = list(dict.fromkeys([*target["required"], *own["required"]]))
    if _differing(own, target) - _OVERWRITABLE - {"properties", "required"} or _differing(ours, theirs):
        both["allOf"] = [*own.get("allOf", ()), target]
    return both


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> set[str]:
    return {key for key in one.keys() & other.keys() if one[key] != other[key]}


def _closed_object(properties: Mapping[str, Any], required: Sequence[str] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }


def _blank_subtasks(plan: Mapping[str, Any]) -> Iterator[Problem]:
    """A pattern could say so, but in words that a model reads less easily."""
    if not all(name.strip() for name in plan["subtasks"]):
        yield Problem(("subtasks",), ": no subtask may be blank")


def _unnamed_problems(review: Mapping[str, Any]) -> Iterator[Problem]:
    """The rewrite has to know what was wrong."""
    if not review["passes"] and not any(problem.strip() for problem in review["problems"]):
        yield Problem(("problems",), ": name at least one problem of a draft that does not pass")


def _offset_and_find(arguments: Mapping[str, Any]) -> Iterator[Problem]:
    """Models that fill in every argument write 0 and an empty text for what they do not mean."""
    if arguments.get("offset") and arguments.get("find"):
        yield Problem((), template.OFFSET_OR_FIND)


def _virtual(name: str, description: str, schema: VirtualSchema, kind: ToolKind = ToolKind.HANDS_OVER) -> Tool:
    return Tool(name, name, provider="", description=description, virtual_schema=schema, kind=kind)
