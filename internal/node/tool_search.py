"""Finds tools of the node by words in their names, descriptions and parameters, in any script."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nlargest
from itertools import pairwise
from math import log
from typing import Any

from internal.clock import in_turns
from internal.errors import OurWords
from internal.node.tools import Tool, Toolbox
from prompt import template

MAX_FOUND = 8
"""Maximum number of tools that one search returns (docs/many-tools.md)."""
_LINE_LENGTH = 120
_NAME_WEIGHT = 3
"""Weight of a word in a name. Other words have the weight 1."""
_SATURATION = 1.2
_LENGTH_SHARE = 0.75
"""The usual k1 and b of BM25."""
_STEM_LENGTH = 6
_WHOLE = 3
"""Maximum letters of a word that must match as a whole. For a longer word only the beginning must match, because
languages inflect the end."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Scripts without spaces between words: Thai, Lao, Burmese, Khmer, Chinese, Japanese; and Korean, which appends endings
to its words."""
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff"
"""Vowel signs and accents, which are a part of the word around them."""
_WORDS = rf"([{_UNSPACED}]+)|((?:[^\W_{_UNSPACED}]|[{_MARKS}])+)"
"""Pattern of words, compiled at the first search to keep startup short."""
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ASCII_WORDS = str.maketrans({chr(each): " " for each in range(128) if not chr(each).isalnum()})


def _comparable(text: str) -> str:
    """Return the words of a text in lower case, with a space before and after each."""
    if text.isascii():
        return f" {text.lower().translate(_ASCII_WORDS)} "
    words = re.findall(_WORDS, unicodedata.normalize("NFKC", text).casefold())
    return f" {' '.join(unspaced or word for unspaced, word in words)} "


def _terms(query: str) -> Iterator[str]:
    """Yield the strings to search for: beginnings of words, and pairs of characters in scripts without spaces."""
    for unspaced, word in re.findall(_WORDS, _comparable(query)):
        if unspaced:
            yield from map("".join, pairwise(unspaced)) if len(unspaced) > 1 else unspaced
        else:
            yield f" {word} " if len(word) <= _WHOLE else f" {word.removesuffix('s')[:_STEM_LENGTH]}"


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Return the names that share the most pairs of letters with an unknown ``name``, the closest first."""
    wanted = set(pairwise(name.casefold()))

    def likeness(other: str) -> float:
        pairs = set(pairwise(other.casefold()))
        return 2 * len(wanted & pairs) / max(1, len(wanted) + len(pairs))

    return nlargest(MAX_FOUND, in_turns(names), key=likeness)


@dataclass
class ToolSearch:
    """Searches the tools of one node, including those that its prompts do not offer."""

    toolbox: Toolbox
    found_before: Mapping[str, Tool] = field(default_factory=dict)
    """Tools by name that earlier runs of the conversation found. Prompts offer them from the beginning."""
    found: dict[str, Tool] = field(init=False)
    """Tools that all runs of the conversation found, the oldest first."""

    def __post_init__(self) -> None:
        self.found = dict(self.found_before)

    def look_up(self, offered: dict[str, Tool], arguments: Mapping[str, Any]) -> tuple[str, OurWords | None]:
        """Answer a call of ``find_tools``, and add the tools that it finds to ``offered``."""
        query = str(arguments["query"])
        best = self.best(query)
        self.offer(best, offered)
        if not best:
            return template.NO_TOOL_FOUND, OurWords("no tool has any of these words")
        lines = [f"- {tool.name}: {_line(tool.description)}" for tool in best]
        return "\n".join([template.TOOLS_FOUND, *lines]), None

    def offer(self, tools: Iterable[Tool], offered: dict[str, Tool]) -> list[Tool]:
        """Add the tools that no prompt offers yet to ``offered``, and return them."""
        new = [tool for tool in tools if tool.name in self.toolbox.held_back and tool.name not in offered]
        for tool in new:
            offered[tool.name] = self.found[tool.name] = tool
        return new

    def best(self, query: str) -> list[Tool]:
        """Return the tools that match the words best by BM25. Equal tools keep the order of the panel."""
        texts = self._texts
        scores = defaultdict[int, float](float)
        mean_length = sum(len(text) for _, text in texts) / max(1, len(texts))
        for term in dict.fromkeys(_terms(query)):
            counts = {at: times for at, (_, text) in enumerate(texts) if (times := text.count(term))}
            rarity = log(1 + (len(texts) - len(counts) + 0.5) / (len(counts) + 0.5))
            for at, times in counts.items():
                length = len(texts[at][1]) / mean_length
                room = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * length)
                scores[at] += rarity * times / (times + room)
        return [texts[at][0] for at, _ in nlargest(MAX_FOUND, sorted(scores.items()), key=lambda each: each[1])]

    @cached_property
    def _texts(self) -> list[tuple[Tool, str]]:
        """Each tool with the text that is searched."""
        return [(tool, _comparable(_said_of(tool))) for tool in self.toolbox.tools.values() if tool.runs]


def _said_of(tool: Tool) -> str:
    """Return the searchable text of a tool. A name such as ``getWeather`` is found as a whole and by its parts."""
    if tool.name == tool.own_name:
        name = tool.name
    else:
        name = f"{tool.name} {tool.own_name}"
    names = " ".join([*_NAME_WEIGHT * [name], *tool.parameters])
    return f"{names} {'' if names.islower() else _HUMP.sub(' ', names)} {tool.description}"


def _line(description: str) -> str:
    """Return the first line of a description, shortened."""
    first = next(iter(description.strip().splitlines()), "").strip()
    if len(first) <= _LINE_LENGTH:
        return first
    return f"{first[: _LINE_LENGTH - 1]}…"
