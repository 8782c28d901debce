"""The text that the user sees, with thoughts in blocks that are always closed."""

import re
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.render.messages import message_texts
from internal.text.thoughts import TextStream, without_thoughts
from tests.unit.generators import cut, cut_lists, joined

KINDS = ["thought", "remark", "answer", "new_paragraph", "host"]
AS_HOSTS_READ_TAGS = re.compile(r"</?think(?![\w-])[^>]*>", re.IGNORECASE)
PARTS = ["<think>", "</think>", "<THINK a='b'>", "</Think >", "<thinking>", "<", "/", "think", "th", "ink>", " ", "x>"]
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(["a", "b\n", "c d"])))
HOSTS_LINE = "Failed to download image: …"


def write(stream: TextStream, steps: list[tuple[str, str]]) -> str:
    """What stands in the node's text after these steps; the host could not fetch any image."""
    written = []
    for kind, text in steps:
        if kind == "new_paragraph":
            written.append(stream.new_paragraph())
        elif kind == "host":
            written += [stream.leave_a_line(), HOSTS_LINE]
        elif kind == "remark":
            stream.remark(text)
        else:
            written.append(getattr(stream, kind)(text))
    return "".join([*written, stream.finish()])


WRITTEN: list[tuple[list[tuple[str, str]], str]] = [
    (
        [("thought", "one"), ("thought", " two"), ("new_paragraph", ""), ("answer", "It is y.")],
        "<think>\none two\n</think>\n\nIt is y.",
    ),
    ([("answer", "a"), ("thought", "b")], "a\n<think>\nb\n</think>\n"),
    ([("thought", "a"), ("answer", "b")], "<think>\na\n</think>\nb"),
    ([("new_paragraph", ""), ("answer", "a\n"), ("new_paragraph", ""), ("new_paragraph", "")], "a\n\n"),
    (
        [("remark", "Used a."), ("remark", "Used b."), ("thought", "hm"), ("remark", "Used c."), ("answer", "Yes.")],
        "<think>\nUsed a.\n\nUsed b.\n\nhm\n</think>\nYes.\n<think>\nUsed c.\n</think>\n",
    ),
    ([("host", ""), ("answer", "a"), ("answer", "b")], f"{HOSTS_LINE}\nab"),
    ([("answer", "a\n"), ("host", ""), ("host", "")], f"a\n{HOSTS_LINE}\n{HOSTS_LINE}"),
    ([("answer", "a"), ("host", ""), ("new_paragraph", ""), ("answer", "b")], f"a\n{HOSTS_LINE}\n\nb"),
]


@pytest.mark.parametrize(("steps", "text"), WRITTEN)
def test_thoughts_are_in_blocks_of_their_own_lines(steps: list[tuple[str, str]], text: str) -> None:
    assert write(TextStream(), steps) == text


@given(STEPS)
def test_text_that_the_host_adds_has_its_own_line(steps: list[tuple[str, str]]) -> None:
    lines = write(TextStream(), steps).split("\n")

    assert lines.count(HOSTS_LINE) == sum(kind == "host" for kind, _ in steps)


@given(joined(["<", "!--", "`", "``", "~", "~~~", "$", "\\", "[", "a", "\n", "<think>", "</think>"]), cut_lists(40))
def test_nothing_in_a_thought_hides_a_question_behind_it(thought: str, cuts: list[int]) -> None:
    steps = [("thought", piece) for piece in cut(thought, cuts)]
    text = write(TextStream(may_ask=True), [*steps, ("new_paragraph", ""), ("answer", "`a` <b>?")])
    inside = text.partition("<think>\n")[2].partition("\n</think>\n\n`a` <b>?")[0]

    assert not re.search(r"<(?!\u2060)|```|~~~|\$\$|\\\[", inside)
    assert inside.replace("\u2060", "") == thought
    assert text == write(
        TextStream(may_ask=True), [("thought", thought), ("new_paragraph", ""), ("answer", "`a` <b>?")]
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("`<think>`", "`<\u2060think>`"),
        ("a</THINK>b", "a<\u2060/THINK>b"),
        ("<think foo='1'>", "<\u2060think foo='1'>"),
        ("<think", "<\u2060think"),
        ("<thinking> <thinker> <b> a < b", "<thinking> <thinker> <b> a < b"),
    ],
)
def test_a_quoted_tag_has_a_word_joiner_after_its_bracket(text: str, written: str) -> None:
    assert write(TextStream(), [("answer", text)]) == written
    assert without_thoughts(written) == text


@given(joined(PARTS), cut_lists(60), st.sampled_from(["answer", "thought"]))
def test_no_quoted_tag_is_left_however_the_text_is_cut(text: str, cuts: list[int], kind: str) -> None:
    written = write(TextStream(), [(kind, piece) for piece in cut(text, cuts)])
    inside = written.removeprefix("<think>\n").removesuffix("\n</think>\n") if kind == "thought" else written

    assert written == write(TextStream(), [(kind, text)])
    assert not AS_HOSTS_READ_TAGS.search(inside)
    assert inside.replace("\u2060", "") == text


def test_only_the_beginning_of_a_tag_waits() -> None:
    stream = TextStream()

    assert stream.answer("a < b </thin") == "a < b "
    assert stream.answer("gs are fine") == "</things are fine"
    assert stream.answer("a" * 1000 + "<think") == "a" * 1000
    assert stream.answer("ing") == "<thinking"


@given(STEPS)
def test_every_block_is_closed_before_the_next_one_opens(steps: list[tuple[str, str]]) -> None:
    text = write(TextStream(), steps)

    assert "".join(re.findall("</?think>", text)).replace("<think></think>", "") == ""
    assert not text.startswith("\n")


@given(st.text(st.sampled_from("aé日😀"), max_size=300), st.integers(4, 40))
def test_a_text_is_cut_into_messages_by_its_bytes_and_never_within_a_character(text: str, most: int) -> None:
    with patch("internal.render.messages.MAX_TEXT_BYTES", most):
        pieces = list(message_texts(text))

    assert "".join(pieces) == text
    assert all(len(piece.encode()) <= most for piece in pieces)
    assert len(pieces) <= len(text.encode()) // (most - 3) + 1
