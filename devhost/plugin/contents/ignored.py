"""The lines of an ignore file as Dify's packager reads them.

In: the text of `.difyignore` or `.gitignore`. Out: whether it leaves a path out. It is not git's reading: each line is
one pattern, matched alone, and the first that matches a path leaves it out, so that a line with `!` changes nothing
(docs/host-facts.md, "Packages"; recorded in tests/fixtures/dify/packager.json).
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Self

NEGATION = "!"
ANY_FOLDERS = "**"


@dataclass(frozen=True)
class Ignored:
    patterns: tuple["_Pattern", ...]
    negations: tuple[tuple[int, str], ...]
    """Lines that begin with `!`, with their numbers from 1."""

    @classmethod
    def of(cls, text: str) -> Self:
        lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), start=1)]
        counted = [(number, line) for number, line in lines if line and not line.startswith("#")]
        patterns = (_Pattern.of(line) for _, line in counted if not line.startswith(NEGATION))
        return cls(tuple(patterns), tuple((number, line) for number, line in counted if line.startswith(NEGATION)))

    def leaves_out(self, path: str, *, is_folder: bool) -> bool:
        names = path.split("/")
        return any(pattern.matches(names, is_folder=is_folder) for pattern in self.patterns)


@dataclass(frozen=True)
class _Pattern:
    names: tuple[str, ...]
    folders_only: bool

    @classmethod
    def of(cls, line: str) -> Self:
        return cls(tuple(line.removesuffix("/").split("/")), line.endswith("/"))

    def matches(self, path: list[str], *, is_folder: bool) -> bool:
        if len(self.names) > 1:
            return self._matches_from_the_root(path, is_folder=is_folder)
        place = next((place for place, name in enumerate(path) if _fits(self.names[0], name)), None)
        return place is not None and not (self.folders_only and not is_folder and place == len(path) - 1)

    def _matches_from_the_root(self, path: list[str], *, is_folder: bool) -> bool:
        """What remains of the path when the pattern is used up does not matter: it is inside of what matched."""
        matched = skips = False
        for position, name in enumerate(self.names):
            if name == "":
                skips = False
            elif name == ANY_FOLDERS:
                if position == len(self.names) - 1:
                    break
                skips = True
            elif ANY_FOLDERS in name or not path:
                return False
            elif skips:
                skips = False
                place = next((place for place, part in enumerate(path) if _fits(name, part)), None)
                matched = place is not None
                path = path[place + 1 :] if place is not None else []
            elif _fits(name, path[0]):
                matched, path = True, path[1:]
            else:
                return False
        return matched and not (self.folders_only and not is_folder and not path)


def _fits(pattern: str, name: str) -> bool:
    expression = _expression(pattern)
    return expression is not None and expression.fullmatch(name) is not None


CLASS = re.compile(r"\[(\^?)((?:(?:\\.|[^]\\-])(?:-(?:\\.|[^]\\-]))?)+)\]", re.DOTALL)
"""As in Go's path/filepath: `^` negates, `!` does not, and neither `]` nor `-` stands alone in one."""


@cache
def _expression(pattern: str) -> re.Pattern[str] | None:
    """None for a pattern that Go cannot read: it matches nothing."""
    parts, place = [], 0
    while place < len(pattern):
        letter, place = pattern[place], place + 1
        if letter in "*?":
            parts.append(".*" if letter == "*" else ".")
        elif letter == "[":
            found = CLASS.match(pattern, place - 1)
            if found is None:
                return None
            parts.append(_class(found[2], is_negated=bool(found[1])))
            place = found.end()
        elif letter == "\\":
            if place == len(pattern):
                return None
            parts.append(re.escape(pattern[place]))
            place += 1
        else:
            parts.append(re.escape(letter))
    return re.compile("".join(parts), re.DOTALL)


def _class(listed: str, *, is_negated: bool) -> str:
    """Of single letters and ranges; a range that runs backwards has no letters."""
    ends = re.findall(r"(\\?.)(?:-(\\?.))?", listed, re.DOTALL)
    ranges = [(low[-1], (high or low)[-1]) for low, high in ends]
    letters = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in ranges if low <= high)
    if not letters:
        return "." if is_negated else "(?!)"
    return f"[{'^' if is_negated else ''}{letters}]"
