"""Later versions read the states of conversations that are under way, and run the calls that wait in them.

The states are in tests/fixtures/state as a run put them out. They are never written again, because an update has to
read what users have: ``--write-states`` only writes those of ``RECORDED`` that have no file yet.

Version 0.1.0 had no output ``state`` (tests/releases/0.1.0), so its conversations have none to read.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from internal.memory.state import decode, encode
from tests.support.host import text_of
from tests.support.local_http import SignedFiles, served
from tests.support.plans import offered
from tests.support.recorded_states import (
    FOLDER,
    RECORDED,
    Call,
    content,
    is_stored,
    made_calls,
    store,
    stored,
    stored_json,
)
from tests.support.scenes import check_prompt, results_in
from tests.support.strict_reader import READER
from tests.support.wire import MODEL, model, says

WAITING = [name for name, state in RECORDED.items() if state.waiting]
UNANSWERED = b'"result":null'
"""What the JSON of a state has for a call that waits."""


@pytest.fixture(scope="module", autouse=True)
def file_service() -> Iterator[None]:
    """Answers for the address of each file, in place of the proxy that a server of Dify has."""
    with served(SignedFiles) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSRF_PROXY_HTTP_URL", address)
        yield


@pytest.fixture(autouse=True)
def missing_states(request: pytest.FixtureRequest, file_service: None) -> None:  # noqa: ARG001 - a run may need it
    """Write the states that have no file yet, if the option says so."""
    if request.config.getoption("write_states"):
        for name, state in RECORDED.items():
            if not is_stored(name):
                store(name, state.put_out())


def test_each_stored_state_belongs_to_a_conversation() -> None:
    names = {path.stem for path in FOLDER.iterdir() if not path.name.startswith("v")}

    assert names == set(RECORDED)


def in_order(calls: Sequence[Call]) -> list[str]:
    """The calls as sorted texts, since those of two subtasks come in any order."""
    return sorted(json.dumps(call, sort_keys=True) for call in calls)


def only_recorded(written: Any, recorded: Any) -> Any:  # noqa: ANN401 - JSON
    """A value without the fields that the recorded one does not have."""
    if isinstance(recorded, dict):
        return {name: only_recorded(written[name], value) for name, value in recorded.items()}
    if isinstance(recorded, list):
        return [only_recorded(item, value) for item, value in zip(written, recorded, strict=True)]
    return written


def state_of(name: str, age: str) -> str:
    """The stored state of older code, whose ids the model gave then, or the state of the same conversation today."""
    if age == "of today":
        return RECORDED[name].put_out()
    READER.gave(model()["provider"], MODEL, re.findall(r'"id":"([^"]*)"', content(stored(name)).decode()))
    return stored(name)


each_age = pytest.mark.parametrize("age", ["stored", "of today"])


@pytest.mark.parametrize("name", RECORDED)
def test_a_state_is_read_with_every_field_that_was_written(name: str) -> None:
    state = decode(stored(name))

    assert state is not None
    assert state.model_dump(mode="json", exclude_unset=True) == stored_json(name)


@pytest.mark.parametrize("name", RECORDED)
def test_a_state_that_was_read_is_written_with_the_same_fields(name: str) -> None:
    """The JSON is compared, since another version of zlib packs it as another text. Later versions add fields."""
    state = decode(stored(name))
    assert state is not None

    text = encode(state)

    assert only_recorded(json.loads(content(text)), stored_json(name)) == stored_json(name)
    assert text.split(".")[:2] == stored(name).split(".")[:2]


@each_age
@pytest.mark.parametrize("name", WAITING)
def test_after_a_yes_each_waiting_call_runs_once_as_it_was_recorded(name: str, age: str) -> None:
    recorded = RECORDED[name]
    state = state_of(name, age)
    assert UNANSWERED in content(state)

    outcome = recorded.answered(state, "yes", recorded.after_yes)

    assert outcome.error is None
    assert in_order(made_calls(outcome)) == in_order(recorded.waiting)
    assert outcome.stop_reason == "answered"
    assert outcome.variables["pending_calls"] == []
    assert UNANSWERED not in content(outcome.variables["state"])
    for prompt in outcome.model.prompts:
        check_prompt(prompt)


@each_age
@pytest.mark.parametrize("approval", ["no", "{}"])
@pytest.mark.parametrize("name", WAITING)
def test_after_a_no_no_waiting_call_runs(name: str, approval: str, age: str) -> None:
    recorded = RECORDED[name]

    outcome = recorded.answered(state_of(name, age), approval, recorded.after_no)

    assert outcome.error is None
    assert made_calls(outcome) == []
    assert outcome.variables["pending_calls"] == []
    assert UNANSWERED not in content(outcome.variables["state"])


def test_a_conversation_goes_on_with_its_results_and_sources() -> None:
    outcome = RECORDED["conversation"].next_run(
        state_of("conversation", "stored"), "And on Mondays?", [says("At nine too [1].")]
    )

    (prompt,) = outcome.model.prompts
    check_prompt(prompt)
    users = [text_of(message) for message in prompt if message["role"] == "user"]
    assert ["When do you open, and when do you close?" in users[0], *users[1:]] == [
        True,
        "日曜日は開いていますか。",
        "And on Mondays?",
    ]
    assert "The shop opens at nine." in users[0]
    assert "a.mp4" in users[0]
    results = results_in(prompt)
    assert len(results) == 5
    assert results[0].startswith("The shop closes at")
    assert [(source["number"], source["title"]) for source in outcome.variables["sources"]] == [(1, "Opening hours")]


def test_a_conversation_goes_on_with_its_summary() -> None:
    state = state_of("summary", "stored")

    outcome = RECORDED["summary"].next_run(state, "And a desk?", [says("I do not know.")])

    (prompt,) = outcome.model.prompts
    assert "The user wants lamps. A lamp costs 3." in text_of(prompt[1])
    assert [text_of(message) for message in prompt if message["role"] == "user"][1:] == [
        "What does a lamp cost?",
        "And a desk?",
    ]


def test_a_conversation_goes_on_with_the_skills_it_has_read_and_the_tools_it_has_found() -> None:
    outcome = RECORDED["skills_and_tools"].next_run(
        state_of("skills_and_tools", "stored"), "And in Oslo?", [says("No.")]
    )

    (request,) = outcome.model.requests
    assert "get_weather" in offered(request)
    assert "Be kind." in text_of(request["prompt_messages"][0])
