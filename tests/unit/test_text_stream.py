"""The text that the user sees, with thoughts in blocks that are always closed."""

import re
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from internal.thoughts.text_stream import TextStream, message_texts
from tests.unit.generators import cut, cut_lists, joined

KINDS = ["thought", "answer", "new_paragraph", "host"]
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
        else:
            written.append(getattr(stream, kind)(text))
    return "".join([*written, stream.close_thought()])


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


def test_a_tag_that_a_thought_merely_quotes_opens_and_closes_nothing() -> None:
    text = write(TextStream(), [("thought", "the <think> and </think> tags")])

    assert text == "<think>\nthe <\u2060think> and <\u2060/think> tags\n</think>\n"


@given(joined(["<think>", "</think>", "a", "<"]), cut_lists(60))
def test_a_quoted_tag_opens_nothing_however_the_thought_is_cut(thought: str, cuts: list[int]) -> None:
    text = write(TextStream(), [("thought", piece) for piece in cut(thought, cuts)])

    assert text.count("<think>") == text.count("</think>") == 1


@given(STEPS)
def test_every_block_is_closed_before_the_next_one_opens(steps: list[tuple[str, str]]) -> None:
    text = write(TextStream(), steps)

    assert "".join(re.findall("</?think>", text)).replace("<think></think>", "") == ""
    assert not text.startswith("\n")


@given(st.text(st.sampled_from("aé日😀"), max_size=300), st.integers(4, 40))
def test_a_text_is_cut_into_messages_by_its_bytes_and_never_within_a_character(text: str, most: int) -> None:
    with patch("internal.thoughts.text_stream.MAX_TEXT_BYTES", most):
        pieces = list(message_texts(text))

    assert "".join(pieces) == text
    assert all(len(piece.encode()) <= most for piece in pieces)
    assert len(pieces) <= len(text.encode()) // (most - 3) + 1
