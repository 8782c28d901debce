"""What of a turn the user sees while it streams."""

from collections.abc import Iterable
from dataclasses import replace
from html import escape
from itertools import groupby

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from internal.events import AnswerBreak, AnswerText, Shown
from internal.model.display import PLAINLY_AN_ANSWER, DisplayRule, TurnDisplay
from internal.text.thoughts import PieceKind, ThoughtSplitter
from tests.support.generators import cut, cut_lists, joined

HIDDEN = DisplayRule(show_thoughts=False, step=1, last_step=7)
SHOWN = DisplayRule(show_thoughts=True, step=1, last_step=7)
CLOSING = DisplayRule(show_thoughts=False, step=7, last_step=7)
RULES = st.sampled_from([HIDDEN, SHOWN, CLOSING])
PARTS = ["<think>", "</think>", "</THINK >", "\n<think>", "</think>\n", "`", "\n```\n", "\n", "  ", "word ", "x" * 150]
PARTS += ["日本" * 15, "#", "\n## ", "\n|"]


def words(events: Iterable[Shown]) -> list[tuple[str, str]]:
    """Kind and text of what was shown, neighbours of one kind as one."""
    said = [("break", "") if isinstance(e, AnswerBreak) else (type(e).__name__, e.text) for e in events]
    return [(kind, "".join(text for _, text in group)) for kind, group in groupby(said, lambda pair: pair[0])]


def show(rule: DisplayRule, *chunks: str, calls: bool = False) -> list[tuple[str, str]]:
    display = TurnDisplay(rule)
    events = [event for chunk in chunks for event in display.feed(chunk)]
    return words([*events, *display.finish(has_tool_calls=calls)])


def lacks_a_beginning(text: str, *, calls: bool) -> bool:
    """Whether a closing tag in it closes what nothing opened."""
    splitter = ThoughtSplitter()
    pieces = [*splitter.feed(text), *splitter.finish(calls_follow=calls)]
    return any(piece.kind is PieceKind.WAS_THOUGHT for piece in pieces)


def answer(text: str) -> list[tuple[str, str]]:
    return [("break", ""), ("AnswerText", text)]


@given(joined(PARTS), cut_lists(), RULES, st.booleans())
def test_the_user_sees_the_same_however_a_text_is_cut(
    text: str,
    cuts: list[int],
    rule: DisplayRule,
    calls: bool,  # noqa: FBT001 - drawn
) -> None:
    """Not so where a thought's beginning is missing: what was shown before its end came cannot be taken back."""
    assume(not lacks_a_beginning(text, calls=calls))
    whole = show(rule, text, calls=calls)

    assert show(rule, *cut(text, cuts), calls=calls) == whole
    assert rule.show_thoughts or "ThoughtText" not in {kind for kind, _ in whole}


