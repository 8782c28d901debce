"""Virtual tools. The host never runs them: a call submits something to the agent, or reads the agent's own data."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from internal.errors import InvalidParameters, OurWords
from internal.json_values import is_large_integer, rebuilt, scalars
from internal.node.schema import REMARKS, Check, Problem, SchemaUnusable, check_of, resolve
from internal.node.tools import Lookup, Tool
from internal.text.texts import looks_like_selector, missing_variable, read_pasted, without_escaped_nul
from internal.tooling import NoObjectError, UnwritableError, parse_object
from prompt import template, tool_errors

SUBMIT_ANSWER = "submit_answer"
SUBMIT_PLAN = "submit_plan"
SUBMIT_REFLECTION = "submit_reflection"
SUBMIT_REVIEW = "submit_review"
READ_RESULT = "read_result"
FIND_TOOLS = "find_tools"
READ_SKILL = "read_skill"
SUBMISSIONS = frozenset({SUBMIT_ANSWER, SUBMIT_PLAN, SUBMIT_REFLECTION, SUBMIT_REVIEW})
"""Tools with which the model submits something."""
LOOKUPS = frozenset({READ_RESULT, FIND_TOOLS, READ_SKILL})
"""Tools that the agent answers from its own data. The user and later runs do not see their calls as tool calls."""
NOT_RESULTS = SUBMISSIONS | {FIND_TOOLS, READ_SKILL}
"""Tools whose results are not evidence for an answer."""
RESERVED_NAMES = SUBMISSIONS | LOOKUPS
"""Names that no tool of the node may have."""
MAX_WANTED_LENGTH = 200
"""Maximum characters of one search text."""


def plan_tool(maximum_subtasks: int) -> Tool:
    subtasks = _texts(template.SUBTASKS_DESCRIPTION, minItems=1, maxItems=maximum_subtasks)
    return _virtual(SUBMIT_PLAN, template.SUBMIT_PLAN_DESCRIPTION, _closed({"subtasks": subtasks}, _blank_subtasks))


def reflection_tool() -> Tool:
    properties = {
        "is_completed": {"type": "boolean", "description": template.IS_COMPLETED_DESCRIPTION},
        "advice": {"type": "string", "description": template.ADVICE_DESCRIPTION},
    }
    return _virtual(SUBMIT_REFLECTION, template.SUBMIT_REFLECTION_DESCRIPTION, _closed(properties))


def review_tool() -> Tool:
    properties = {
        "passes": {"type": "boolean", "description": template.PASSES_DESCRIPTION},
        "problems": _texts(template.PROBLEMS_DESCRIPTION),
    }
    return _virtual(SUBMIT_REVIEW, template.SUBMIT_REVIEW_DESCRIPTION, _closed(properties, _unnamed_problems))


def read_result_tool(lookup: Lookup) -> Tool:
    """Return the tool that reads more of a long result. A call has either ``offset`` or ``find``."""
    properties = {
        "id": {"type": "string", "description": template.RESULT_ID_DESCRIPTION},
        "offset": {"type": "integer", "minimum": 0, "description": template.OFFSET_DESCRIPTION},
        "find": {"type": "string", "maxLength": MAX_WANTED_LENGTH, "description": template.FIND_DESCRIPTION},
    }
    check = _closed(properties, _offset_and_find, required=["id"])
    return _virtual(READ_RESULT, template.READ_RESULT_DESCRIPTION, check, lookup)


def find_tools_tool(count: int, lookup: Lookup) -> Tool:
    """Return the tool that finds other tools. ``count`` is the number of tools that prompts do not offer at first."""
    query = {"type": "string", "maxLength": MAX_WANTED_LENGTH, "description": template.TOOL_QUERY_DESCRIPTION}
    return _virtual(FIND_TOOLS, template.FIND_TOOLS_DESCRIPTION.format(count=count), _closed({"query": query}), lookup)


def read_skill_tool(names: Iterable[str], lookup: Lookup) -> Tool:
    name = {"type": "string", "enum": list(names), "description": template.SKILL_NAME_DESCRIPTION}
    return _virtual(READ_SKILL, template.READ_SKILL_DESCRIPTION, _closed({"name": name}), lookup)


def answer_tool(answer_schema: str) -> Tool:
    """Return the tool whose arguments are the answer.

    Raises ``InvalidParameters`` unless the text is the schema of an object.
    """
    if looks_like_selector(answer_schema):
        raise InvalidParameters(f"parameter 'answer_schema': {missing_variable(answer_schema)}")
    try:
        schema = parse_object(without_escaped_nul(read_pasted(answer_schema)), advice="")
        _ = check_of(schema)  # The check also ensures that all references can be followed.
        check = check_of(_as_object(schema))
    except NoObjectError as problem:
        wanted = "it must be the JSON Schema of an object"
        raise InvalidParameters(f"parameter 'answer_schema': {wanted}; {problem}") from None
    except (UnwritableError, SchemaUnusable) as problem:
        raise InvalidParameters(f"parameter 'answer_schema': {problem}") from None
    return _virtual(SUBMIT_ANSWER, template.SUBMIT_ANSWER_DESCRIPTION, check)


def _as_object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a usable schema with its type at the top level, where model APIs expect it, and not in a reference."""
    top = dict(schema)
    while reference := top.pop("$ref", None):  # a usable schema has no reference cycle here
        target = resolve(schema, reference)
        if isinstance(target, Mapping) and top.keys() & target.keys() - REMARKS:
            top["allOf"] = [*top.get("allOf", ()), {"$ref": reference}]
        elif isinstance(target, Mapping):
            top = {**target, **top}
    if "object" not in top.get("type", "object"):
        raise SchemaUnusable(f"it must describe an object, and its type is {top['type']!r}")
    return {**top, "type": "object"}


