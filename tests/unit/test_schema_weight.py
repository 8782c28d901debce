"""A check of a value is bounded: what would take too long is not begun."""

from typing import Any

import pytest

from internal.schema.check import Unchecked, check_of
from internal.schema.references import SchemaUnusable
from internal.schema.weight import weigh

R = {"$ref": "#/$defs/a"}
INTEGER = {"type": "integer"}
BRANCH = {"type": "object", "properties": {"a": R}}


def fits(schema: dict[str, Any], value: object) -> bool:
    return check_of(schema).is_satisfied_by(value)


def deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [BRANCH, {**BRANCH, "required": ["y"]}, INTEGER]},
        {"anyOf": [{**BRANCH, "required": ["y"]}, BRANCH, INTEGER]},
        {"allOf": [{"properties": {"a": R}}, {"properties": {"a": R}}]},
        {"allOf": [{"properties": {"a": R}}, {"additionalProperties": R}, {"patternProperties": {"a": R}}]},
        {"not": {"not": {"allOf": [{"properties": {"a": R}}] * 9}}},
    ],
    ids=["oneOf", "anyOf", "allOf", "by several keywords", "not"],
)
def test_choices_within_choices_of_a_recursive_schema_are_checked(schema: dict[str, Any]) -> None:
    """Were each level to double the work, this test would not end."""
    assert fits({**R, "$defs": {"a": schema}}, deep(60))


EXPENSIVE: dict[str, tuple[dict[str, Any], object]] = {
    "many parts": ({"items": {"minimum": 0}}, [1] * 200_000),
    "objects as options": ({"items": {"enum": [{"a": n} for n in range(400)]}}, [{"a": 399}] * 1_000),
    "fractions as options": ({"items": {"enum": [n + 0.5 for n in range(400)]}}, [399.5] * 1_000),
    "alternatives": ({"items": {"anyOf": [{"const": n} for n in range(400)]}}, [399] * 1_000),
    "multiples": ({"items": {"allOf": [{"multipleOf": 0.01}] * 400}}, [3.21] * 1_000),
    "large integers that are to differ": ({"uniqueItems": True}, [10**30 + n for n in range(5_000)]),
    "names by many patterns": ({"patternProperties": {f"[a-y]{n}$": {} for n in range(400)}}, {"x" * 9_000: 1}),
}


@pytest.mark.parametrize(("schema", "value"), EXPENSIVE.values(), ids=EXPENSIVE)
def test_a_check_that_takes_too_long_is_not_begun(schema: dict[str, Any], value: object) -> None:
    with pytest.raises(Unchecked):
        fits(schema, value)


CHEAP: dict[str, tuple[dict[str, Any], object]] = {
    "a large table": (
        {"items": {"type": "object", "properties": {"id": INTEGER, "name": {"type": "string"}}, "required": ["id"]}},
        [{"id": n, "name": f"name {n}"} for n in range(40_000)],
    ),
    "a long text": ({"type": "string", "maxLength": 3_000_000}, "x" * 2_000_000),
    "countries": ({"items": {"enum": [f"c{n}" for n in range(4_000)]}}, ["c3999"] * 50_000),
    "items that are to differ": ({"uniqueItems": True}, list(range(10_000))),
    "alternatives": ({"items": {"anyOf": [{"const": n} for n in range(50)]}}, [49] * 100),
    "money": ({"items": {"multipleOf": 0.01}}, [19.99] * 2_000),
}


@pytest.mark.heavy
@pytest.mark.parametrize(("schema", "value"), CHEAP.values(), ids=CHEAP)
def test_what_people_ask_for_is_checked(schema: dict[str, Any], value: object) -> None:
    assert fits(schema, value)


def test_parts_that_are_no_alternatives_weigh_no_more_than_the_heaviest() -> None:
    one = weigh({"properties": {"a": {"enum": [0.5]}}})
    many = weigh({"properties": {f"a{n}": {"enum": [0.5]} for n in range(100)}})
    together = weigh({"allOf": [{"properties": {f"a{n}": {"enum": [0.5]}}} for n in range(100)]})

    assert many.steps == one.steps
    assert together.steps > 50 * one.steps


def test_what_a_schema_does_not_name_weighs_more_the_deeper_it_stands() -> None:
    schema: dict[str, Any] = {"properties": {"a": {}}}
    for _ in range(20):
        schema = {"allOf": [schema], "unevaluatedProperties": False}

    with pytest.raises(SchemaUnusable, match="too large"):
        check_of(schema)


def test_what_closed_kinds_of_a_tree_do_not_name_weighs_no_more_for_their_number() -> None:
    """As TypeSpec writes them: each kind is closed, and none lies within another for the same value."""
    nodes = {"type": "array", "items": {"$ref": "#/$defs/node"}}
    kinds: dict[str, Any] = {
        f"kind{n}": {"properties": {"kind": {"const": n}, "nodes": nodes}, "unevaluatedProperties": False}
        for n in range(12)
    }
    kinds["node"] = {"anyOf": [{"$ref": f"#/$defs/{kind}"} for kind in kinds]}

    check = check_of({"$ref": "#/$defs/node", "$defs": kinds})

    assert check.is_satisfied_by({"kind": 1, "nodes": [{"kind": 2}]})
    assert not check.is_satisfied_by({"kind": 1, "nodes": [{"kind": 2, "other": 0}]})


def test_what_a_recursive_schema_does_not_name_weighs_more_the_deeper_it_stands() -> None:
    kinds: dict[str, Any] = {"kind0": {"properties": {"node": {"$ref": "#"}}}}
    for n in range(12):
        kinds[f"kind{n + 1}"] = {"allOf": [{"$ref": f"#/$defs/kind{n}"}], "unevaluatedProperties": False}

    with pytest.raises(SchemaUnusable, match="too large"):
        check_of({"$ref": "#/$defs/kind12", "$defs": kinds})


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"enum": ["x" * 500_000]}, "longer than 400,000 characters"),
        ({"enum": [{"a": n} for n in range(4_000)]}, "too large"),
        ({"anyOf": [INTEGER] * 6_000}, "too large"),
    ],
)
def test_a_schema_has_a_largest_size(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(SchemaUnusable, match=reason):
        check_of(schema)


def test_a_schema_nested_beyond_measure_is_refused() -> None:
    deepest: dict[str, Any] = {}
    for _ in range(400):
        deepest = {"items": deepest}

    with pytest.raises(SchemaUnusable):
        check_of(deepest)
