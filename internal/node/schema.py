"""JSON Schemas written by others: whether they are usable, whether a value fits, and each error as a sentence.

``jsonschema-rs`` does the checks. Because a check cannot be interrupted, the sizes of schemas and values are limited.
"""

from __future__ import annotations  # annotations name the library's types before it is imported

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from pydantic_core import to_json

from internal.clock import give_way, in_turns, let_others_through
from internal.json_values import part_of, unescaped
from internal.tooling import NOTHING, UnwritableError, converted, meant_option, refuse_unwritable, wrong_type_error
from prompt import tool_errors

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

_PLAIN_VALUES = frozenset({"enum", "const", "default", "examples", "dependentRequired"})
"""Keywords whose values contain no schema."""
_DEFINITIONS = frozenset({"$defs", "definitions"})
_NAMED_SCHEMAS = _DEFINITIONS | {"properties", "patternProperties", "dependentSchemas", "dependencies"}
REMARKS = _DEFINITIONS | {"title", "description", "default", "examples", "$comment", "$schema"}
"""Keywords without an effect on validation."""
_MAX_KEPT = 4_096
"""Maximum number of schemas in the cache. Nodes with 600 tools have been seen."""
_MAX_LENGTH = 400_000
"""Maximum characters of a schema. docs/answer-schema.md, "Which schemas work", lists this limit and the next ones."""


class SchemaUnusable(Exception):  # noqa: N818 - the name says what is wrong
    """Raised for a schema that cannot be used. The message says why."""


def kept[T](make: Callable[[dict[str, Any]], T]) -> Callable[[Mapping[str, Any]], T]:
    """Cache the result of ``make``, because a node's tools are the same in every run. Raises ``SchemaUnusable``."""

    @lru_cache(maxsize=_MAX_KEPT)
    def made(text: str) -> T:
        give_way()  # Each schema takes some time, and a node may have hundreds of tools.
        schema = json.loads(text)
        try:
            refuse_unwritable(schema)
        except UnwritableError as problem:
            raise SchemaUnusable(str(problem)) from None
        return make(schema)

    def of(schema: Mapping[str, Any]) -> T:
        try:
            text = json.dumps(schema)
        except RecursionError:
            raise SchemaUnusable("nested too deeply") from None
        if len(text) > _MAX_LENGTH:
            raise SchemaUnusable(f"longer than {_MAX_LENGTH:,} characters")
        return made(text)

    return of


def resolve(schema: object, reference: str) -> object:
    """Return the part of this schema that a reference points to; raises ``SchemaUnusable``. Nothing is ever fetched."""
    shown = f"the reference {reference[:100]!r}"
    if not reference.startswith("#"):
        raise SchemaUnusable(f"{shown} leads out of it")
    if reference[1:2] not in ("", "/"):
        raise SchemaUnusable(f"{shown} names an anchor; write a pointer, as '#/$defs/NAME'")
    node = schema
    for part in unquote(reference).split("/")[1:]:  # The reference is decoded before it is split: RFC 6901, section 6.
        try:
            node = part_of(node, unescaped(part))
        except LookupError:
            raise SchemaUnusable(f"{shown} leads nowhere") from None
    if not isinstance(node, Mapping | bool):
        raise SchemaUnusable(f"{shown} does not point to a schema")
    return node


