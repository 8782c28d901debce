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


def test_thoughts_are_in_a_block_of_their_own_before_the_answer() -> None:
    steps = [("thought", "one"), ("thought", " two"), ("new_paragraph", ""), ("answer", "It is y.")]

    assert write(TextStream(), steps) == "<think>\none two\n</think>\n\nIt is y."


def test_a_thought_after_an_answer_begins_on_its_own_line() -> None:
    assert write(TextStream(), [("answer", "a"), ("thought", "b")]) == "a\n<think>\nb\n</think>\n"


def test_an_answer_closes_the_thought_before_it() -> None:
    assert write(TextStream(), [("thought", "a"), ("answer", "b")]) == "<think>\na\n</think>\nb"


def test_a_new_paragraph_is_set_off_once_and_never_at_the_beginning() -> None:
    stream = TextStream()

    assert stream.new_paragraph() == ""
    stream.answer("a\n")
    assert stream.new_paragraph() == "\n"
    assert stream.new_paragraph() == ""


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


def test_no_second_line_break_is_added() -> None:
    assert write(TextStream(), [("host", ""), ("answer", "a"), ("answer", "b")]) == f"{HOSTS_LINE}\nab"
    assert write(TextStream(), [("answer", "a\n"), ("host", ""), ("host", "")]) == f"a\n{HOSTS_LINE}\n{HOSTS_LINE}"
    assert write(TextStream(), [("answer", "a"), ("host", ""), ("new_paragraph", ""), ("answer", "b")]) == (
        f"a\n{HOSTS_LINE}\n\nb"
    )


def test_closing_without_an_open_block_writes_nothing() -> None:
    assert TextStream().close_thought() == ""


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


def test_remarks_begin_the_next_block_or_are_one_before_what_follows() -> None:
    steps = [("remark", "Used a."), ("remark", "Used b."), ("thought", "hm"), ("remark", "Used c.")]

    assert write(TextStream(), [*steps, ("new_paragraph", ""), ("answer", "Yes.")]) == (
        "<think>\nUsed a.\n\nUsed b.\n\nhm\n</think>\n<think>\nUsed c.\n</think>\n\nYes."
    )


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
