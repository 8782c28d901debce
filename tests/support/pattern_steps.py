"""Counts the steps that a backtracking matcher takes for a regular expression, so that no test has to measure time.

The matcher walks the tree of Python's own parser in the order in which Python's engine tries things. Repeats with an
upper bound end a few repetitions after their lower one: a bound costs a factor, and never makes the growth quadratic.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

_MORE = 4
"""Repetitions of a bounded repeat beyond its lower bound."""
_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    sre.CATEGORY_DIGIT: str.isdigit,
    sre.CATEGORY_NOT_DIGIT: lambda character: not character.isdigit(),
    sre.CATEGORY_SPACE: str.isspace,
    sre.CATEGORY_NOT_SPACE: lambda character: not character.isspace(),
    sre.CATEGORY_WORD: lambda character: character.isalnum() or character == "_",
    sre.CATEGORY_NOT_WORD: lambda character: not (character.isalnum() or character == "_"),
}

type Node = tuple[Any, Any]
type Ends = Iterator[int]


class StepCounter:
    """Matches one pattern; ``steps`` is how many nodes were tried so far."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._nodes: list[Node] = list(_parser.parse(pattern.pattern, pattern.flags))
        self._ignores_case = bool(pattern.flags & re.IGNORECASE)
        self._is_multiline = bool(pattern.flags & re.MULTILINE)
        self._dot_takes_all = bool(pattern.flags & re.DOTALL)
        self._bounds_repeats = True
        self._walks: dict[Any, Callable[[Any, int], Ends]] = {
            sre.MAX_REPEAT: partial(self._repeated, is_greedy=True),
            sre.MIN_REPEAT: partial(self._repeated, is_greedy=False),
            sre.POSSESSIVE_REPEAT: lambda value, at: self._first(self._repeated(value, at, is_greedy=True)),
            sre.ATOMIC_GROUP: lambda value, at: self._first(self._sequence(list(value), at)),
            sre.SUBPATTERN: self._group,
            sre.BRANCH: self._branches,
            sre.ASSERT: self._asserted,
            sre.ASSERT_NOT: self._denied,
            sre.AT: self._place,
            sre.GROUPREF: self._said_again,
        }
        self._text = ""
        self._groups: dict[int, tuple[int, int]] = {}
        self.steps = 0

    def scan(self, text: str, *, is_anchored: bool) -> int:
        """The steps that it takes to find all matches, or, anchored, to match at the beginning."""
        self._text = self._without_case(text)
        self._bounds_repeats = True
        self.steps = 0
        at = 0
        while at <= len(text):
            self._groups = {}
            end = next(self._sequence(self._nodes, at), None)
            if is_anchored:
                break
            at = max(at + 1, end or 0)
        return self.steps

    def matches(self, text: str) -> bool:
        """Whether the pattern matches at the beginning of a text."""
        self._text = self._without_case(text)
        self._bounds_repeats = False
        self._groups = {}
        return next(self._sequence(self._nodes, 0), None) is not None

    def _sequence(self, nodes: Sequence[Node], at: int) -> Ends:
        """Where a match of all nodes may end, the preferred end first."""
        if not nodes:
            yield at
            return
        first, *others = nodes
        for end in self._node(first, at):
            yield from self._sequence(others, end)

    def _node(self, node: Node, at: int) -> Ends:
        self.steps += 1
        operation, value = node
        walk = self._walks.get(operation)
        if walk:
            yield from walk(value, at)
        elif at < len(self._text) and self._takes(operation, value, self._text[at]):
            yield at + 1

    def _group(self, value: Any, at: int) -> Ends:  # noqa: ANN401 - the parser's
        number, _, _, inner = value
        for end in self._sequence(list(inner), at):
            if number is not None:
                self._groups[number] = at, end
            yield end

    def _branches(self, value: Any, at: int) -> Ends:  # noqa: ANN401 - the parser's
        for branch in value[1]:
            yield from self._sequence(list(branch), at)

    def _asserted(self, value: Any, at: int) -> Ends:  # noqa: ANN401 - the parser's
        if self._looks(value[0], value[1], at):
            yield at

    def _denied(self, value: Any, at: int) -> Ends:  # noqa: ANN401 - the parser's
        if not self._looks(value[0], value[1], at):
            yield at

    def _place(self, value: Any, at: int) -> Ends:  # noqa: ANN401 - the parser's
        if self._is_place(value, at):
            yield at

    def _said_again(self, value: int, at: int) -> Ends:
        start, end = self._groups.get(value, (0, 0))
        said = self._text[start:end]
        self.steps += len(said)
        if value in self._groups and self._text.startswith(said, at):
            yield at + len(said)

    def _first(self, ends: Ends) -> Ends:
        for end in ends:
            yield end
            return

    def _looks(self, direction: int, inner: Any, at: int) -> bool:  # noqa: ANN401 - the parser's
        nodes = list(inner)
        if direction > 0:
            return next(self._sequence(nodes, at), None) is not None
        width, _ = inner.getwidth()
        return at >= width and any(end == at for end in self._sequence(nodes, at - width))

    def _is_place(self, place: Any, at: int) -> bool:  # noqa: ANN401 - the parser's
        if place in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING):
            is_line = place is sre.AT_BEGINNING and self._is_multiline and self._text[at - 1 : at] == "\n"
            return at == 0 or is_line
        if place in (sre.AT_END, sre.AT_END_STRING):
            rest = self._text[at:]
            is_line_end = rest == "\n" or (self._is_multiline and rest.startswith("\n"))
            return not rest or (place is sre.AT_END and is_line_end)
        is_word = _CATEGORIES[sre.CATEGORY_WORD]
        before, after = (
            bool(each) and is_word(each) for each in (self._text[max(0, at - 1) : at], self._text[at : at + 1])
        )
        return (before != after) is (place is sre.AT_BOUNDARY)

    def _repeated(self, repeat: tuple[int, int, Any], at: int, *, is_greedy: bool) -> Ends:
        least, most, inner = repeat
        if self._bounds_repeats and most is not sre.MAXREPEAT:
            most = min(int(most), int(least) + _MORE)
        nodes = list(inner)
        if len(nodes) == 1 and nodes[0][0] in (sre.IN, sre.ANY, sre.LITERAL, sre.NOT_LITERAL):
            yield from self._run(nodes[0], at, int(least), most, is_greedy=is_greedy)
        else:
            yield from self._times(nodes, at, int(least), most, is_greedy=is_greedy)

    def _run(self, node: Node, at: int, least: int, most: Any, *, is_greedy: bool) -> Ends:  # noqa: ANN401
        """Of one character: all ends are known after one pass."""
        end = at
        limit = len(self._text)
        if most is not sre.MAXREPEAT:
            limit = min(limit, at + most)
        while end < limit and self._takes(*node, self._text[end]):
            end += 1
            self.steps += 1
        ends = list(range(at + least, end + 1))
        if is_greedy:
            ends.reverse()
        for each in ends:
            self.steps += 1
            yield each

    def _times(self, nodes: list[Node], at: int, least: int, most: Any, *, is_greedy: bool) -> Ends:  # noqa: ANN401
        self.steps += 1
        if not is_greedy and least <= 0:
            yield at
        if most is sre.MAXREPEAT or most > 0:
            fewer = most
            if most is not sre.MAXREPEAT:
                fewer = most - 1
            for end in self._sequence(nodes, at):
                if end > at or least > 0:
                    yield from self._times(nodes, end, least - 1, fewer, is_greedy=is_greedy)
        if is_greedy and least <= 0:
            yield at

    def _takes(self, operation: Any, value: Any, character: str) -> bool:  # noqa: ANN401 - the parser's
        if operation is sre.ANY:
            return self._dot_takes_all or character != "\n"
        if operation in (sre.LITERAL, sre.NOT_LITERAL):
            return (self._folded(value) == character) is (operation is sre.LITERAL)
        members = list(value)
        is_negated = bool(members) and members[0][0] is sre.NEGATE
        return any(self._has(kind, each, character) for kind, each in members) is not is_negated

    def _has(self, kind: Any, value: Any, character: str) -> bool:  # noqa: ANN401 - the parser's
        if kind is sre.LITERAL:
            return self._folded(value) == character
        if kind is sre.RANGE:
            both = [character]
            if self._ignores_case:
                both.append(character.upper())
            return any(len(each) == 1 and value[0] <= ord(each) <= value[1] for each in both)
        return kind is sre.CATEGORY and _CATEGORIES[value](character)

    def _folded(self, code: int) -> str:
        return self._without_case(chr(code))

    def _without_case(self, text: str) -> str:
        if self._ignores_case:
            return text.casefold()
        return text


