"""A state as text: it comes back whole, and any other text is one clear error."""

import base64
import hashlib
import json
import zlib
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from internal import clock as fairness
from internal.errors import InvalidParameters
from internal.memory.records import (
    AnswerRecord,
    CallRecord,
    FileRecord,
    FindingRecord,
    PlanRecord,
    RoundRecord,
    SourceRecord,
    State,
    SubtaskRecord,
    UserRecord,
)
from internal.memory.state import MAX_LENGTH, MAX_READ_LENGTH, MAX_UNPACKED, VERSION, decode, encode
from internal.text.texts import wellformed_json
from tests.unit.generators import any_text, json_values
from tests.unit.states import states

HEAD = "gpt5-agent-state.1."
CALL = {"id": "a", "provider": "shop", "tool": "order", "arguments": "{}"}
USER = {"kind": "user", "text": "Why?"}
WAITING = {"kind": "round", "calls": [CALL]}


def of_id(number: int) -> dict[str, object]:
    """A round with a call that waits under this number."""
    return {"kind": "round", "calls": [{**CALL, "id": f"{number}"}]}


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


FINDING = FindingRecord(subtask="a", answer="b", completed=True)
FULL_USER = UserRecord(text="a", files=("b", "c"), context="d", findings=(FINDING, FINDING))
FULL_FILE = FileRecord(name="a", url="b", kind="image", mime_type="c", filename="d", extension="e", size=1)
FULL_CALL = CallRecord(id="a", provider="b", tool="c", setting="d", arguments="{}", attached=(FULL_FILE,), result="e")
FULL_ROUND = RoundRecord(said="a", calls=(FULL_CALL, FULL_CALL.model_copy(update={"result": None})))
FULL_SUBTASK = SubtaskRecord(
    name="a",
    answer="b",
    completed=True,
    attempts=1,
    rounds=2,
    advised=("c", "d"),
    nearest="e",
    entries=(FULL_USER, FULL_ROUND),
)
FULL_SOURCE = SourceRecord(number=1, title="a", document_id="b")
FULL_STATE = State(
    strategy="gpt5_react",
    entries=(AnswerRecord(text="a"), FULL_USER),
    plan=PlanRecord(subtasks=(FULL_SUBTASK,)),
    sources=(FULL_SOURCE,),
    last_source=1,
    last_call=2,
)


@pytest.mark.parametrize(
    "record",
    [FINDING, FULL_USER, FULL_FILE, FULL_CALL, FULL_ROUND, FULL_SUBTASK, FULL_SOURCE, FULL_STATE],
    ids=lambda record: type(record).__name__,
)
def test_every_field_of_every_record_is_part_of_the_text(record: BaseModel) -> None:
    """A field that is new stands here with a value that is not its default."""
    defaults = {name: field.default for name, field in type(record).model_fields.items() if name != "kind"}

    assert [name for name, default in defaults.items() if getattr(record, name) == default] == []
    assert decode(encode(FULL_STATE)) == FULL_STATE


@pytest.mark.parametrize("text", ["", " \n", "null", "None", "[]", "{}", " null\n"])
def test_a_text_that_stands_for_no_state(text: str) -> None:
    assert decode(text) is None


def test_a_bare_selector_is_named_as_a_variable_that_does_not_exist() -> None:
    assert "'conversation.state' looks like a variable that does not exist" in problem_of(" conversation.state ")


@given(st.integers(0, len(A_STATE) - 1), st.characters())
def test_a_state_with_one_character_changed_is_refused(position: int, character: str) -> None:
    changed = A_STATE[:position] + character + A_STATE[position + 1 :]
    if changed.strip() != A_STATE:
        problem_of(changed)


