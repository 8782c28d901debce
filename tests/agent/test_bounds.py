"""What one run may take in: a turn's text, thoughts, arguments and pictures, and what a run keeps to its end."""

import base64
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from internal.budget import MAX_RUN_BYTES
from internal.host import session
from internal.model import reading
from internal.tooling import MAX_ARGUMENTS_LENGTH
from internal.transcript.kept_results import KeptResults
from prompt import template
from tests.support.host import CallFails, Json, text_of
from tests.support.run import run
from tests.support.scenes import ANSWER, FOUND, asks, cut_off, ends, entry, last_note, search, text
from tests.support.wire import calls, replies, says

PIECE = "words " * 1_000
FEW = 2 * reading.MAX_TURN_TEXT // len(PIECE)
SCHEMA = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})


class Endless:
    """A turn without an end; counts what was asked for of it."""

    def __init__(self, chunk: Json, *, first: Json | None = None) -> None:
        self._chunk = chunk
        self._first = first
        self.sent = 0

    def __iter__(self) -> Iterator[Json]:
        if self._first:
            yield self._first
        while self.sent < 100 * FEW:
            self.sent += 1
            yield self._chunk


def test_a_text_without_end_is_an_answer_that_breaks_off() -> None:
    turn: Any = Endless(text(PIECE))
    outcome = run([turn], FOUND)

    answer = (PIECE * FEW)[: reading.MAX_TURN_TEXT].rstrip()
    assert outcome.error is None
    assert outcome.text == cut_off(answer, "size_limit")
    assert outcome.stop_reason == "size_limit"
    assert turn.sent < 2 * FEW
    assert any("as long as one turn may be" in note for note in outcome.notes)


@pytest.mark.parametrize(
    ("last", "params", "answer", "note"),
    [
        (ANSWER, {}, "Done.", template.CLOSING_NOTE),
        (
            calls(("submit_answer", {"n": 1})),
            {"answer_schema": SCHEMA},
            '{\n  "n": 1\n}',
            template.CLOSING_NOTE_FOR_SUBMISSION,
        ),
    ],
    ids=["text", "schema"],
)
@pytest.mark.parametrize("kind", ["thoughts", "arguments"])
def test_after_a_turn_that_is_too_long_the_answer_is_asked_for(
    kind: str, last: list[Any], params: Json, answer: str, note: str
) -> None:
    long = json.dumps({"q": "x" * 900_000})
    turns: dict[str, Any] = {
        "thoughts": Endless(text(PIECE), first=text("<think>")),
        "arguments": [asks(entry(f"c{number}", "search", long)) for number in range(3)],
    }

    outcome = run([turns[kind], last], FOUND, params)

    assert outcome.error is None
    assert outcome.stop_reason == "size_limit"
    assert outcome.text == answer
    assert outcome.tools.requests == []
    assert note in text_of(outcome.model.prompts[1][-1])


def test_a_call_that_alone_is_too_long_costs_the_call_and_not_the_turn() -> None:
    wanted = asks(
        entry("c1", "search", json.dumps({"q": "x" * (MAX_ARGUMENTS_LENGTH + 10)})), entry("c2", "search", "{}")
    )

    outcome = run([[wanted, ends("tool_calls")], ANSWER], FOUND)

    assert outcome.stop_reason == "answered"
    assert [item["status"] for item in outcome.variables["tool_runs"]] == ["refused", "ok"]


def test_long_snapshots_of_calls_do_not_count_again_and_again() -> None:
    whole = json.dumps({"q": "word " * 1_000})
    pieces = [
        asks(entry(f"c{call}", "search", whole[:end])) for call in range(5) for end in range(10, len(whole) + 10, 10)
    ]

    outcome = run([[*pieces, ends("tool_calls")], ANSWER], FOUND)

    assert outcome.stop_reason == "answered"
    assert [request["tool_parameters"] for request in outcome.tools.requests] == [json.loads(whole)] * 5


def _picture(size: int) -> Json:
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(size)).decode()
    return {"type": "image", "format": "png", "base64_data": data, "mime_type": "image/png", "url": "", "detail": "low"}