def _closed(
    properties: Mapping[str, Any],
    more: Callable[[Any], Iterator[Problem]] | None = None,
    required: Sequence[str] | None = None,
) -> Check:
    check = check_of(
        {
            "type": "object",
            "properties": properties,
            "required": list(properties) if required is None else required,
            "additionalProperties": False,
        }
    )
    if more:
        return check.stricter(more)
    return check


def _texts(description: str, **limits: int) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string", "minLength": 1}, **limits, "description": description}


def _blank_subtasks(plan: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem for each blank subtask. A pattern could check this, but its error would be harder to read."""
    if not all(name.strip() for name in plan["subtasks"]):
        yield Problem(("subtasks",), tool_errors.BLANK_SUBTASK)


def _unnamed_problems(review: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem if a failed review does not name any problems, because the rewrite needs them."""
    if not review["passes"] and not any(problem.strip() for problem in review["problems"]):
        yield Problem(("problems",), tool_errors.NO_PROBLEM_NAMED)


def _offset_and_find(arguments: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem if both are used. Models that fill in every argument write 0 or "" for the unused one."""
    if arguments.get("offset") and arguments.get("find"):
        yield Problem((), template.OFFSET_OR_FIND)


def _virtual(name: str, description: str, check: Check, lookup: Lookup | None = None) -> Tool:
    return Tool(name, name, provider="", description=description, check=check, lookup=lookup)


# An answer with a schema, as the node's variable. The text has the unchanged answer.


@dataclass(frozen=True)
class StructuredOutput:
    """An answer as an object, checked against a schema if the node sets one."""

    answer: Mapping[str, Any] | None = None
    """The answer as a model or a tool gave it; None if none satisfies the schema."""
    variable: Mapping[str, Any] | None = None
    """The answer in a form that the host can store without rounding, if possible."""
    note: OurWords | None = None

    @classmethod
    def of(cls, answer: Mapping[str, Any] | None, check: Check | None) -> "StructuredOutput":
        """Turn large integers into text if the schema allows it, because the daemon reads numbers as floats."""
        large = list(filter(is_large_integer, scalars(answer)))
        if answer is None or not large:
            return cls(answer, answer)
        texts = rebuilt(answer, _large_as_text)
        if check is None or check.surely_accepts(texts):
            return cls(answer, texts)
        if any(abs(number) > sys.float_info.max for number in large):
            return cls(answer, None, OurWords("structured_output is null: a number in it is too large for the host"))
        if len(large) == 1:
            integers = "1 integer"
        else:
            integers = f"{len(large)} integers"
        note = f"structured_output: the host rounds {integers} above 2^53; the answer's text is exact"
        return cls(answer, answer, OurWords(note))


def _large_as_text(value: object, _name: str) -> object:
    if is_large_integer(value):
        return str(value)
    return value
