"""A Markdown text → its title and its passages.

A passage is at most one section: it begins with the headings that it stands under, ends at the end of a block, and has
about `SIZE` characters at most. A longer block is cut at the ends of its sentences.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt

SIZE = 700
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_SENTENCE = re.compile(r".*?(?:[。！？]|[.!?](?=\s)|\n|\Z)", re.DOTALL)
_PARSER = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True)
class Document:
    title: str
    passages: tuple[str, ...]


@dataclass(frozen=True)
class _Block:
    headings: tuple[str, ...]
    """That it stands under, outermost first."""
    text: str


def read_markdown(text: str, name: str) -> Document:
    """`name`: the title of a text that has no heading."""
    blocks = list(_blocks(_FRONT_MATTER.sub("", text.replace("\r\n", "\n"))))
    title = next((block.headings[0] for block in blocks if block.headings), name)
    return Document(title, tuple(_passages(blocks)))


def _blocks(text: str) -> Iterator[_Block]:
    lines = text.split("\n")
    headings: dict[int, str] = {}
    tokens = _PARSER.parse(text)
    for number, token in enumerate(tokens):
        if token.level or token.map is None or token.nesting < 0:
            continue
        if token.type == "heading_open":
            level = int(token.tag.removeprefix("h"))
            headings = {above: said for above, said in headings.items() if above < level}
            headings[level] = tokens[number + 1].content
        else:
            yield _Block(tuple(headings.values()), "\n".join(lines[slice(*token.map)]).strip())


def _passages(blocks: Sequence[_Block]) -> Iterator[str]:
    collected: list[str] = []
    under: tuple[str, ...] = ()

    def passage() -> Iterator[str]:
        if collected:
            yield "\n\n".join([*([" › ".join(under)] if under else []), *collected])

    for block in blocks:
        for piece in _pieces(block.text):
            if block.headings != under or sum(map(len, collected)) + len(piece) > SIZE:
                yield from passage()
                collected = []
                under = block.headings
            collected.append(piece)
    yield from passage()


def sentences(passage: str) -> list[str]:
    """What is compared by meaning: each sentence of a passage, and the headings that it stands under."""
    found = (each.strip(" \n-*|#") for each in _SENTENCE.findall(passage))
    return [each for each in found if len(each) > 1]


def _pieces(text: str) -> Iterator[str]:
    if len(text) <= SIZE:
        yield text
        return
    piece = ""
    for sentence in _SENTENCE.findall(text):
        for start in range(0, len(sentence), SIZE):
            part = sentence[start : start + SIZE]
            if len(piece) + len(part) > SIZE:
                yield piece.strip()
                piece = ""
            piece += part
    if piece.strip():
        yield piece.strip()
