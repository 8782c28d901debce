"""Thoughts and visible text, told apart however the stream is cut."""

import re
from itertools import groupby
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.text import fairness
from internal.thoughts.markdown_code import CodeReader
from internal.thoughts.think_tags import OF_MODELS, Tags
from internal.thoughts.thinking import Piece, PieceKind, ThoughtSplitter, settled, without_thoughts
from tests.unit.generators import cut, cut_lists, joined

PARTS = [
    "<think>",
    "</think>",
    "<THINK a='b'>",
    "</Think >",
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


def split_thoughts(text: str, **end: bool) -> list[Piece]:
    """All pieces of a text that comes at once, as text and thought alone."""
    return settled(fed([text], **end))


def read(text: str, **end: bool) -> tuple[str, str]:
    """The visible text and the thoughts of a whole text."""
    pieces = split_thoughts(text, **end)
    visible = "".join(piece.text for piece in pieces if piece.kind is PieceKind.TEXT)
    return visible, "".join(piece.text for piece in pieces if piece.kind is PieceKind.THOUGHT)


def fed(chunks: list[str], **end: bool) -> list[Piece]:
    splitter = ThoughtSplitter()
    pieces = [piece for chunk in chunks for piece in splitter.feed(chunk)]
    return pieces + splitter.finish(**{"calls_follow": False, **end})


ENDS = st.fixed_dictionaries({"calls_follow": st.booleans(), "is_cut": st.booleans()})


@given(joined(PARTS), cut_lists(120), ENDS)
def test_any_split_of_a_text_gives_the_same_pieces(text: str, cuts: list[int], end: dict[str, bool]) -> None:
    whole = merged(split_thoughts(text, **end))

    assert merged(settled(fed(cut(text, cuts), **end))) == whole
    assert merged(settled(fed(list(text), **end))) == whole


@given(joined(PARTS), ENDS)
def test_nothing_is_lost_but_the_tags_and_the_space_around_thoughts(text: str, end: dict[str, bool]) -> None:
    def letters(written: str) -> str:
        return "".join(re.sub(OF_MODELS.pattern, "", written, flags=re.IGNORECASE).split())

    # Piece by piece: where a tag was taken out, what stood around it may look like another.
    said = [letters(piece.text) for piece in split_thoughts(text, **end)]

    assert "".join(said) == letters(text)


@given(joined(["<think>", "</think>", "<think> ", "\n</think>\n", "T"]), st.booleans())
def test_text_between_balanced_tags_is_never_visible(inside: str, calls_follow: bool) -> None:  # noqa: FBT001
    depth, balanced = 0, ""
    for tag in re.findall(r"</?think>|T", inside):
        depth += {"<think>": 1, "</think>": -1}.get(tag, 0)
        balanced += tag if depth >= 0 else ""
        depth = max(0, depth)
    text = f"<think>{balanced}{'</think>' * depth}</think>A"

    assert read(text, calls_follow=calls_follow)[0] == "A"


@given(joined(["<think>", "<THINK>", "x", " ", "`", "\n\n"]), st.booleans())
def test_text_after_the_last_closing_tag_is_the_answer(inside: str, calls_follow: bool) -> None:  # noqa: FBT001
    visible, thought = read(f"<think>{inside}</think>The answer.", calls_follow=calls_follow)

    assert visible == "The answer."
    assert thought.count("x") == inside.count("x")


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
        ("a </think> b", " b", "a \n"),
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
        ("use ``` here\n```x``` `<think>` <think>y</think>z", "use ``` here\n```x``` `<think>` z", "y\n"),
        ("a ``` b `<think>` c", "a ``` b `<think>` c", ""),
        ("it`s\n```\n<think>\n```\n<think>y</think>z", "it`s\n```\n<think>\n```\nz", "y\n"),
        ("it`s\r\n\r\n<think>y</think>`z", "it`s\r\n\r\n`z", "y\n"),
    ],
)
def test_a_closed_block_outside_code_is_a_thought(text: str, visible: str, thought: str) -> None:
    assert read(text) == (visible, thought)


@pytest.mark.parametrize(
    ("text", "visible", "thought"),
    [
        ("<THINK>a</THINK>b", "b", "a\n"),
        ('<think foo="bar">a</think >b', "b", "a\n"),
        ("<Think\n>a</tHINK\t>b", "b", "a\n"),
        ("<think/>b", "<think/>b", ""),
        (f"<think {'x' * 101}>a", f"<think {'x' * 101}>a", ""),
    ],
)
def test_tags_in_any_case_with_white_space_or_attributes(text: str, visible: str, thought: str) -> None:
    assert read(text) == (visible, thought)


