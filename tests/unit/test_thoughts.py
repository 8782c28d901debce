"""Thoughts and visible text, told apart however the stream is cut, and written in blocks that are always closed."""

import re
from itertools import groupby

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from internal.text.thoughts import (
    MAX_ATTRIBUTES_LENGTH,
    Piece,
    PieceKind,
    TextStream,
    ThoughtSplitter,
    without_thoughts,
    without_was_thought,
)
from tests.support.generators import cut, cut_lists, joined

TAG = re.compile(r"</?think(?:\s[^<>]{0,100})?>", re.IGNORECASE)
PARTS = ["<think>", "</think>", "<THINK a='b'>", "</Think >", "<thi", "nk>", "</", "`", "```", "~~~", "````"]
PARTS += ["\n", "\n", "\n<think>", "</think>\n", "\n```python\n", "\n```\n", "\n~~~\n", "    ", " ", "word", "日本"]
ENDS = st.fixed_dictionaries({"calls_follow": st.booleans(), "is_cut": st.booleans()})


def merged(pieces: list[Piece]) -> list[tuple[PieceKind, str]]:
    """Neighbours of one kind as one."""
    return [(kind, "".join(piece.text for piece in group)) for kind, group in groupby(pieces, lambda piece: piece.kind)]


def fed(chunks: list[str], **end: bool) -> list[Piece]:
    """All pieces of a text that comes in chunks."""
    return fed_to(ThoughtSplitter(), chunks, **end)


def fed_to(splitter: ThoughtSplitter, chunks: list[str], **end: bool) -> list[Piece]:
    pieces = [piece for chunk in chunks for piece in splitter.feed(chunk)]
    return pieces + splitter.finish(**{"calls_follow": False, **end})


def read(text: str, **end: bool) -> tuple[str, str]:
    """The visible text and the thoughts of a whole text."""
    pieces = without_was_thought(fed([text], **end))
    visible = "".join(piece.text for piece in pieces if piece.kind is PieceKind.TEXT)
    return visible, "".join(piece.text for piece in pieces if piece.kind is PieceKind.THOUGHT)


@given(joined(PARTS), cut_lists(120), ENDS)
def test_any_split_of_a_text_gives_the_same_pieces(text: str, cuts: list[int], end: dict[str, bool]) -> None:
    whole = merged(fed([text], **end))

    assert merged(fed(cut(text, cuts), **end)) == whole
    assert merged(fed(list(text), **end)) == whole


OTHER_TAGS = [
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel>thought", "<channel|>"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
]


@given(joined(PARTS), cut_lists(120), ENDS, st.sampled_from(OTHER_TAGS))
def test_other_tags_mean_the_same_however_the_text_is_cut(
    text: str, cuts: list[int], end: dict[str, bool], tags: tuple[str, str]
) -> None:
    opening, closing = tags
    text = re.sub(
        r"<think[^<>]*>",
        "<think>",
        re.sub(r"</think[^<>]*>", "</think>", text, flags=re.IGNORECASE),
        flags=re.IGNORECASE,
    )
    without = text.replace("<think>", "").replace("</think>", "")
    assume("think>" not in without)  # two halves with a tag between them look like a tag once that is gone
    written = text.replace("<think>", opening).replace("</think>", closing)

    whole = merged(fed_to(ThoughtSplitter(tags), [written], **end))

    assert (
        merged(fed_to(ThoughtSplitter(tags), cut(written, cuts), **end))
        == merged(fed_to(ThoughtSplitter(tags), list(written), **end))
        == whole
    )
    plain = [
        (kind, said.replace("<think>", opening).replace("</think>", closing))
        for kind, said in merged(fed([text], **end))
    ]
    assert whole == plain


@pytest.mark.parametrize("tags", OTHER_TAGS)
def test_tags_that_are_not_set_are_text(tags: tuple[str, str]) -> None:
    text = f"{tags[0]}hm{tags[1]}\nDone."

    assert without_thoughts(text) == text
    assert without_thoughts(text, tags) == "Done."
    assert without_thoughts("<think>hm</think>\nDone.", tags) == "Done."


@given(joined(PARTS), ENDS)
def test_nothing_is_lost_but_tags_and_the_space_around_thoughts(text: str, end: dict[str, bool]) -> None:
    def letters(written: str) -> str:
        return "".join(TAG.sub("", written).split())

    # Piece by piece: where a tag was taken out, what stood around it may look like another.
    assert "".join(letters(piece.text) for piece in fed([text], **end)) == letters(text)


@given(joined(["<think>", "</think>", "<think> ", "\n</think>\n", "T"]), st.booleans())
def test_text_between_balanced_tags_is_never_visible(inside: str, calls_follow: bool) -> None:  # noqa: FBT001
    depth = 0
    balanced = ""
    for tag in re.findall(r"</?think>|T", inside):
        depth += {"<think>": 1, "</think>": -1}.get(tag, 0)
        balanced += tag if depth >= 0 else ""
        depth = max(0, depth)
    text = f"<think>{balanced}{'</think>' * depth}</think>A"

    assert read(text, calls_follow=calls_follow)[0] == "A"


@given(joined(["cut ", "<think>", "</think>", "word", ", ", "`"]), st.sampled_from(["a", "`", "1. "]))
def test_tags_inside_a_sentence_are_text(sentence: str, first: str) -> None:
    text = f"{first}{sentence}."

    assert read(text) == (text, "")