def rewritten(node: Any, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Any:  # noqa: ANN401 - JSON
    """Return a copy of a schema in which each schema is changed, the innermost first."""
    if isinstance(node, list):
        return [rewritten(item, change) for item in node]
    if not isinstance(node, Mapping):
        return node
    copy: dict[str, Any] = {}
    for key, value in node.items():
        if key in _NAMED_SCHEMAS and isinstance(value, Mapping):
            copy[key] = {name: rewritten(item, change) for name, item in value.items()}
        elif key in _PLAIN_VALUES:
            copy[key] = value
        else:
            copy[key] = rewritten(value, change)
    return change(copy)


_MAX_SCHEMAS = 5_000
"""Maximum number of schemas with all references followed. References that double at each level could take hours."""
_TOO_LARGE = "too large once its references are followed"
_MAX_PATTERNS = 40
"""Maximum number of regular expressions in a schema. The slowest take 3 ms each to compile."""
_SLOW = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems"})
"""Keywords that take up to a hundred times as long as others."""


class _Size(NamedTuple):
    """The maximum work of checking one part of a value."""

    keywords: int = 0
    slow: int = 0
    """Number of slow keywords, plus a tenth of the characters of options that are neither texts nor integers."""
    patterns: int = 0
    """Number of patterns; a slow one counts as fifty."""


class _Measured:
    """Measures a schema, following each reference once on every path. Raises ``SchemaUnusable`` for an unusable one."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.length = len(to_json(root))
        self.recursions = 0
        """Number of recursive references. Each level of a value multiplies the library's errors by this number."""
        self._root = root
        self._schemas = 0
        self._patterns = set[str]()
        try:
            self.size = self._of(root, frozenset("#"), frozenset("#"))
        except RecursionError:
            raise SchemaUnusable(_TOO_LARGE) from None
        if self.size.keywords + 100 * self.size.slow > _MAX_WORK:
            raise SchemaUnusable(_TOO_LARGE)

    def _of(self, node: object, path: frozenset[str], same: frozenset[str] = frozenset()) -> _Size:
        """Return the size of a schema; ``path`` are the references that led to it.

        ``same`` are the references that led here directly, without a keyword in between. Following one of them again
        would never end.
        """
        self._schemas += 1
        if self._schemas > _MAX_SCHEMAS:
            raise SchemaUnusable(_TOO_LARGE)
        if not isinstance(node, Mapping):
            return _Size()
        sizes = [self._own(node)]
        one_of_them = [_Size()]
        sizes += self._referred_to(node, path, same)
        for keyword, value in node.items():
            if keyword in _PLAIN_VALUES or keyword in _DEFINITIONS:
                continue
            is_named = keyword in _NAMED_SCHEMAS and isinstance(value, Mapping)
            if is_named:
                inner = value.values()
            elif isinstance(value, list):
                inner = value
            else:
                inner = [value]
            still_same = frozenset[str]()
            if keyword == "allOf":
                still_same = same
            # Each part of a value is checked against one property, and against all other schemas.
            of_keyword = sizes
            if keyword == "properties":
                of_keyword = one_of_them
            of_keyword.extend(self._of(each, path, still_same) for each in inner)
        sizes.append(_Size(*map(max, zip(*one_of_them, strict=True))))
        if "unevaluatedProperties" in node or "unevaluatedItems" in node:
            sizes *= 4  # The library evaluates their dependencies again.
        return _Size(*map(sum, zip(*sizes, strict=True)))

    def _referred_to(self, node: Mapping[str, Any], path: frozenset[str], same: frozenset[str]) -> Iterator[_Size]:
        """Yield the size of the schema that a reference points to, if there is one."""
        if not str(node.get("$dynamicRef", "#")).startswith("#"):
            raise SchemaUnusable(f"the reference {str(node['$dynamicRef'])[:100]!r} leads out of it")
        reference = node.get("$ref")
        if not isinstance(reference, str):
            return
        target = resolve(self._root, reference)
        if reference in same:
            raise SchemaUnusable(f"the reference {reference[:100]!r} leads back to itself, and to no schema")
        self.recursions += reference in path
        if reference not in path:
            yield self._of(target, path | {reference}, same | {reference})

    def _own(self, schema: Mapping[str, Any]) -> _Size:
        required = schema.get("required")
        listed = schema.get("enum")
        named = schema.get("patternProperties")
        keywords = len(schema) + (len(required) if isinstance(required, list) else 0)
        options = [*(listed if isinstance(listed, list) else ()), schema.get("const")]
        is_slow = not {type(each) for each in options} <= {str, int, bool, type(None)}
        slow = len(schema.keys() & _SLOW) + (1 + len(json.dumps(options)) // 10 if is_slow else 0)
        patterns = [schema.get("pattern"), *(named if isinstance(named, Mapping) else ())]
        texts = {each for each in patterns if isinstance(each, str)}
        self._patterns |= texts
        if len(self._patterns) > _MAX_PATTERNS:
            raise SchemaUnusable(f"it has more than {_MAX_PATTERNS} patterns")
        return _Size(keywords, slow, sum(map(pattern_weight, texts)))


class _Library:
    """``jsonschema-rs``, imported by the first run that needs it, which saves 8 MB and 12 ms at startup."""

    def __init__(self) -> None:
        import jsonschema_rs  # noqa: PLC0415 - see above

        self.validator_for = jsonschema_rs.validator_for
        self.invalid_schema = jsonschema_rs.ValidationError
        self.ordinary = jsonschema_rs.RegexOptions(size_limit=10_000)
        """The options for patterns that match in linear time, with at most 2.5 µs per character."""
        self.any_pattern = jsonschema_rs.FancyRegexOptions(backtrack_limit=10_000, size_limit=500_000)
        """The options for patterns with look-around, backreferences, or the size of ``^.{1,255}$``, which take up to 50
        times as long."""


_library = cache(_Library)


@lru_cache(maxsize=1_000)
def pattern_weight(pattern: str) -> int:
    """Return the relative cost of a regular expression; raises ``SchemaUnusable`` if it is invalid or too large."""
    give_way()
    if len(pattern) <= 2_000:  # noqa: PLR2004 - the limit of docs/answer-schema.md
        library = _library()
        for options, weight in ((library.ordinary, 1), (library.any_pattern, 50)):
            try:
                library.validator_for({"pattern": pattern}, pattern_options=options)
            except ValueError:
                continue
            return weight
    raise SchemaUnusable(f"the pattern {pattern[:100]!r} is not a regular expression, or too large")


_MAX_WORK = 1_500_000
"""Maximum product of the keywords and the parts of a value. At it, a check takes 0.1 s (jsonschema-rs 0.60.3)."""
_MAX_MATCHED = 40_000
"""Maximum product of the patterns and the characters of a value. At it, a check takes 0.1 s."""
_MAX_EXPLAINED = 15_000
"""Maximum product of the keywords and the parts of a value for which the library writes errors. At it, this takes
0.1 s, because each error copies the schema and the value."""
_COSTLY_NUMBER = re.compile(rb"(?<!\d)\d{40,}|[eE][-+]?\d{2,}")
"""A number that the library takes up to 0.6 ms to compare."""
_BYTES_AT_ONCE = 100_000
"""Number of bytes of a value that are searched for costly numbers at once."""
_UNUSED = frozenset(
    {"$schema", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary"}
    | {"contentEncoding", "contentMediaType", "contentSchema"}
)
"""Keywords that are hidden from the library: they would refer to other documents, or check the content of texts."""
_MASK = "\x00"  # stands for the value in the library's sentences


class Unchecked(Exception):  # noqa: N818 - the name says what happened
    """The value was not checked: it is too large for its schema."""


type Place = tuple[str | int, ...]


class Problem(NamedTuple):
    """An error at a place in a value, such as "must be a number, got null", or a sentence that follows a colon."""

    place: Place
    predicate: str


@dataclass(frozen=True, eq=False)
class Check:
    """Checks whether values fit a schema. Raises ``Unchecked`` for a value that is too large."""

    schema: Mapping[str, Any]
    _measured: _Measured
    _validator: Validator
    more: Callable[[Any], Iterable[Problem]] = lambda _value: ()
    """Checks that JSON Schema cannot express."""

    def stricter(self, more: Callable[[Any], Iterable[Problem]]) -> Check:
        return replace(self, more=lambda value: chain(self.more(value), more(value)))

    def accepts(self, value: object) -> bool:
        """Return whether a value fits, as far as JSON Schema can express it."""
        text = to_json(value)
        size = self._measured.size
        work = (1 + size.keywords + 100 * size.slow) * _parts(value, text)
        validator = self._validator_for(text)
        if validator is None or work > _MAX_WORK:
            raise Unchecked
        return validator.is_valid(value)

    def surely_accepts(self, value: object) -> bool:
        with suppress(Unchecked):
            return self.accepts(value)
        return False

    def errors(self, value: object) -> list[ValidationError]:
        """Return the library's errors, one for each place; none if their copies of the value would be too large."""
        text = to_json(value)
        recursions = self._measured.recursions
        work = (1 + self._measured.size.keywords + self._measured.length // 1_000) * _parts(value, text)
        validator = self._validator_for(text)
        if recursions and work <= _MAX_EXPLAINED:
            work *= recursions ** _depth(value) * _depth(value)
        if validator is None or work > _MAX_EXPLAINED:
            return []
        by_place: dict[Place, ValidationError] = {}
        for error in validator.iter_errors(value):
            place = tuple(error.instance_path)
            by_place[place] = min(by_place.get(place, error), error, key=_telling)
        return list(by_place.values())

    def _validator_for(self, text: bytes) -> Validator | None:
        """Return the validator for a value. Long values are validated without patterns.

        The result is None for a long value if patterns apply to property names.
        """
        if self._measured.size.patterns * len(text) <= _MAX_MATCHED:
            return self._validator
        plain = self._without_patterns
        return None if plain is self else plain._validator_for(text)  # noqa: SLF001 - the object is of the same class

    @cached_property
    def _without_patterns(self) -> Check:
        plain = rewritten(self.schema, lambda part: {key: part[key] for key in part if key != "pattern"})
        if plain == self.schema:
            return self
        return check_of(plain)


@kept
def check_of(schema: dict[str, Any]) -> Check:
    measured = _Measured(schema)
    plain = rewritten(schema, lambda part: {key: part[key] for key in part if key not in _UNUSED})
    dialect = {}
    if schema.get("$schema"):
        dialect = {"$schema": schema["$schema"]}
    try:
        validator = _compiled({**plain, **dialect})
    except SchemaUnusable:  # Perhaps only the dialect is unknown.
        validator = _compiled(plain)
    return Check(schema, measured, validator)


def _compiled(schema: Mapping[str, Any]) -> Validator:
    give_way()
    library = _library()
    make = partial(library.validator_for, mask=_MASK, validate_formats=False, offline=True)
    try:
        return make(dict(schema), pattern_options=library.any_pattern)
    except library.invalid_schema as error:
        where = "/".join(map(str, error.instance_path)) or "the schema"
        reason = error.message.replace(_MASK, quoted(error.instance), 1)[:_MAX_QUOTE_LENGTH]
        raise SchemaUnusable(f"not valid JSON Schema ({where}: {reason})") from None


def _parts(value: object, text: bytes) -> int:
    """Return an upper bound of the parts of a JSON value. Long texts and costly numbers count as several parts."""
    if isinstance(value, str):
        marks = 0
    else:
        marks = sum(map(text.count, (b",", b":", b"[", b"{")))
    digits = 0
    for start in in_turns(range(0, len(text), _BYTES_AT_ONCE)):
        digits += sum(map(len, _COSTLY_NUMBER.findall(text, start, start + _BYTES_AT_ONCE)))
    return 1 + marks + len(text) // 1_000 + 10 * digits


def _depth(value: object) -> int:
    inner: Iterable[object] = ()
    if isinstance(value, Mapping):
        inner = value.values()
    elif isinstance(value, list):
        inner = value
    return 1 + max(map(_depth, inner), default=0)


# Sentences for the library's errors.

_MAX_QUOTE_LENGTH = 200
_MAX_SENTENCES = 3
"""Maximum number of errors that a model reads about one call, so that the text stays readable."""
_NOT_SATISFIED = Problem((), tool_errors.DOES_NOT_SATISFY)


class _Leaf(NamedTuple):
    """The error at one place. If there are alternatives, the closest one counts."""

    place: Place
    error: ValidationError
    types: Sequence[str]
    """The types that would have been right, if the type is wrong."""
    alternatives: int = 0


def _leaves(error: ValidationError) -> list[_Leaf]:
    """Return the single problems in an error, the most informative first."""
    place = tuple(error.instance_path)
    branches = _branches(error)
    types = [_types_at(place, branch) for branch in branches or [[error]]]
    if not branches or all(types):
        return [_Leaf(place, error, list(dict.fromkeys(chain.from_iterable(types))))]
    closest = min(branches, key=lambda branch: _distance(place, branch))
    found = chain.from_iterable(map(_leaves, sorted(closest, key=_telling)))
    return [leaf._replace(alternatives=leaf.alternatives or len(branches)) for leaf in found]


def _branches(error: ValidationError) -> list[list[ValidationError]]:
    """Return the errors of each alternative; empty if an alternative fits or there are none."""
    branches: list[list[ValidationError]] = getattr(error.kind, "context", [])
    if all(branches):
        return branches
    return []


def _telling(error: ValidationError) -> int:
    """Return the sort key of errors at one place: first an error that lists all values, then one about the type."""
    # The library checks "unevaluated…" first, but its result depends on all other keywords.
    name = error.kind.name
    if name.startswith("unevaluated"):
        return 3
    return {"const": 0, "enum": 0, "type": 1}.get(name, 2)


def _types_at(place: Place, errors: Iterable[ValidationError]) -> list[str]:
    """Return the types that would have been right at a place; empty if the type is not wrong."""
    wrong = (error for error in errors if error.kind.name == "type" and tuple(error.instance_path) == place)
    return next((error.kind.as_dict()["types"] for error in wrong), [])


def _distance(place: Place, errors: Sequence[ValidationError]) -> tuple[bool, bool, int]:
    """Return how far a value is from an alternative: wrong type or not, wrong option or not, number of errors."""
    kinds = [each.kind.name for each in errors if len(each.instance_path) <= len(place) + 1]
    is_other_kind = "const" in kinds or "enum" in kinds
    return bool(_types_at(place, errors)), is_other_kind, len(errors)


def _sentences(problems: Iterable[Problem], name: str) -> list[str]:
    said = []
    for place, predicate in islice(problems, _MAX_SENTENCES):
        where = name + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
        where = where.removeprefix(".")[:_MAX_QUOTE_LENGTH] or "(all)"
        template = tool_errors.WRONG_PARAMETER
        if predicate.startswith(":"):
            template = tool_errors.PROBLEM_AT_PARAMETER
        said.append(template.format(place=where, predicate=predicate))
    return said


def _problem(error: ValidationError) -> Problem:
    leaf = _leaves(error)[0]
    value = leaf.error.instance
    said = leaf.error.kind.as_dict()
    if leaf.types:
        predicate = wrong_type_error(value, leaf.types)
    elif leaf.error.kind.name == "enum":
        predicate = tool_errors.NOT_IN_OPTIONS.format(value=quoted(value), options=quoted(said["options"]))
    else:
        message = leaf.error.message.replace(_MASK, tool_errors.WRONG_VALUE.format(value=quoted(value)), 1)
        predicate = f": {message[: 2 * _MAX_QUOTE_LENGTH]}"
    if leaf.alternatives:
        predicate += tool_errors.CLOSEST_OF.format(count=leaf.alternatives)
    return Problem(leaf.place, predicate)


def quoted(value: object) -> str:
    """Return a value as JSON, shortened if it is long."""
    if isinstance(value, str | list):  # Most of a long value need not be written out.
        value = value[: _MAX_QUOTE_LENGTH + 1]
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= _MAX_QUOTE_LENGTH:
        return text
    return text[:_MAX_QUOTE_LENGTH] + "…"


# Values are converted to the types that a schema asks for if nothing is lost: ``"7"`` becomes 7, the JSON text of an
# array becomes the array, and null for something optional is left out. A value that cannot be converted stays
# unchanged.

_MAX_ROUNDS = 10
"""Maximum number of rounds. Each round converts values inside the values that the previous round converted."""
_LEFT_OUT: Any = object()


def fitted(check: Check, given: object, name: str, *, takes_texts: bool) -> tuple[object, list[str]]:
    """Return a value converted to the types of a schema, and the first few remaining errors as sentences.

    ``name`` is the argument's name; "" means all arguments together. With ``takes_texts``, a boolean, object or array
    may become its JSON text as a whole, because some tools ask for "a JSON string". Raises ``Unchecked``.
    """
    value = given
    fitting = _Fitting(takes_texts)
    for _ in range(_MAX_ROUNDS):
        if check.accepts(value):
            return value, _sentences(check.more(value), name)
        let_others_through()
        errors = check.errors(value)
        if not (changes := fitting.changes(errors)):
            return value, _sentences(map(_problem, errors) if errors else [_NOT_SATISFIED], name)
        value = _changed(deepcopy(value) if value is given else value, changes)
    return value, _sentences([_NOT_SATISFIED], name)


def _changed(value: object, changes: Mapping[Place, object]) -> object:
    holder = {0: value}
    for place in sorted(changes, key=len, reverse=True):
        part: Any = holder
        whole_place = (0, *place)
        last = whole_place[-1]
        for step in whole_place[:-1]:
            part = part[step]
        part[last] = changes[place]
        if changes[place] is _LEFT_OUT:
            del part[last]
    return holder[0]


class _Fitting:
    """Finds replacements for parts of a value that do not fit. Each place is changed only once."""

    def __init__(self, takes_texts: bool) -> None:  # noqa: FBT001 - one caller
        self._takes_texts = takes_texts
        self._done: set[Place] = set()

    def changes(self, errors: Iterable[ValidationError]) -> dict[Place, object]:
        found = dict(chain.from_iterable(map(self._changes, errors)))
        self._done |= found.keys()
        return found

    def _changes(self, error: ValidationError, *, to_text: bool = True) -> list[tuple[Place, object]]:
        """Return places and their new values. Of several alternatives, the first that can be made to fit counts."""
        branches = _branches(error)
        to_text = to_text and all(_types_at(tuple(error.instance_path), branch) for branch in branches)
        for branch in branches:
            if all(changes := [self._changes(each, to_text=to_text) for each in branch]):
                return list(chain.from_iterable(changes))
        found = (self._change(leaf, to_text=to_text) for leaf in _leaves(error))
        return [change for change in found if change is not None]

    def _change(self, leaf: _Leaf, *, to_text: bool) -> tuple[Place, object] | None:
        """Return the place and its new value; None if only the model can know the right value."""
        place = leaf.place
        value = leaf.error.instance
        kind = leaf.error.kind
        said = kind.as_dict()
        if kind.name == "required" and (*place, said["property"]) in self._done:
            return (*place, said["property"]), None  # The property is required but missing.
        if place in self._done:
            return None
        if value is None:
            if place and isinstance(place[-1], str):
                return (place, _LEFT_OUT)
            return None
        if kind.name in {"enum", "const"}:
            candidates = [meant_option(value, said["options"] if kind.name == "enum" else [said["expected_value"]])]
        else:
            types = [each for each in leaf.types if to_text or each != "string"]
            candidates = [converted(value, each, is_whole=self._takes_texts and not place) for each in types]
        return next(((place, each) for each in candidates if each is not NOTHING), None)