@pytest.mark.parametrize(
    ("held", "last"),
    [
        ("x" * (PLAINLY_AN_ANSWER - 1), "y"),
        ("漢" * (PLAINLY_AN_ANSWER // 4 - 1) + "xxx", "y"),
        ("한" * (PLAINLY_AN_ANSWER // 4 - 1), "글"),
        ("I found this:\n\n##", " T"),
        ("Prices:\n  ", "| a"),
        ("Run\n``", "`"),
    ],
    ids=lambda text: repr(text[-8:]),
)
def test_text_that_is_plainly_an_answer_streams_from_there_on(held: str, last: str) -> None:
    """240 letters, of which a wide character is worth four; or the beginning of a heading, a table or a code fence."""
    display = TurnDisplay(HIDDEN)

    assert list(display.feed(held)) == []
    assert words(display.feed(last)) == answer(held + last)
    assert list(display.feed("z")) == [AnswerText("z")]
    assert PLAINLY_AN_ANSWER == 240


@pytest.mark.parametrize(
    "text", ["- Look at a.\n- Look at b.", "1. Look.", "#1 of `a|b`", "#hashtag", "See:\n\n    # code", "a # b | c"]
)
def test_a_list_and_other_short_text_may_be_a_remark(text: str) -> None:
    display = TurnDisplay(HIDDEN)

    assert list(display.feed(f"{text}.")) == []
    assert list(display.finish(has_tool_calls=True)) == []


MARKS = ["<", "`", "``", "~", "~~", "$", "\\", "[", "\n\n"]
OPENERS = ("<", "```", "~~~", "$$", "\\[")


def may_ask(rule: DisplayRule) -> DisplayRule:
    return replace(rule, may_ask=True)


def said(shown: list[tuple[str, str]], kind: str = "AnswerText") -> str:
    return "".join(text for each, text in shown if each == kind)


@given(joined([*PARTS, *MARKS]), cut_lists(), st.sampled_from([HIDDEN, SHOWN]), st.booleans())
@example("x" * 400 + " ``` y", [402, 403], SHOWN, True)  # noqa: FBT003 - drawn
@example("x" * 400 + " $5 and `a` ~b", [402, 406, 408], SHOWN, True)  # noqa: FBT003 - drawn
def test_where_a_question_may_follow_nothing_that_stays_open_is_shown_before_the_turn_is_over(
    text: str,
    cuts: list[int],
    rule: DisplayRule,
    calls: bool,  # noqa: FBT001 - drawn
) -> None:
    assume(not lacks_a_beginning(text, calls=calls))
    asking = show(may_ask(rule), *cut(text, cuts), calls=calls)
    free = show(rule, text, calls=calls)
    before = said(asking)
    whole = said(free)

    if not calls:
        assert before == whole
        return
    end = min((at for at in map(whole.find, OPENERS) if at >= 0), default=None)
    assert whole.startswith(before)
    assert not any(opener in before for opener in OPENERS)
    if end is not None:
        assert before == whole[:end].rstrip()
    else:
        assert len(before) >= len(whole.rstrip("`~$\\").rstrip())
    if rule.show_thoughts:
        assert "".join(said(asking, "ThoughtText").split()).endswith("".join(whole[len(before) :].split()))


def test_a_text_that_cannot_open_anything_streams_where_a_question_may_follow() -> None:
    display = TurnDisplay(may_ask(HIDDEN))

    assert words(display.feed("# Prices\n\n**5** `a` $")) == answer("# Prices\n\n**5** `a`")
    assert words(display.feed("5 <")) == [("AnswerText", " $5")]
    assert words(display.feed("b>")) == []
    assert words(display.finish(has_tool_calls=False)) == [("AnswerText", " <b>")]
    assert display.text == "# Prices\n\n**5** `a` $5 <b>"


def test_an_answer_that_waits_for_the_end_of_the_turn_is_under_way_until_calls_come() -> None:
    display = TurnDisplay(may_ask(HIDDEN))

    assert words(display.feed("```sh\nls")) == []
    assert (display.is_answering, display.has_shown) == (True, False)
    display.expect_calls()
    assert not display.is_answering
    assert list(display.finish(has_tool_calls=True)) == []
    assert display.text == "```sh\nls"


def of_deepseek(thought: str) -> str:
    """As the plugin `deepseek` 0.0.20 streams a thought."""
    return f"<think>\n<!--dify-deepseek-reasoning-->{escape(thought, quote=False)}\n</think>"


ODD_THOUGHTS = [
    *PARTS,
    "<",
    ">",
    "&",
    "&lt;",
    "&amp;",
    ";",
    "amp",
    "<!--dify-deepseek-reasoning-->",
    '"',
    "<b>",
    "a < b",
]


@given(st.lists(joined(ODD_THOUGHTS), min_size=1, max_size=3), cut_lists())
def test_escaped_thoughts_are_shown_as_the_model_thought_them_however_they_are_cut(
    thoughts: list[str], cuts: list[int]
) -> None:
    raw = "".join(map(of_deepseek, thoughts))
    display = TurnDisplay(SHOWN)

    events = [event for chunk in cut(f"{raw}Done.", cuts) for event in display.feed(chunk)]
    events += display.finish(has_tool_calls=False)

    assert "".join(display.thought.split()) == "".join("".join(thoughts).split())
    assert said(words(events), "ThoughtText") == display.thought
    assert display.text == "Done."


@given(joined(ODD_THOUGHTS), cut_lists())
def test_thoughts_without_the_mark_stay_as_they_are(thought: str, cuts: list[int]) -> None:
    raw = f"x{thought}".replace("<", "")
    display = TurnDisplay(SHOWN)
    for chunk in cut(f"<think>{raw}</think>Done.", cuts):
        list(display.feed(chunk))
    list(display.finish(has_tool_calls=False))

    assert display.thought == raw.strip()


@pytest.mark.parametrize("end", ["&a", "&amp", "<!--dify", " <"])
def test_of_an_escaped_thought_that_is_cut_off_all_but_half_an_escape_is_shown(end: str) -> None:
    display = TurnDisplay(SHOWN)
    list(display.feed(f"<think>\n<!--dify-deepseek-reasoning-->5 &lt; 6{end}"))
    list(display.finish(has_tool_calls=False, is_cut=True))

    assert display.thought == "5 < 6"
