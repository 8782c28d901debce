"""Long results: what a run keeps of them, what a model reads of what is kept, and where a text is found in it."""

import re
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from internal.call import ToolCall, ToolOutcome
from internal.text.texts import KeptText
from internal.transcript.kept_results import MAX_KEPT_BYTES, KeptResults, places
from prompt import template
from tests.support.builders import outcome_of

LIMIT = 1_000
OFFERED = re.compile(r'read_result\(id="(r\d+)", offset=(\d+)\)\]$')
FIND = re.compile(r"^\[offset (\d+)\] …", re.MULTILINE)


def result(whole: str) -> ToolOutcome:
    return outcome_of(ToolCall("c1", "search", "{}"), whole)


class Conversation:
    def __init__(self, *texts: str, longest: int = MAX_KEPT_BYTES) -> None:
        self.run = KeptResults(longest)
        self.ids = [name for text in texts if (name := self.run.keep(result(text)))]

    def said(self, limit: int = LIMIT, **arguments: Any) -> str:  # noqa: ANN401 - JSON
        text, problem = self.run.read(self.ids, limit, arguments)
        assert problem is None
        assert len(text) <= limit
        return text

    def error(self, **arguments: Any) -> str:  # noqa: ANN401 - JSON
        text, problem = self.run.read(self.ids, LIMIT, arguments)
        assert problem
        assert len(text) <= LIMIT
        return text


def test_the_oldest_results_make_room_and_the_model_is_told() -> None:
    talk = Conversation(*(letter * 1_000 for letter in "abcd"), longest=3 * sys.getsizeof("a" * 1_000))

    assert talk.error(id="r1") == template.RESULT_IS_GONE.format(id="r1")
    assert [talk.said(id=name)[0] for name in ("r2", "r3", "r4")] == ["b", "c", "d"]

    assert talk.run.keep(result("e" * 1_900)) == "r5"
    assert [talk.run.read([name], LIMIT, {"id": name})[0][0] for name in ("r4", "r5")] == ["d", "e"]
    assert [talk.error(id=name)[:13] for name in ("r2", "r3")] == ["The full text"] * 2
    assert talk.run.keep(result("\N{GRINNING FACE}" * 1_000)) is None


@given(
    st.text(alphabet="ab\n[…]é\N{GRINNING FACE}", min_size=1, max_size=50),
    st.integers(1, 300),
    st.integers(1_000, 3_000),
)
def test_the_offered_offsets_lead_through_the_whole_text(unit: str, times: int, limit: int) -> None:
    text = unit * times
    talk = Conversation(text)
    pieces = list[str]()
    offset = 0
    note = ""
    while offset < len(text):
        reply = talk.said(limit, id="r1", offset=offset)
        piece, _, note = reply.rpartition("\n[")
        pieces.append(piece)
        offered = OFFERED.search(note)
        offset = int(offered[2]) if offered else len(text)

    assert "".join(pieces) == text
    assert f"{len(text)} of {len(text)}: this is the end of r1]" in note


def test_what_was_never_kept_is_said_at_its_place() -> None:
    kept = KeptText(longest=300_000, tail=50_000)
    kept.add("a" * 500_000)
    whole = kept.excerpt(str)
    talk = Conversation()
    talk.ids.append(str(talk.run.keep(result(whole))))
    gap = whole.index("\n[… ")

    assert "characters were not kept …]" in talk.said(id="r1", offset=gap - 100)
    assert template.NOT_SEARCHED in talk.said(id="r1", find="b")
    assert template.NOT_SEARCHED not in Conversation("a" * 5_000).said(id="r1", find="b")


@example(["needle ", "x" * 500] * 20, 1_000)
@given(
    st.lists(st.sampled_from(["needle ", "Needle", "hay " * 60, "x" * 500, "ｎｅｅｄｌｅ\n", "hay "]), max_size=60),
    st.integers(1_000, 4_000),
)
def test_every_place_is_shown_or_counted(parts: list[str], limit: int) -> None:
    text = "".join([*parts, "end"])
    starts = [start for start, _ in places(text, "needle")]

    reply = Conversation(text).said(limit, id="r1", find="NEEDLE")

    if not starts:
        assert reply == f"Not found in r1 ({len(text)} characters)."
        return
    shown = [int(start) for start in FIND.findall(reply)]
    more = re.search(r"\[… places not shown: (\d+); the next one: read_result\(id=\"r1\", offset=(\d+)\)\]$", reply)
    assert reply.startswith(f"Found in r1 ({len(text)} characters), number of places: {len(starts)}.")
    assert shown[0] == starts[0]
    assert set(shown) <= set(starts)
    left = int(more[1]) if more else 0
    assert left < len(starts)
    if more:
        assert int(more[2]) == starts[len(starts) - left]
    assert reply.casefold().replace("ｎｅｅｄｌｅ", "needle").count("needle") >= len(starts) - left


@pytest.mark.parametrize("distance", range(0, 900, 30))
def test_a_place_on_the_edge_of_an_excerpt_is_shown_whole(distance: int) -> None:
    text = "x" * 900 + "needle" + "y" * distance + "needle" + "x" * 900

    assert Conversation(text).said(id="r1", find="needle").count("needle") >= 2


@pytest.mark.parametrize(
    ("text", "wanted", "expected"),
    [
        ("STRASSE strasse", "Strasse", ["STRASSE", "strasse"]),
        ("café CAFÉ cafe", "Café", ["café", "CAFÉ"]),
        ("ＡＢＣ　１ abc 1", "Abc 1", ["ＡＢＣ　１", "abc 1"]),
        ("ガイド カイト", "カイ", ["カイ"]),
        ("aaaa", "aa", ["aa", "aa"]),
        ("a.c abc", "a.c", ["a.c"]),
        ("", "abc", []),
        ("abc", "abcd", []),
    ],
)
def test_a_text_is_found_whatever_its_case_and_width(text: str, wanted: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in places(text, wanted)] == expected
