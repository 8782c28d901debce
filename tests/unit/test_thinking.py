"""Thoughts and visible text, told apart however the stream is cut."""

from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from internal.thinking import Piece, PieceKind, ThoughtSplitter, split_thoughts, without_thoughts
from tests.unit.generators import cut, cut_lists, joined

PARTS = [
    "<think>",
    "</think>",
    "<thi",
    "nk>",
    "</",
    "`",
    "``",
    "```",
    "~~~",
    "````",
    "\n",
    "\n\n",
    "\n```python\n",
    "\n```\n",
    "    ",
    " ",
    "word",
    "日本",
]


def merged(pieces: list[Piece]) -> list[tuple[PieceKind, str]]:
    """Neighbours of one kind as one."""
    return [(kind, "".join(piece.text for piece in group)) for kind, group in groupby(pieces, lambda piece: piece.kind)]


def read(text: str, *, calls_follow: bool = False) -> tuple[str, str]:
    """The visible text and the thoughts of a whole text."""
    pieces = split_thoughts(text, calls_follow=calls_follow)
    visible = "".join(piece.text for piece in pieces if piece.kind is PieceKind.TEXT)
    return visible, "".join(piece.text for piece in pieces if piece.kind is PieceKind.THOUGHT)


def fed(chunks: list[str], *, calls_follow: bool) -> list[Piece]:
    splitter = ThoughtSplitter()
    pieces = [piece for chunk in chunks for piece in splitter.feed(chunk)]
    return pieces + splitter.finish(calls_follow=calls_follow)


@given(joined(PARTS), cut_lists(120), st.booleans())
@settings(deadline=None, max_examples=300)
def test_any_split_of_a_text_gives_the_same_pieces(text: str, cuts: list[int], calls_follow: bool) -> None:  # noqa: FBT001
    whole = merged(split_thoughts(text, calls_follow=calls_follow))

    assert merged(fed(cut(text, cuts), calls_follow=calls_follow)) == whole
    assert merged(fed(list(text), calls_follow=calls_follow)) == whole


@given(joined(PARTS), st.booleans())
@settings(deadline=None, max_examples=200)
def test_nothing_is_lost_but_the_tags_and_the_space_around_thoughts(text: str, calls_follow: bool) -> None:  # noqa: FBT001
    def letters(written: str) -> str:
        return "".join(written.replace("<think>", "").replace("</think>", "").split())

    # Piece by piece: where a tag was taken out, what stood around it may look like another.
    said = [letters(piece.text) for piece in split_thoughts(text, calls_follow=calls_follow)]

    assert "".join(said) == letters(text)


@pytest.mark.parametrize(
    ("text", "visible", "thought"),
    [
        ("plain", "plain", ""),
        ("<think>a</think>b", "b", "a\n"),
        ("<think>\na\n</think>\n\nb", "\n\nb", "\na\n\n"),
        ("b<think>a</think>c", "bc", "a\n"),
        ("<think>a</think><think>b</think>c", "c", "a\nb\n"),
        ("<think></think>c", "c", "\n"),
        ("<think>never closed", "", "never closed"),
        ("<think>a</think><think>never closed", "", "a\nnever closed"),
        ("text <think>never closed", "text <think>never closed", ""),
        ("a </think> b", "a </think> b", ""),
        ("<thinking>a</thinking>", "<thinking>a</thinking>", ""),
        ("<think", "<think", ""),
        ("use `<think>x</think>` here", "use `<think>x</think>` here", ""),
        ("``a ` <think>x</think> ``", "``a ` <think>x</think> ``", ""),
        ("a ` b <think>x</think>", "a ` b ", "x\n"),
        ("a ` b\n\n<think>x</think> ` c", "a ` b\n\n ` c", "x\n"),
        ("```\n<think>x</think>\n```\n<think>y</think>z", "```\n<think>x</think>\n```\nz", "y\n"),
        ("~~~ py\n<think>x</think>\n~~~\n", "~~~ py\n<think>x</think>\n~~~\n", ""),
        ("````\n```\n<think>x</think>\n````", "````\n```\n<think>x</think>\n````", ""),
        ("   ```\n<think>x</think>", "   ```\n<think>x</think>", ""),
        ("a ```x``` <think>y</think>", "a ```x``` ", "y\n"),
        ("<think>a ``` b</think>c", "c", "a ``` b\n"),
    ],
)
def test_a_closed_block_outside_code_is_a_thought(text: str, visible: str, thought: str) -> None:
    assert read(text) == (visible, thought)


def test_an_unclosed_block_after_text_is_a_thought_only_when_calls_follow() -> None:
    assert read("I will look.<think>hm", calls_follow=True) == ("I will look.", "hm")
    assert read("I will look.<think>hm", calls_follow=False) == ("I will look.<think>hm", "")


def test_thoughts_stream_as_they_come() -> None:
    splitter = ThoughtSplitter()

    assert splitter.feed("<think>first") == [Piece(PieceKind.THOUGHT, "first")]
    assert splitter.feed(" second</thi") == [Piece(PieceKind.THOUGHT, " second")]
    assert splitter.feed("nk>done") == [Piece(PieceKind.THOUGHT, "\n"), Piece(PieceKind.TEXT, "done")]


def test_plain_text_streams_as_it_comes() -> None:
    splitter = ThoughtSplitter()

    assert [piece.text for chunk in ("Hello", ", wor", "ld") for piece in splitter.feed(chunk)] == [
        "Hello",
        ", wor",
        "ld",
    ]


def test_a_long_text_with_an_unclosed_tag_is_split_in_reasonable_time() -> None:
    chunks = ["text <think>", *["word "] * 5_000]

    assert "".join(piece.text for piece in fed(chunks, calls_follow=False)) == "".join(chunks)


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("  as it is\n", "  as it is\n"),
        ("<think>a</think>\n\nanswer\n", "answer"),
        ("```\n<think>x</think>\n```", "```\n<think>x</think>\n```"),
        ("<think>only", ""),
        ("", ""),
    ],
)
def test_the_visible_text_alone_loses_the_blank_lines_around_its_thoughts(text: str, visible: str) -> None:
    assert without_thoughts(text) == visible
