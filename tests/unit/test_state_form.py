"""A state as text: it comes back whole, and any other text is one clear error."""

import base64
import hashlib
import json
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from internal.errors import InvalidParameters
from internal.memory.records import AnswerRecord, CallRecord, RoundRecord, State, UserRecord
from internal.memory.state import MAX_ENTRIES, MAX_LENGTH, MAX_UNPACKED, VERSION, decode, encode
from tests.support.generators import any_text, json_values
from tests.support.states import states

HEAD = "gpt5-agent-state.1."
CALL = {"id": "a", "provider": "shop", "tool": "order", "arguments": "{}"}
USER = {"kind": "user", "text": "Why?"}
WAITING = {"kind": "round", "calls": [CALL]}
LATER = {"kind": "answer", "text": "So."}
PLAN = {"subtasks": [{"name": "a", "entries": [WAITING]}]}
SECRET = "top-secret-content"
A_STATE = encode(State(strategy="gpt5_react", entries=(UserRecord(text=SECRET * 20), AnswerRecord(text=SECRET))))


def text_of(content: bytes) -> str:
    """A text with a right checksum, whatever its content."""
    written = base64.urlsafe_b64encode(content).decode()
    return f"{HEAD}{hashlib.sha256(f'1.{written}'.encode()).hexdigest()[:32]}.{written}"


def packed(written: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(written) + packer.flush()


def of_json(value: object) -> str:
    return text_of(packed(json.dumps(value).encode()))


def problem_of(text: str) -> str:
    """What is wrong with a text; the error names the parameter and never quotes the content."""
    with pytest.raises(InvalidParameters) as caught:
        decode(text)
    problem = str(caught.value)
    assert problem.startswith("parameter 'state': ")
    assert SECRET not in problem
    assert len(problem) < 300
    return problem


@given(states(), st.sampled_from(["", " ", "\n", "\r\n\t"]))
def test_a_state_comes_back_as_it_was(state: State, space: str) -> None:
    text = encode(state)

    assert decode(space + text + space) == state
    assert text.isascii()
    assert json.dumps(text) == f'"{text}"'
    assert not set(text) & set("{}#$<>&'\"\\ \n")
    assert len(text) <= MAX_LENGTH


@pytest.mark.parametrize("text", ["", " \n", "null", "None", "[]", "{}", " null\n"])
def test_a_text_that_stands_for_no_state(text: str) -> None:
    assert decode(text) is None


@given(st.integers(0, len(A_STATE) - 1), st.integers(0, 9), st.text(max_size=3))
def test_a_state_that_was_cut_or_changed_is_refused(position: int, count: int, inside: str) -> None:
    for changed in (
        A_STATE[:position] + inside + A_STATE[position + count :],
        A_STATE[: position or 1],
        A_STATE[position or 1 :],
        A_STATE + A_STATE[: position or 1],
    ):
        if changed.strip() != A_STATE:
            problem_of(changed)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (" conversation.state ", "'conversation.state' looks like a variable that does not exist"),
        ("Hello, world", "not a state"),
        ('{"strategy": "gpt5_react"}', "not a state"),
        (f'"{A_STATE}"', "not a state"),
        (HEAD, "was cut or changed"),
        (A_STATE + "\ud83d", "was cut or changed"),
        (A_STATE[:60] + "\n" + A_STATE[60:], "was cut or changed"),
        (A_STATE.replace("state.1.", "state.12."), "version 12, and this version of the plugin reads version 1"),
        ("x" * (MAX_LENGTH + 1), "131,073 characters, and a state has at most 131,072"),
        (text_of(b"\xff\xff"), "cannot be unpacked"),
        (text_of(packed(b'{"strategy": "\xff"}')), "cannot be unpacked"),
        (text_of(packed(b"{}") + b"{}"), "something follows its end"),
        (text_of(packed(b'{"strategy": "gpt5_react"}')[:-1]), "has no end"),
        (text_of(b""), "has no end"),
        (text_of(packed(b" " * (MAX_UNPACKED + 1))), "unpacks to more than 1 MiB"),
        (f"{HEAD}{hashlib.sha256(b'1.abcde').hexdigest()[:32]}.abcde", "not valid base64"),
    ],
    ids=lambda value: value if len(value) < 70 else "a text",
)
def test_what_is_wrong_is_named(text: str, problem: str) -> None:
    assert problem in problem_of(text)


def test_a_small_text_that_unpacks_to_much_more_is_not_unpacked() -> None:
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    bomb = text_of(b"".join([*(packer.compress(bytes(2**20)) for _ in range(90)), packer.flush()]))
    tracemalloc.start()

    assert "more than 1 MiB" in problem_of(bomb)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * MAX_UNPACKED


