"""What is wrong with an argument, as sentences for the model.

In: a check, and a value. Out: one sentence for each wrong place; where none of several alternatives fits, of the one
that came closest. The library's own errors repeat whole values and grow without bound, so the place is looked for here,
part by part.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from internal.schema.check import Check, Problem, Steps, Unchecked
from internal.schema.references import REFERENCES, resolve
from internal.schema.words import (
    MAX_QUOTE_LENGTH,
    TELLS,
    about,
    distance,
    quoted,
    types_at,
    unexpected,
    urgency,
    wrong_type,
)

_MAX_SENTENCES = 3
_MAX_PROBLEMS = 200
"""Problems that are looked at; an array may have one for each of its items."""
_MAX_PROBLEMS_OF_BRANCH = 20
_NOT_SATISFIED = "does not satisfy the schema"
_ANNOTATIONS = frozenset({"title", "description", "default", "examples", "$comment", "$defs", "definitions", "format"})

type _Place = tuple[str | int, ...]


def sentences(check: Check, value: object, name: str, steps: Steps | None = None) -> list[str]:
    """The first few things that are wrong with the argument of that name; "" for all arguments together.

    Raises:
        Unchecked: it cannot be checked at all.
    """
    if check.accepts(value, check.schema, steps or Steps()):
        found: Iterable[Problem] = check.more(value)
    else:
        found = _problems(check, value)
    first: dict[tuple[str | int, ...], Problem] = {}
    for problem in islice(found, _MAX_PROBLEMS):
        place = problem.place
        if place not in first or TELLS.get(problem.keyword, 0) > TELLS.get(first[place].keyword, 0):
            first[place] = problem
        if len(first) > _MAX_SENTENCES:
            break
    return [_sentence(problem, name) for problem in islice(first.values(), _MAX_SENTENCES)]


def _sentence(problem: Problem, name: str) -> str:
    where = name + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem.place)
    where = where.removeprefix(".")[:MAX_QUOTE_LENGTH] or "(all)"
    beside = f" (the closest of {problem.alternatives} alternatives)" if problem.alternatives > 1 else ""
    return f"parameter {where!r}{'' if problem.predicate[:1] == ':' else ' '}{problem.predicate}{beside}"


def _problems(check: Check, value: object) -> Iterator[Problem]:
    """The problems of a value that does not satisfy the schema, at least one."""
    found = False
    try:
        for problem in _Search(check).problems(value, check.schema, ()):
            found = True
            yield problem
    except (Unchecked, RecursionError):
        pass
    if not found:
        yield Problem((), _NOT_SATISFIED)


class _Search:
    """Finds what is wrong with a value."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._steps = Steps()
        self._inside: Mapping[str, Callable[[Any, Mapping[str, Any], _Place], Iterator[Problem]]] = {
            **dict.fromkeys(REFERENCES, self._behind_references),
            "allOf": self._of_all,
            "anyOf": self._of_closest,
            "oneOf": self._of_closest,
            "if": self._of_condition,
            "dependentSchemas": self._of_dependent,
            "properties": self._of_properties,
            "additionalProperties": self._of_other_properties,
            "patternProperties": self._of_other_properties,
            "propertyNames": self._of_names,
            "items": self._of_items,
            "prefixItems": self._of_items,
            "additionalItems": self._of_items,
        }

    def problems(self, value: Any, schema: object, place: _Place) -> Iterator[Problem]:  # noqa: ANN401 - JSON
        """The problems of a value that does not satisfy the schema.

        Raises:
            Unchecked: they take too long to find.
        """
        self._steps.spend()
        if not isinstance(schema, Mapping):
            yield Problem(place, f"must not hold {quoted(value)}")
            return
        schema = self._check.read(schema)
        found = False
        for keyword in sorted((each for each in schema if each not in _ANNOTATIONS), key=urgency):
            is_last_resort = keyword.startswith("unevaluated")
            if (is_last_resort and found) or self._accepts(value, schema, keyword):
                continue
            found = True
            inside = self._inside.get(keyword)
            search = iter(()) if inside is None else inside(value, schema, place)
            first = next(search, None)
            if first is None:
                yield about(keyword, value, schema[keyword], place)
            else:
                yield first
                yield from search
        if not found:
            yield Problem(place, _NOT_SATISFIED)

    def _accepts(self, value: object, schema: object, keyword: str = "") -> bool:
        return self._check.accepts(value, schema, self._steps, keyword)

    def _behind_references(self, value: object, schema: Mapping[str, Any], place: _Place) -> Iterator[Problem]:
        for keyword in REFERENCES:
            if isinstance(reference := schema.get(keyword), str):
                target = resolve(self._check.schema, reference)
                if not self._accepts(value, target):
                    yield from self.problems(value, target, place)

    def _of_all(self, value: object, schema: Mapping[str, Any], place: _Place) -> Iterator[Problem]:
        for part in schema["allOf"]:
            if not self._accepts(value, part):
                yield from self.problems(value, part, place)

    def _of_closest(self, value: object, schema: Mapping[str, Any], place: _Place) -> Iterator[Problem]:
        """The problem of the alternative that came closest; of all of them where each takes other types."""
        keyword = "anyOf" if "anyOf" in schema and not self._accepts(value, schema, "anyOf") else "oneOf"
        branches = schema[keyword]
        if keyword == "oneOf" and any(self._accepts(value, branch) for branch in branches):
            return
        tried = [list(islice(self.problems(value, each, place), _MAX_PROBLEMS_OF_BRANCH)) for each in branches]
        types = [types_at(place, problems) for problems in tried]
        if all(types):
            every = tuple(dict.fromkeys(kind for kinds in types for kind in kinds))
            yield Problem(place, wrong_type(every, value), "type", every)
            return
        closest = min(tried, key=lambda problems: distance(place, problems))[0]
        yield closest._replace(alternatives=max(len(branches), closest.alternatives))

    def _of_condition(self, value: object, schema: Mapping[str, Any], place: _Place) -> Iterator[Problem]:
        branch = "then" if self._accepts(value, schema["if"]) else "else"
        yield from self.problems(value, schema.get(branch), place)

    def _of_dependent(self, value: Mapping[str, Any], schema: Mapping[str, Any], place: _Place) -> Iterator[Problem]:
        for name, part in schema["dependentSchemas"].items():
            if name in value and not self._accepts(value, part):
                yield from self.problems(value, part, place)

    def _of_properties(self, value: Mapping[str, Any], schema: Mapping[str, Any], place: _Place) -> Iterator[Problem]:
        for name, part in schema["properties"].items():
            if name in value and not self._accepts(value[name], part):
                yield from self.problems(value[name], part, (*place, name))

    def _of_other_properties(
        self, value: Mapping[str, Any], schema: Mapping[str, Any], place: _Place
    ) -> Iterator[Problem]:
        patterns = [
            (self._check.once(schema, f"pattern {each}", {"patternProperties": {each: part}}), part)
            for each, part in _items(schema, "patternProperties")
        ]
        other = schema.get("additionalProperties")
        for name, item in value.items():
            for whole, part in patterns:
                if not self._accepts({name: item}, whole):
                    yield from self.problems(item, part, (*place, name))
            if isinstance(other, Mapping) and not self._accepts({name: item}, schema, "additionalProperties"):
                yield from self.problems(item, other, (*place, name))
        if other is False and not self._accepts(value, schema, "additionalProperties"):
            names = (name for name in value if not self._accepts({name: 0}, schema, "additionalProperties"))
            yield Problem(place, unexpected(list(islice(names, 4))))

    def _of_names(self, value: Mapping[str, Any], schema: Mapping[str, Any], place: _Place) -> Iterator[Problem]:
        for name in value:
            if not self._accepts(name, schema["propertyNames"]):
                for problem in self.problems(name, schema["propertyNames"], place):
                    yield problem._replace(predicate=f": the name {quoted(name)} {problem.predicate}", keyword="")

    def _of_items(self, value: Sequence[Any], schema: Mapping[str, Any], place: _Place) -> Iterator[Problem]:
        items = schema.get("items")
        first = [*_list(schema.get("prefixItems")), *_list(items)]  # A list under "items" in older dialects.
        others = schema.get("additionalItems") if isinstance(items, list) else items
        for position, item in enumerate(value):
            part = first[position] if position < len(first) else others
            if not self._accepts(item, part):
                yield from self.problems(item, part, (*place, position))


def _items(schema: Mapping[str, Any], keyword: str) -> Iterable[tuple[str, Any]]:
    said = schema.get(keyword)
    return said.items() if isinstance(said, Mapping) else ()


def _list(said: object) -> Sequence[Any]:
    return said if isinstance(said, list) else ()
