"""Long results: what a run keeps of them, and what a model reads of what is kept."""

import re
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.text.texts import Excerpt, KeptText, cut_to_size
from internal.transcript.long_results import LongResults, ReadableResults, places, read_result
from prompt import template

LIMIT = 1_000
OFFERED = re.compile(r'read_result\(id="(r\d+)", offset=(\d+)\)\]$')


def readable(*texts: str) -> ReadableResults:
    results = ReadableResults()
    for text in texts:
        results.keep(Excerpt(text))
    return results


def said(results: ReadableResults, limit: int = LIMIT, **arguments: Any) -> str:  # noqa: ANN401 - JSON
    reply = read_result(results, arguments, limit)
    assert reply.error is None
    assert len(reply.text) <= limit
    return reply.text


def error(results: ReadableResults, **arguments: Any) -> str:  # noqa: ANN401 - JSON
    reply = read_result(results, arguments, LIMIT)
    assert reply.error
    assert len(reply.text) <= LIMIT
    return reply.text


def test_results_have_ids_of_their_own_in_the_whole_run() -> None:
    run = LongResults()
    one, other = ReadableResults(run), ReadableResults(run)

    assert [one.keep(Excerpt("a")), other.keep(Excerpt("b")), one.keep(Excerpt("c"))] == ["r1", "r2", "r3"]
    assert (one.ids, other.ids) == (["r1", "r3"], ["r2"])
    assert one.get("r3") == Excerpt("c")
    assert one.get("r2") is None


def test_the_oldest_results_make_room_and_the_model_is_told() -> None:
    room = 3 * sys.getsizeof("a" * 1_000)
    results = ReadableResults(LongResults(room))
    for letter in "abcd":
        results.keep(Excerpt(letter * 1_000))

    assert error(results, id="r1") == template.RESULT_IS_GONE.format(id="r1")
    assert [said(results, id=name)[0] for name in ("r2", "r3", "r4")] == ["b", "c", "d"]

    results.keep(Excerpt("e" * 1_900))

    assert [results.get(name) is None for name in results.ids] == [True, True, True, False, False]


def test_wide_characters_take_the_memory_that_they_need() -> None:
    results = ReadableResults(LongResults(5_000))

    assert results.keep(Excerpt("a" * 4_000)) == "r1"
    assert results.keep(Excerpt("\N{GRINNING FACE}" * 4_000)) is None
    assert results.get("r1") == Excerpt("a" * 4_000)


@given(
    st.text(alphabet="ab\n[…]é\N{GRINNING FACE}", min_size=1, max_size=50),
    st.integers(1, 300),
    st.integers(1_000, 3_000),
)
def test_the_offered_offsets_lead_through_the_whole_text(unit: str, times: int, limit: int) -> None:
    text = unit * times
    results, pieces, offset, note = readable(text), list[str](), 0, ""
    while offset < len(text):
        reply = said(results, limit, id="r1", offset=offset)
        piece, _, note = reply.rpartition("\n[")
        pieces.append(piece)
        offered = OFFERED.search(note)
        offset = int(offered[2]) if offered else len(text)

    assert "".join(pieces) == text
    assert f"{len(text)} of {len(text)}: this is the end of r1]" in note


@given(st.integers(1_001, 9_000), st.integers(300, 1_000))
def test_the_note_in_a_cut_result_leads_to_the_rest(length: int, limit: int) -> None:
    text = "".join(f"{number} " for number in range(length))[:length]
    shown = cut_to_size(text, limit, 0, lambda **places: template.CHARACTERS_TO_READ.format(id="r1", **places))
    head, _, rest = shown.partition("\n[… ")
    note, _, tail = rest.partition("]\n")
    offered = OFFERED.search(note + "]")

    assert len(shown) <= limit
    assert offered
    assert int(offered[2]) == len(head)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert int(note.partition(" ")[0]) == length - len(head) - len(tail)


def test_a_part_without_an_offset_is_the_beginning() -> None:
    assert said(readable("a" * 5_000), id="r1").startswith("a" * 800)
    assert said(readable("abc"), id="r1") == "abc\n[characters 0 to 3 of 3: this is the end of r1]"


def test_errors_say_what_there_is() -> None:
    results = readable("a" * 1_500, "b")

    assert error(results, id="r1", offset=1_500) == "r1 has 1500 characters; the offset must be less than that."
    assert error(results, id="r1", offset=10**400)
    assert "'r9' in this conversation; the ids are: r1, r2." in error(results, id="r9")
    assert error(results, id="x" * 10_000)


def test_what_was_never_kept_is_said_at_its_place() -> None:
    kept = KeptText(longest=300_000, tail=50_000)
    kept.add("a" * 500_000)
    whole = kept.excerpt(str)
    results = ReadableResults()
    results.keep(whole)
    gap = whole.text.index("\n[… ")

    assert "characters were not kept …]" in said(results, id="r1", offset=gap - 100)
    assert template.NOT_SEARCHED in said(results, id="r1", find="b")
    assert template.NOT_SEARCHED not in said(readable("a" * 5_000), id="r1", find="b")


FIND = re.compile(r"^\[offset (\d+)\] …", re.MULTILINE)


@given(
    st.lists(st.sampled_from(["needle ", "Needle", "hay " * 60, "x" * 500, "ｎｅｅｄｌｅ\n", "hay "]), max_size=60),
    st.integers(1_000, 4_000),
)
def test_every_place_is_shown_or_counted(parts: list[str], limit: int) -> None:
    text = "".join([*parts, "end"])
    starts = [place.start for place in places(text, "needle")]

    reply = said(readable(text), limit, id="r1", find="NEEDLE")

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
    spelled = reply.casefold().replace("ｎｅｅｄｌｅ", "needle")
    assert spelled.count("needle") >= len(starts) - left


def test_a_place_is_shown_with_its_surroundings() -> None:
    text = "a" * 5_000 + "NEEDLE" + "b" * 5_000

    reply = said(readable(text), id="r1", find="needle")

    assert f"\n\n[offset 5000] …{'a' * 60}" in reply
    assert f"NEEDLE{'b' * 60}" in reply


def test_places_that_do_not_fit_are_counted() -> None:
    text = ("needle" + "x" * 500) * 20

    reply = said(readable(text), id="r1", find="needle")

    shown = FIND.findall(reply)
    assert shown == [str(506 * number) for number in range(len(shown))]
    assert 3 <= len(shown) < 8
    following = f'read_result(id="r1", offset={506 * len(shown)})]'
    assert reply.endswith(f"[… places not shown: {20 - len(shown)}; the next one: {following}")


@pytest.mark.parametrize("distance", range(0, 900, 3))
def test_a_place_on_the_edge_of_an_excerpt_is_shown_whole(distance: int) -> None:
    text = "x" * 900 + "needle" + "y" * distance + "needle" + "x" * 900

    assert said(readable(text), id="r1", find="needle").count("needle") >= 2


def test_more_places_than_can_be_shown_are_counted() -> None:
    text = "hay " * 2_500 + "x" * 60_000

    reply = said(readable(text), 200_000, id="r1", find="x")

    assert "number of places: 60000." in reply
    assert 'places not shown: 58000; the next one: read_result(id="r1", offset=12000)]' in reply