@pytest.mark.parametrize(
    ("text", "visible", "thought"),
    [
        ("<think><think>a</think></think>b", "b", "a\n"),
        ("<think>\n<think>\na</think>\n</think>\nb", "\nb", "\n\na\n\n"),
        ("<think><think>a</think>b", "b", "a\n"),
        ("<think>The <think> tag.</think>The answer.", "The answer.", "The <think> tag.\n"),
        ("<think>one <think>two</think> three</think>b", "b", "one <think>two</think> three\n"),
        ("<think>`<think>x</think>` so</think>b", "b", "`<think>x</think>` so\n"),
        ("<think>a <think>b</think> `c <think> d` e", " `c <think> d` e", "a <think>b\n"),
        ("<think>a <think>b</think><think>c", "", "a <think>b\nc"),
        ("a <think>b <think>c</think> d", "a  d", "b <think>c\n"),
        ("<think><think>a</think>b <think>c", "b <think>c", "a\n"),
    ],
)
def test_tags_inside_a_thought_count_as_levels(text: str, visible: str, thought: str) -> None:
    assert read(text) == (visible, thought)


@pytest.mark.parametrize(
    ("text", "visible", "thought"),
    [
        ("hm</think>b", "b", "hm\n"),
        ("hm\n</think>\n\nb", "\n\nb", "hm\n\n"),
        ("</think>b", "b", "\n"),
        ("a</think>b</think>c", "c", "a\nb\n"),
        ("<think>To close, write </think> so.</think>c", "c", "To close, write \n so.\n"),
        ("it`s</think>c", "c", "it`s\n"),
        ("```\nx\n```\n</think>c", "c", "```\nx\n```\n\n"),
        ("a `</think>` b", "a `</think>` b", ""),
        ("```\n</think>\n```", "```\n</think>\n```", ""),
        ("hm</think><think>never closed", "", "hm\nnever closed"),
    ],
)
def test_text_before_a_closing_tag_without_an_opening_one_is_a_thought(text: str, visible: str, thought: str) -> None:
    assert read(text) == (visible, thought)


@pytest.mark.parametrize(
    ("text", "visible", "thought"),
    [
        ("<think>never closed", "", "never closed"),
        ("I will look.<think>hm", "I will look.", "hm"),
        ("<think>one <think>two</think> three", "", "one <think>two</think> three"),
        ("Use `<think>` so", "Use `<think>` so", ""),
    ],
)
def test_an_unclosed_thought_of_a_turn_that_was_cut_stays_a_thought(text: str, visible: str, thought: str) -> None:
    assert read(text, is_cut=True) == (visible, thought)


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


def test_text_that_cannot_become_a_tag_is_not_held_back() -> None:
    splitter = ThoughtSplitter()

    assert splitter.feed(f"<think {'a' * 99}") == []
    assert [piece.text for piece in splitter.feed("aa")] == [f"<think {'a' * 101}"]


@pytest.mark.heavy
@pytest.mark.parametrize(
    "text",
    [
        "`a " * 2_000,
        "`<think> ``" * 1_000,
        "".join(f"{'`' * run}</think>" for run in range(1, 60)) + "</think>" * 1_000,
        "text <think>" + "word " * 5_000,
        "<think>a<think></think>" + "`b <think>" * 1_000,
    ],
    ids=["backticks", "tags after backticks", "runs of every length", "an unclosed tag", "an open level"],
)
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_every_token_is_read_a_few_times_at_most(text: str, size: int) -> None:
    """Counted, since a clock would measure the machine: a text of a megabyte must not freeze the process."""
    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    with patch.object(CodeReader, "_read", autospec=True, side_effect=CodeReader._read) as read_token:
        said = fed(chunks)

    marks = len(re.findall(rf"{OF_MODELS.pattern}|`+|\n", text))
    assert read_token.call_count <= 3 * (2 * marks + len(chunks) + 2)
    assert "".join(piece.text for piece in said).count("a") == text.count("a")


@pytest.mark.parametrize("text", ["`a " * 5_000, "a `<think> b" + "c ``" * 5_000, "<think>a<think></think>" + "`" * 99])
def test_long_work_lets_other_runs_continue(text: str) -> None:
    with patch.object(fairness, "MAX_TURN_SECONDS", -1), patch.object(fairness, "give_way") as give_way:
        fed([text])

    tokens = len(re.findall(rf"{OF_MODELS.pattern}|`+", text))
    assert give_way.call_count > tokens


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("  as it is\n", "  as it is\n"),
        ("<think>a</think>\n\nanswer\n", "answer"),
        ("```\n<think>x</think>\n```", "```\n<think>x</think>\n```"),
        ("<think>only", ""),
        ("hm</think>\n\nanswer", "answer"),
        ("Use `<\u2060think>` and <\u2060/THINK>.", "Use `<think>` and </THINK>."),
        ("<think>a</think>\n\nUse <\u2060think>.", "Use <think>."),
        ("", ""),
    ],
)
def test_the_visible_text_alone_loses_the_blank_lines_around_its_thoughts(text: str, visible: str) -> None:
    assert without_thoughts(text) == visible


def test_a_tag_that_only_models_write_marks_thoughts_in_a_turn_and_is_text_in_the_history() -> None:
    text = "In XML, <reasoning>why</reasoning> is an element."
    splitter = ThoughtSplitter(Tags(("think", "reasoning")))
    pieces = splitter.feed(text) + splitter.finish(calls_follow=False)

    assert merged(settled(pieces))[1] == (PieceKind.THOUGHT, "why\n")
    assert without_thoughts(text) == text
    assert without_thoughts(f"<think>\nwhy\n</think>\n{text}") == text
