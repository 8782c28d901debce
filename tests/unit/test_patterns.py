"""Every regular expression of the agent takes a number of steps in proportion to the text, whatever the text is."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

import pytest

import internal
from internal.host.failures import error_words
from tests.support.pattern_steps import StepCounter, fragments

LENGTH = 40
"""Characters of the shorter text, which repeats a unit."""
_FEWEST_TIMES = 8
"""Repetitions of a long unit."""
MOST_GROWTH = 2.7
"""Of the steps, for a text twice as long; it is 4 where they grow with the square."""
_FEW = 1_000
"""Steps that no text of this length can make a pause of."""
_PLAIN = ("a", "1", " ", "\n", "\\", '"', "'", "A", "/", ":", "=", "=/", '\\"', "a ", "; ", "\\n")
_OF_ERRORS = "error_words.toml"
_ANCHORED = frozenset({"match", "fullmatch"})
_SCANNING = frozenset({"search", "sub", "subn", "finditer", "findall", "split"})


@cache
def patterns() -> dict[str, re.Pattern[str]]:
    """All patterns that are compiled when the modules are imported, and those of the words of errors."""
    found: dict[str, re.Pattern[str]] = {}
    for module in pkgutil.walk_packages(internal.__path__, "internal."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                found.setdefault(f"{module.name}.{name}", value)
    known = error_words()
    of_errors = (*(row.words for row in known.wordings), *vars(known).values())
    worded = {f"{_OF_ERRORS} {each.pattern}": each for each in of_errors if isinstance(each, re.Pattern)}
    return {name: pattern for pattern, name in {each: name for name, each in (found | worded).items()}.items()}


@cache
def scanning() -> frozenset[str]:
    """The names of patterns that are tried at every place of a text."""
    names: set[str] = set()
    for path in Path(internal.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in _SCANNING and isinstance(node.value, ast.Name):
                names.add(node.value.id)
    return frozenset(names)


def hostile(pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """What a text begins with, and what it repeats: pieces of the pattern itself, with plain characters."""
    own = fragments(pattern)
    words = [each for each in own if len(each) > 1]
    yield from product(dict.fromkeys(("", *own[:1], *words[:1])), dict.fromkeys((*own[:8], *_PLAIN)))
    yield from (("", f"{word} ") for word in words)
    yield from (("", f"{word}=") for word in words[:12])


@pytest.mark.heavy
@pytest.mark.parametrize("name", patterns())
def test_steps_grow_in_proportion_to_the_text(name: str) -> None:
    pattern = patterns()[name]
    counter = StepCounter(pattern)
    is_anchored = not name.startswith(_OF_ERRORS) and name.rpartition(".")[2] not in scanning()
    for begins, unit in hostile(pattern):
        times = max(_FEWEST_TIMES, LENGTH // len(unit))
        longer = counter.scan(f"{begins}{unit * 2 * times}\x01", is_anchored=is_anchored)
        if longer < _FEW:
            continue
        shorter = counter.scan(f"{begins}{unit * times}\x01", is_anchored=is_anchored)
        assert longer <= MOST_GROWTH * shorter, f"{begins!r}, then {unit!r} again and again"


@pytest.mark.parametrize(
    ("words", "text"),
    [(r"\s*\(?id", " "), (r"/(?:[^/ ]++/++)+(?=[^/ ]*\w)", "=/"), (r"cookie:[^\s=]+=", "cookie:"), (r"\\+n", "\\")],
)
def test_the_counter_finds_growth_with_the_square(words: str, text: str) -> None:
    counter = StepCounter(re.compile(words))
    longer, shorter = (counter.scan(text * times, is_anchored=False) for times in (48, 24))
    assert longer > MOST_GROWTH * shorter


@pytest.mark.heavy
@pytest.mark.parametrize("name", patterns())
def test_the_counter_matches_as_python_does(name: str) -> None:
    pattern = patterns()[name]
    counter = StepCounter(pattern)
    for begins, unit in hostile(pattern):
        text = f"{begins}{unit}"
        assert counter.matches(text) == (pattern.match(text) is not None), text