@given(joined(["<think>", "</think>", "\n", "x`", " "]), st.sampled_from(["```", "~~~", "````"]))
def test_tags_in_a_code_fence_are_text(code: str, marks: str) -> None:
    text = f"Use it so:\n{marks}xml\n{code}\n{marks}\n"

    assert read(f"{text}<think>hm</think>Yes.") == (f"{text}Yes.", "hm\n")


TEXTS = {
    "at a line's beginning": ("b\n  <think>a</think>c", "b\n  c", "a\n"),
    "amid a line": ("b <think>a</think>c", "b <think>a</think>c", ""),
    "behind one and a word": ("<think>a</think> x <think>b</think>c", " x <think>b</think>c", "a\n"),
    "never closed behind another": ("<think>a</think><think>never closed", "", "a\nnever closed"),
    "capitals and attributes": ("<THINK\nfoo='bar'>a</tHINK\t>b", "b", "a\n"),
    "attributes that are too long": (f"<think {'x' * 101}>a", f"<think {'x' * 101}>a", ""),
    "half a tag": ("<think", "<think", ""),
    "nested": ("<think>one <think>two</think> three</think>b", "b", "one two three\n"),
    "a level left open, doubled": ("<think><think>a</think>b", "b", "a\n"),
    "a level left open, and an answer about tags": ("<think>a <think>b</think>Use <think>.", "Use <think>.", "a b\n"),
    "tags at a line's beginning and behind": ("a\n<think> and <think> open.", "a\n<think> and <think> open.", ""),
    "no beginning, twice": ("a</think>\nb</think>\nc", "\nc", "a\n\nb\n"),
    "no beginning, in code": ("```\n</think>\n```", "```\n</think>\n```", ""),
    "a code fence within a thought": ("<think>a\n```\n</think>b", "b", "a\n```\n\n"),
}


@pytest.mark.parametrize(("text", "visible", "thought"), TEXTS.values(), ids=TEXTS)
def test_where_thoughts_begin_and_end(text: str, visible: str, thought: str) -> None:
    assert read(text) == (visible, thought)


@pytest.mark.parametrize("end", [{"calls_follow": True}, {"is_cut": True}], ids=str)
def test_a_thought_amid_a_turn_that_calls_tools_or_was_cut_need_not_be_closed(end: dict[str, bool]) -> None:
    assert read("I will look.\n<think>hm", **end) == ("I will look.\n", "hm")
    assert read("I will look. <think>hm", **end) == ("I will look. <think>hm", "")
    is_cut = end.get("is_cut", False)
    assert read("<think>one <think>two</think> three", **end)[0] == ("" if is_cut else " three")


def test_text_and_thoughts_stream_as_they_come() -> None:
    splitter = ThoughtSplitter()

    assert splitter.feed("<think>first") == [Piece(PieceKind.THOUGHT, "first")]
    assert splitter.feed(" second</thi") == [Piece(PieceKind.THOUGHT, " second")]
    assert splitter.feed("nk>Hello") == [Piece(PieceKind.THOUGHT, "\n"), Piece(PieceKind.TEXT, "Hello")]
    assert splitter.feed(", wor") == [Piece(PieceKind.TEXT, ", wor")]
    assert splitter.feed("ld <") == [Piece(PieceKind.TEXT, "ld ")]
    assert splitter.feed(f"think {'a' * (MAX_ATTRIBUTES_LENGTH - 1)}") == []
    assert [piece.text for piece in splitter.feed("aa")] == [f"<think {'a' * (MAX_ATTRIBUTES_LENGTH + 1)}"]


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("<think>a</think>\n\nanswer\n", "answer"),
        ("```\n<think>x</think>\n```", "```\n<think>x</think>\n```"),
        ("hm</think>\n\nanswer", "answer"),
        ("Use `<\u2060think>` and <\u2060/THINK>.", "Use `<think>` and </THINK>."),
        ("<think>a</think>\n\nUse <\u2060think>.", "Use <think>."),
    ],
)
def test_the_visible_text_alone_loses_the_blank_lines_around_its_thoughts(text: str, visible: str) -> None:
    assert without_thoughts(text) == visible


KINDS = ["thought", "remark", "answer", "new_paragraph", "host"]
AS_HOSTS_READ_TAGS = re.compile(r"</?think(?![\w-])[^>]*>", re.IGNORECASE)
QUOTED_PARTS = ["<think>", "</think>", "<THINK a='b'>", "</Think >", "<thinking>", "<", "/", "think", "th", "ink>"]
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


@given(joined(QUOTED_PARTS), cut_lists(60), st.sampled_from(["answer", "thought"]))
def test_no_quoted_tag_is_left_however_the_text_is_cut(text: str, cuts: list[int], kind: str) -> None:
    written = write(TextStream(), [(kind, piece) for piece in cut(text, cuts)])
    inside = written.removeprefix("<think>\n").removesuffix("\n</think>\n") if kind == "thought" else written

    assert written == write(TextStream(), [(kind, text)])
    assert not AS_HOSTS_READ_TAGS.search(inside)
    assert inside.replace("\u2060", "") == text


@given(STEPS)
def test_every_block_is_closed_before_the_next_one_opens(steps: list[tuple[str, str]]) -> None:
    text = write(TextStream(), steps)

    assert "".join(re.findall("</?think>", text)).replace("<think></think>", "") == ""
    assert not text.startswith("\n")