@given(st.integers(1, len(A_STATE) - 1), st.integers(0, 9), st.text(max_size=3))
def test_a_state_that_was_cut_or_has_something_in_it_is_refused(position: int, count: int, inside: str) -> None:
    problem_of(A_STATE[:position])
    problem_of(A_STATE[position:])
    cut = A_STATE[:position] + inside + A_STATE[position + count :]
    if cut != A_STATE:
        problem_of(cut)
    problem_of(A_STATE + A_STATE[:position])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Hello, world", "not a state"),
        ("[1]", "not a state"),
        ('{"strategy": "gpt5_react"}', "not a state"),
        (f'"{A_STATE}"', "not a state"),
        (A_STATE[:-1], "was cut or changed"),
        (HEAD, "was cut or changed"),
        (A_STATE + "\ud83d", "was cut or changed"),
        (A_STATE[:60] + "\n" + A_STATE[60:], "was cut or changed"),
        (A_STATE.replace("state.1.", "state.12."), "version 12, and this version of the plugin reads version 1"),
        ("x" * (MAX_READ_LENGTH + 1), "200,001 characters, and a state has at most 131,072"),
        (text_of(b"\xff\xff"), "cannot be unpacked"),
        (text_of(packed(b'{"strategy": "\xff"}')), "cannot be unpacked"),
        (text_of(packed(b'{"strategy": "\xc3')), "cannot be unpacked"),
        (text_of(packed(b"{}") + b"{}"), "something stands behind it"),
        (text_of(packed(b'{"strategy": "gpt5_react"}')[:-1]), "has no end"),
        (text_of(b""), "has no end"),
        (text_of(packed(b" " * (MAX_UNPACKED + 1))), "unpacks to more than 8 MiB"),
        (f"{HEAD}{hashlib.sha256(b'1.abcde').hexdigest()[:32]}.abcde", "not valid base64"),
    ],
    ids=lambda value: value if len(value) < 70 else "a text",
)
def test_what_is_wrong_is_named(text: str, problem: str) -> None:
    assert problem in problem_of(text)


def test_a_small_text_that_unpacks_to_a_gigabyte_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    bomb = b"".join([*(packer.compress(bytes(2**20)) for _ in range(130)), packer.flush()])
    unpacked = list[int]()
    whole = zlib.decompressobj

    class Unpacker:
        def __init__(self, wbits: int) -> None:
            self._own = whole(wbits)

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a stand-in
            return getattr(self._own, name)

        def decompress(self, data: bytes, longest: int) -> bytes:
            piece = self._own.decompress(data, longest)
            unpacked.append(len(piece))
            return piece

    monkeypatch.setattr(zlib, "decompressobj", Unpacker)

    assert "more than 8 MiB" in problem_of(text_of(bomb))
    assert sum(unpacked) < MAX_UNPACKED + 2**20


@given(st.binary(max_size=200) | any_text.map(lambda text: packed(text.encode(errors="ignore"))))
def test_any_content_with_a_right_checksum_is_a_state_or_an_error(content: bytes) -> None:
    problem_of(text_of(content))


@given(json_values)
def test_json_of_another_schema_is_refused(value: object) -> None:
    assert "fields of a state" in problem_of(of_json(value))


LATER = {"kind": "answer", "text": "So."}
PLAN = {"subtasks": [{"name": "a", "entries": [WAITING]}]}


