"""Lines between host and plugin; the texts of JSON are what Go 1.26's own encoding/json printed for the values."""

import json

import pytest

from devhost.golang import marshalled, remarshalled
from devhost.protocol.wire import Failed, Invoked, SessionEvent, Streamed, encoded, read_session_event


@pytest.mark.parametrize(
    ("data", "event"),
    [
        ({"type": "stream", "data": {"type": "text"}}, Streamed({"type": "text"})),
        (
            {"type": "error", "data": {"error_type": "KeyError", "message": "'a'", "args": {"traceback": "T"}}},
            Failed("KeyError", "'a'", {"traceback": "T"}),
        ),
        (
            {"type": "invoke", "data": {"type": "llm", "backwards_request_id": "r", "request": {"model": "m"}}},
            Invoked("r", "llm", {"model": "m"}),
        ),
        ({"type": "?"}, Failed("unknown_stream_message_type", "unknown stream message type: ?")),
        # An odd request is answered with a refusal rather than left hanging.
        (
            {"type": "invoke", "data": {"type": "llm", "backwards_request_id": "r", "request": None}},
            Invoked("r", "llm", {}),
        ),
    ],
)
def test_session_events(data: object, event: SessionEvent) -> None:
    assert read_session_event(data) == event


@pytest.mark.parametrize(
    ("text", "arrives"),
    [
        ("\ud83d\ude00", "😀"),
        ("\ud800\ud83d\ude00", "\ufffd😀"),
        ("\\ud83d 😀", "\\ud83d 😀"),
    ],
)
def test_half_a_surrogate_pair_is_never_sent(text: str, arrives: str) -> None:
    line = encoded({text: [text]})
    assert line.isascii()
    assert json.loads(line) == {arrives: [arrives]}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (9007199254740993, "9007199254740992"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (123456789012345678901234, "1.2345678901234569e+23"),
        (0.1, "0.1"),
        ('\n"\\/é', '"\\n\\"\\\\/é"'),
        ({"a": [None, True, {}]}, '{"a":[null,true,{}]}'),
    ],
)
def test_values_as_go_writes_them(value: object, text: str) -> None:
    assert marshalled(remarshalled(value)) == text


def test_keys_are_sorted_and_surrogates_replaced() -> None:
    value = {"b": 1, "é": 1, "B": "\ud800", "_": "\ud83d\ude00", "\uffff": 2, "\U0001f600": 1}
    assert json.dumps(remarshalled(value)) == json.dumps(
        {"B": "\ufffd", "_": "\U0001f600", "b": 1, "é": 1, "\uffff": 2, "\U0001f600": 1}
    )
