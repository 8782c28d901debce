import json

import pytest

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