@pytest.mark.parametrize(
    "fields",
    [
        {"strategy": None},
        {"more": 1},
        {"entries": "x"},
        {"entries": [{"text": "Why?"}]},
        {"entries": [{**USER, "more": 1}]},
        {"entries": [{**USER, "text": 1}]},
        {"last_source": -1},
        {"last_source": "1"},
        {"last_source": True},
        {"last_source": 1.0},
        {"last_source": 2**53 + 1},
        {"last_source": float("nan")},
        {"last_source": float("inf")},
        {"sources": [{"number": 0, "title": "a"}]},
        {"entries": [{"kind": "round", "calls": []}]},
        {"entries": [{**USER, "findings": [FINDING.model_dump()] * 9}]},
        {
            "entries": [USER],
            "plan": {"subtasks": [{"name": f"{number}", "entries": [of_id(number)]} for number in range(9)]},
        },
        {"entries": [USER], "plan": {"subtasks": [{"name": "a", "advised": ["b"] * 9, "entries": [WAITING]}]}},
        {"entries": [{"kind": "answer", "text": ""}] * 50_000},
        {"entries": [{**USER, "files": [""] * 70_000}]},
        {"entries": [WAITING, LATER]},
        {"entries": [WAITING, WAITING]},
        {"entries": [{"kind": "round", "calls": [CALL, CALL]}]},
        {"entries": [{"kind": "round", "calls": [{**CALL, "arguments": "[]"}]}]},
        {"entries": [{"kind": "round", "calls": [{**CALL, "arguments": "{", "result": "error"}]}, LATER]},
        {"entries": [{"kind": "round", "calls": [{**CALL, "arguments": '{"a":' * 70 + "1" + "}" * 70}]}]},
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


@pytest.mark.parametrize(
    "written",
    [
        b'{"strategy": "a", "strategy": "a"}',
        b'{"strategy": "a", "last_source": 1e2}',
        b'{"strategy": "a", "last_source": ' + b"9" * 5_000 + b"}",
        b'{"strategy": "a", "entries": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'\xef\xbb\xbf{"strategy": "a"}',
        b'{"strategy": "a", "entries": [' + b"0," * 2_000_000 + b"0]}",
        b'{"strategy": "a", ' + b",".join(b'"%d": 0' % number for number in range(40_000)) + b"}",
    ],
    ids=["a name twice", "a float", "a long number", "deep", "BOM", "many wrong items", "many names"],
)
def test_odd_json_is_refused(written: bytes) -> None:
    assert "fields of a state" in problem_of(text_of(packed(written)))


@given(states(), st.integers(0, 2_000), st.integers(0, 2), st.text(st.sampled_from('{}[],:"\\ \n01u'), max_size=2))
def test_json_that_was_changed_is_read_as_python_reads_it_or_not_at_all(
    state: State, position: int, count: int, inside: str
) -> None:
    written = json.dumps(state.model_dump(), indent=1)
    changed = written[:position] + inside + written[position + count :]
    try:
        read = decode(text_of(packed(changed.encode())))
    except InvalidParameters:
        assert changed != written
    else:
        assert read == State.model_validate_json(json.dumps(wellformed_json(json.loads(changed))))


@pytest.mark.parametrize("items", [{"entries": (0,) * 9}, {"sources": (0,) * 9}, {"plan": {"subtasks": (0,) * 9}}])
def test_many_wrong_items_do_not_make_as_many_errors(items: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as caught:
        State.model_validate({"strategy": "gpt5_react", **items})

    assert caught.value.error_count() <= 2


def test_texts_become_well_formed_in_both_directions() -> None:
    odd = "a\ud83d\0b"
    state = State(
        strategy="gpt5_react",
        entries=(
            RoundRecord(
                said=odd, calls=(CallRecord(id=odd, provider="p", tool=odd, arguments='{"a": "é"}', result=odd),)
            ),
        ),
    )
    clean = decode(encode(state))
    read = decode(of_json(state.model_dump(mode="python")))

    assert clean == read
    assert clean is not None
    assert isinstance(last := clean.entries[-1], RoundRecord)
    assert (last.said, last.calls[0].result, last.calls[0].tool) == ("a?b", "a?b", "a?b")


def test_long_work_gives_way_to_other_sessions() -> None:
    entries = tuple(AnswerRecord(text=f"{number}" * 1_000) for number in range(1_000))
    state = State(strategy="gpt5_react", entries=entries)
    written = of_json(state.model_dump())

    with patch.object(fairness, "MAX_TURN_SECONDS", -1), patch.object(fairness, "give_way") as give_way:
        text = encode(state)
        of_encoding = give_way.call_count
        assert decode(written) == state

    assert decode(text) == state
    assert of_encoding > len(entries) + 2**21 / (16 * 1024)
    assert give_way.call_count - of_encoding > len(entries) + 2**21 / (64 * 1024)


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
