"""Lines that say several things at once become fewer: no file has more of them than at the last release."""

import pytest

from scripts.lines import RECORD, Counts, Dense, dense_lines, files, lowered, recorded, written

NOW = dict(files())
BEFORE = recorded()


def most_of(name: str) -> Counts:
    """What a file may have: its recorded counts, or those of a new file where they are higher."""
    assignments, conditionals = BEFORE.get(name, (0, 0))
    return assignments, max(conditionals, NOW[name].allowed_when_new[1])


def too_many(name: str, kind: str, lines: tuple[int, ...], most: int) -> list[str]:
    if len(lines) <= most:
        return []
    numbers = ", ".join(map(str, lines))
    return [f"{name} has {len(lines)} {kind}, and at most {most} are allowed; they are in the lines {numbers}"]


def test_no_file_has_more_dense_lines_than_before() -> None:
    problems: list[str] = []
    for name, dense in NOW.items():
        assignments, conditionals = most_of(name)
        problems += too_many(name, "assignments of several unrelated values", dense.assignments, assignments)
        problems += too_many(name, "conditional expressions", dense.conditionals, conditionals)

    remedy = "write one statement a line, and an `if` in place of a conditional expression (CONTRIBUTING.md, habit 11)"
    assert problems == [], remedy


def test_the_counts_fall_with_the_lines() -> None:
    assert lowered(BEFORE, NOW) == BEFORE, f"{RECORD} can be lower now: run `make format`"


@pytest.mark.parametrize(
    ("source", "counts"),
    [
        ("a, b = 1, 2", (1, 0)),
        ("a, b = [1, 2]", (1, 0)),
        ("self.a, self.b = a, b", (1, 0)),
        ("a, *b = 1, 2, 3", (1, 0)),
        ("c = a, b = 1, 2", (1, 0)),
        ("a, b = b, a", (0, 0)),
        ("a[0], a[1] = a[1], a[0]", (0, 0)),
        ("a, b = pair", (0, 0)),
        ("a, b = pair()", (0, 0)),
        ("(a,) = (1,)", (0, 0)),
        ("c = 1, 2", (0, 0)),
        ("a = 1 if b else 2", (0, 1)),
        ("a = 1 if b else 2 if c else 3", (0, 2)),
        ("a, b = (1 if c else 2), 3", (1, 1)),
        ("a = [1 if b else 2 for b in c]", (0, 1)),
        ("a = f'{1 if b else 2}'", (0, 1)),
        ("if a:\n    b = 1\nelse:\n    b = 2", (0, 0)),
    ],
)
def test_what_counts(source: str, counts: Counts) -> None:
    assert dense_lines(source).counts == counts


def test_a_new_file_may_have_9_conditional_expressions_in_1000_lines() -> None:
    assert dense_lines("a\n" * 1_000).allowed_when_new == (0, 9)
    assert dense_lines("a\n" * 110).allowed_when_new == (0, 0)


def dense(assignments: int, conditionals: int, length: int = 100) -> Dense:
    return Dense(tuple(range(assignments)), tuple(range(conditionals)), length)


@pytest.mark.parametrize(
    ("before", "now", "kept"),
    [
        ((3, 5), dense(2, 7), (2, 5)),
        ((3, 5), dense(4, 4), (3, 4)),
        ((3, 5), dense(0, 4), (0, 4)),
        ((3, 5), dense(0, 0), None),
        ((0, 20), dense(0, 9, length=1_000), None),
        ((0, 20), dense(0, 12, length=1_000), (0, 12)),
    ],
)
def test_a_count_is_lowered_and_never_raised(before: Counts, now: Dense, kept: Counts | None) -> None:
    assert lowered({"a.py": before}, {"a.py": now}).get("a.py") == kept


def test_a_file_that_is_gone_or_renamed_is_new() -> None:
    assert lowered({"a.py": (3, 5)}, {"b.py": dense(3, 5)}) == {}


def test_the_record_is_one_line_for_each_file() -> None:
    assert written({"b.py": (0, 1), "a.py": (2, 3)}).splitlines()[1:] == ["a.py: [2, 3]", "b.py: [0, 1]"]