def fragments(pattern: re.Pattern[str]) -> list[str]:
    """The literal texts and characters in a pattern, of which hostile texts are made."""
    found: dict[str, None] = {}
    _collect(list(_parser.parse(pattern.pattern, pattern.flags)), found)
    return list(found)


def _collect(nodes: Sequence[Node], found: dict[str, None]) -> None:
    literal = ""
    for operation, value in nodes:
        if operation is sre.LITERAL:
            literal += chr(value)
            continue
        found.setdefault(literal)
        literal = ""
        for inner in _inner(operation, value):
            _collect(list(inner), found)
        if operation is sre.IN:
            found.update({chr(each): None for kind, each in value if kind is sre.LITERAL})
            found.update({chr(each[0]): None for kind, each in value if kind is sre.RANGE})
    found.setdefault(literal)
    found.pop("", None)


def _inner(operation: Any, value: Any) -> Sequence[Any]:  # noqa: ANN401 - the parser's
    if operation in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return [value[2]]
    if operation is sre.SUBPATTERN:
        return [value[3]]
    if operation is sre.BRANCH:
        return list(value[1])
    if operation in (sre.ASSERT, sre.ASSERT_NOT):
        return [value[1]]
    if operation is sre.ATOMIC_GROUP:
        return [value]
    return []