@given(
    st.binary(max_size=200)
    | any_text.map(lambda text: packed(text.encode(errors="ignore")))
    | json_values.map(lambda value: packed(json.dumps(value).encode()))
)
def test_other_content_with_a_right_checksum_is_an_error(content: bytes) -> None:
    problem_of(text_of(content))


@pytest.mark.parametrize(
    "fields",
    [
        {"strategy": None},
        {"more": 1},
        {"entries": "x"},
        {"entries": [{"text": "Why?"}]},
        {"entries": [{**USER, "more": 1}]},
        {"entries": [{**USER, "text": 1}]},
        *({"last_source": number} for number in (-1, "1", True, 1.0, 2**53 + 1, float("nan"), float("inf"))),
        {"sources": [{"number": 0, "title": "a"}]},
        {"entries": [{"kind": "round", "calls": []}]},
        {"entries": [{**USER, "findings": [{"subtask": "a", "answer": "b", "completed": True}] * 9}]},
        {"entries": [USER], "plan": {"subtasks": PLAN["subtasks"] * 9}},
        {"entries": [USER], "plan": {"subtasks": [{"name": "a", "advised": ["b"] * 9, "entries": [WAITING]}]}},
        {"entries": [{"kind": "answer", "text": ""}] * (MAX_ENTRIES + 1)},
        {"entries": [WAITING, LATER]},
        {"entries": [WAITING, WAITING]},
        {"entries": [{"kind": "round", "calls": [CALL, CALL]}]},
        {"entries": [USER], "plan": {"subtasks": []}},
        {"entries": [USER], "plan": {"subtasks": [{"name": "a"}]}},
        {"entries": [USER, LATER], "plan": PLAN},
        {"plan": PLAN},
        {"entries": [USER], "plan": {"subtasks": [{"name": "a", "entries": [WAITING, LATER]}]}},
        {"entries": [USER], "plan": {"subtasks": [{"name": name, "entries": [WAITING]} for name in "ab"]}},
    ],
)
def test_records_that_do_not_fit_are_refused(fields: dict[str, object]) -> None:
    assert "fields of a state" in problem_of(of_json({"strategy": "gpt5_react", **fields}))


def test_odd_json_is_refused() -> None:
    long, deep = b'{"strategy": "a", "last_source": ' + b"9" * 5_000, b'{"strategy": "a", "entries": ' + b"[" * 100_000
    half_a_pair, byte_order_mark = b'{"strategy": "\\ud83d"}', b'\xef\xbb\xbf{"strategy": "a"}'

    for written in (long + b"}", deep + b"]" * 100_000 + b"}", half_a_pair, byte_order_mark):
        assert "fields of a state" in problem_of(text_of(packed(written)))


@pytest.mark.parametrize("items", [{"entries": (0,) * 9}, {"sources": (0,) * 9}, {"plan": {"subtasks": (0,) * 9}}])
def test_many_wrong_items_do_not_make_as_many_errors(items: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as caught:
        State.model_validate({"strategy": "gpt5_react", **items})

    assert caught.value.error_count() <= 2


def test_texts_are_written_and_read_without_what_cannot_be_stored() -> None:
    odd = "a\ud83d\0b"
    call = CallRecord(id=odd, provider="p", tool=odd, arguments='{"a": "é"}', result=odd)
    clean = decode(encode(State(strategy="gpt5_react", entries=(RoundRecord(said=odd, calls=(call,)),))))
    read = decode(of_json({"strategy": "a\0b \\u0000"}))

    assert clean is not None
    assert isinstance(last := clean.entries[-1], RoundRecord)
    assert (last.said, last.calls[0].result, last.calls[0].tool) == ("a?b", "a?b", "a?b")
    assert read == State(strategy="ab \\u0000")


STORED = Path(__file__).parent.parent / "fixtures" / "state"
"""States of each version that was ever in use, one a line, and what they say."""


@pytest.mark.parametrize("path", sorted(STORED.glob("v*.txt")), ids=lambda path: path.stem)
def test_a_state_of_each_version_goes_on_in_later_ones(path: Path) -> None:
    stored = [decode(line) for line in path.read_text().splitlines()]
    expected = [
        State.model_validate_json(json.dumps(each)) for each in json.loads(path.with_suffix(".json").read_text())
    ]

    assert stored == expected
    assert [bool(state.waiting) for state in expected] == [False, False, True, True]
    assert [decode(encode(state)) for state in expected] == expected


def test_a_state_of_this_version_is_stored() -> None:
    assert {path.stem for path in STORED.glob("v*.txt")} == {f"v{number}" for number in range(1, VERSION + 1)}