def test_a_picture_that_no_request_can_hold_goes_to_the_user_and_not_back_to_the_model() -> None:
    shown = [_picture(100), _picture(reading.MAX_TURN_PICTURES)]

    outcome = run([[text(shown), *search()], ANSWER], FOUND)

    assert sum(message["message"]["end"] for message in outcome.messages if message["type"] == "blob_chunk") == 2
    (turn,) = (message for message in outcome.model.prompts[1] if message.get("tool_calls"))
    kinds = [part["type"] for part in turn["content"]]
    assert kinds == ["image", "text"]
    assert turn["content"][1]["data"] == template.ELIDED_MEDIA.format(kind="image")


def test_pictures_beyond_what_a_turn_may_bring_are_named_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "MAX_PICTURES_READ", 5_000)

    outcome = run([[text([_picture(3_000)]), text([_picture(3_000)]), *says("Two pictures.")]])

    assert outcome.text.strip() == "Two pictures."
    assert sum(message["message"]["end"] for message in outcome.messages if message["type"] == "blob_chunk") == 1
    assert any("its turn has too many" in note for note in outcome.notes)


def test_an_address_of_a_picture_that_no_table_has_room_for_is_left_out() -> None:
    picture = {**_picture(1), "base64_data": "", "url": "https://example.com/" + "a" * 3_000}

    outcome = run([[text([picture]), *says("A picture.")]])

    assert outcome.text.strip() == "A picture."
    assert not outcome.bodies("image")
    assert any("its address is longer than 2,048" in note for note in outcome.notes)


def test_a_run_that_keeps_as_much_as_it_may_answers_from_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("internal.budget.MAX_RUN_BYTES", 100_000)
    rounds = [search(str(number)) for number in range(4)]

    outcome = run([*rounds[:3], ANSWER], {"search": replies("found " * 3_000)})

    assert (outcome.text, outcome.stop_reason) == ("Done.", "size_limit")
    assert last_note(outcome.model.prompts[3]) == template.CLOSING_NOTE
    assert len(outcome.tools.requests) == 3


def test_calls_of_one_round_that_a_full_run_has_no_room_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("internal.budget.MAX_RUN_BYTES", 100_000)
    turn = calls(*(("search", {"q": str(number)}) for number in range(8)))

    outcome = run([turn, ANSWER], {"search": replies("found " * 3_000)}, {"parallel_tool_calls": 1})

    assert outcome.tool_results()[3:] == [template.SIZE_USED_UP] * 5
    assert outcome.stop_reason == "size_limit"


def test_ordinary_runs_stay_far_below_what_a_run_may_keep() -> None:
    rounds = [search(str(number)) for number in range(6)]

    outcome = run([*rounds, ANSWER], {"search": replies("found " * 3_000)})

    assert outcome.stop_reason == "iteration_limit"
    assert MAX_RUN_BYTES / 50 > 6 * 2 * 18_000


def test_results_that_together_are_too_large_are_read_but_not_kept_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("internal.agent.KeptResults", partial(KeptResults, 250_000))
    turn = calls(*(("search", {"q": str(number)}) for number in range(4)))

    outcome = run([turn, ANSWER], {"search": replies("found " * 20_000)}, {"parallel_tool_calls": 1})

    results = outcome.tool_results()
    assert ["read_result" in each for each in results] == [True, True, False, False]
    assert all(len(each) <= 20_000 for each in results)
    assert sum("not kept whole" in note for note in outcome.notes) == 2


def test_a_long_error_of_every_call_of_a_round_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_LONG_FAILURE", 10)

    def fails(_request: Json) -> Iterator[Json]:
        raise CallFails("cookie: " + "a" * 5_000)
        yield {}

    turn = calls(*(("search", {"q": str(number)}) for number in range(16)))

    outcome = run([turn, ANSWER], {"search": fails})

    assert [item["status"] for item in outcome.variables["tool_runs"]] == ["error"] * 16


def test_a_long_list_of_wrong_settings_has_a_hundred_notes_and_their_number() -> None:
    wrong = {f"key {number}": "x" for number in range(1_000)}
    outcome = run([ANSWER], params={"prompt_policy_overrides": json.dumps(wrong)})

    assert outcome.text == "Done."
    assert "unknown key 'key 99'" in outcome.notes[99]
    assert outcome.notes[100:] == ["900 more notes of this kind are left out"]


def test_a_long_list_of_unknown_outputs_is_one_short_note() -> None:
    outcome = run([ANSWER], params={"extra_outputs": ", ".join(f"x{number}" for number in range(1_000))})

    (note,) = outcome.notes
    assert "'x19' and 980 more is ignored" in note
