"""The state of a conversation: what a run puts out, and what a later run makes of it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from internal.memory.records import AnswerRecord, State
from internal.memory.state import decode
from prompt import template
from tests.support.host import Handler, Step, text_of
from tests.support.local_http import file
from tests.support.plans import plan_run
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER, CITY, FOUND, check_prompt, passes, rejects, results_in, search
from tests.support.wire import breaks, calls, model, parameter, replies, says, tool

SOURCE = {"title": "Prices", "content": "A lamp costs 3.", "metadata": {"document_id": "d1"}}


def first(
    steps: Sequence[Step] = (search("a"), ANSWER), handlers: Mapping[str, Handler] = FOUND, **params: object
) -> Outcome:
    return run(steps, handlers, {"extra_outputs": "state", "query": "First?", **params})


def then(before: Outcome, steps: Sequence[Step] = (ANSWER,), **params: object) -> Outcome:
    """The next run of the conversation."""
    state = before.variables["state"]
    return run(steps, FOUND, {"extra_outputs": "state", "state": state, "query": "Second?", **params})


def state_of(outcome: Outcome) -> State:
    state = decode(outcome.variables["state"])
    assert state is not None
    return state


def test_a_later_run_knows_what_the_tools_found_and_adds_to_it() -> None:
    outcome = then(then(first()), [search("b"), ANSWER])

    prompt = outcome.model.prompts[0]
    roles = [message["role"] for message in prompt[1:]]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant", "user"]
    assert [text_of(prompt[1]), text_of(prompt[-1])] == ["First?", "Second?"]
    assert results_in(prompt) == ["found"]
    check_prompt(prompt)
    assert [entry.kind for entry in state_of(outcome).entries] == [
        *("user", "round", "answer"),
        *("user", "answer"),
        *("user", "round", "answer"),
    ]


def test_it_takes_the_place_of_the_nodes_memory_and_begins_with_it() -> None:
    memory = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHi"}]
    begun = first(model=model(history_prompt_messages=memory))

    outcome = then(begun, model=model(history_prompt_messages=memory))

    (prompt,) = outcome.model.prompts
    assert [text_of(message) for message in prompt[1:3]] == ["Hello", "Hi"]
    assert json.dumps(prompt).count('"Hello"') == 1


def test_media_are_named_and_the_context_stays() -> None:
    film = file("http://host.test/a.mp4", "video", mime_type="video/mp4", extension=".mp4")

    outcome = then(first([ANSWER], context=[SOURCE], files=[film]))

    question = text_of(outcome.model.prompts[0][1])
    assert "A lamp costs 3." in question
    assert template.EARLIER_MEDIA.format(kind="video", name=" a.mp4") in question


def test_what_belongs_to_one_run_is_not_in_it() -> None:
    draft = says("<think>my thought</think>", "The draft.")
    looked_up = calls(("search", {"q": "a"}), text="<think>another</think>")
    reviewed = first(
        [looked_up, draft, rejects("no figures"), ANSWER, passes()],
        instruction="the system prompt",
        answer_criteria="figures",
    )
    closed = first([search("a"), ANSWER], maximum_iterations=1)
    held = state_of(reviewed).model_dump_json() + state_of(closed).model_dump_json()

    assert [entry.kind for entry in state_of(reviewed).entries] == ["user", "round", "answer"]
    assert "<think>another</think>" in held, "some models want the thoughts of turns with calls back"
    for text in ("my thought", "system prompt", "no figures", "The draft.", template.CLOSING_NOTE):
        assert text not in held


def test_secret_values_are_not_in_it() -> None:
    key = "sk-of-the-node"
    secret = tool("search", parameter("q"), parameter("key", "secret-input"), runtime_parameters={"pin": key})
    secret["parameters"].append(parameter("pin", "secret-input", form="form"))
    given = {"q": "a", "key": "of-the-model"}

    outcome = first([calls(("search", given)), ANSWER], {"search": replies(f"it was {key}")}, tools=[secret])

    assert key not in state_of(outcome).model_dump_json()
    assert "of-the-model" not in state_of(outcome).model_dump_json()


def test_failed_and_refused_calls_are_in_it_as_the_model_read_them() -> None:
    turn = calls(("search", {"q": "a"}), ("nothing", {"x": 1}), ("search", "{"))

    outcome = then(first([turn, ANSWER], {"search": breaks("no such street")}))

    assert [text.split(":")[0] for text in results_in(outcome.model.prompts[0])] == [
        "tool invoke error",
        "there is not a tool named nothing; the tools are",
        "tool arguments parse error",
    ]
    check_prompt(outcome.model.prompts[0])


def test_sources_go_on_counting_and_an_earlier_one_is_listed_where_it_is_cited() -> None:
    begun = first([ANSWER], context=[SOURCE])

    outcome = then(begun, [says("As said [1], and now [2].")], context=[{**SOURCE, "title": "New"}])

    assert [(each["number"], each["title"], each["cited"]) for each in outcome.variables["sources"]] == [
        (1, "Prices", True),
        (2, "New", True),
    ]
    assert then(outcome, [says("Nothing cited.")]).variables["sources"] == []
    assert state_of(outcome).last_source == 2


def test_a_structured_answer_stands_in_it_as_text() -> None:
    user, answer = state_of(first([calls(("submit_answer", {"city": "Rome"}))], answer_schema=CITY)).entries

    assert isinstance(answer, AnswerRecord)
    assert (user.kind, json.loads(answer.text)) == ("user", {"city": "Rome"})


def test_a_state_of_another_strategy_is_a_history_like_any_other() -> None:
    begun = first()

    outcome = plan_run(
        [calls(("submit_plan", {"subtasks": ["x"]}))], FOUND, {"state": begun.variables["state"], "query": "Second?"}
    )

    assert results_in(outcome.model.prompts[0]) == ["found"]


@pytest.mark.parametrize("nothing", ["", None, []])
def test_what_stands_for_nothing_begins_a_conversation(nothing: Any) -> None:  # noqa: ANN401
    outcome = run([ANSWER], FOUND, {"state": nothing})

    assert outcome.error is None
    assert len(outcome.model.prompts[0]) == 2


@pytest.mark.parametrize(("text", "reason"), [("conversation.state", "variable"), ("anything", "not a state")])
def test_anything_else_is_one_error_and_nothing_runs(text: str, reason: str) -> None:
    outcome = run([], FOUND, {"state": text})

    assert str(outcome.error).startswith("parameter 'state': ")
    assert reason in str(outcome.error)
    assert outcome.model.prompts == []


def test_without_a_summary_whole_old_turns_are_left_out_in_a_small_window() -> None:
    begun = then(first([says("early " * 4_000)]), [says("later")])

    outcome = then(begun, [says(""), ANSWER], model=model(context_size=4_000), query="Third?")

    prompt = json.dumps(outcome.model.prompts[-1])
    assert "early" not in prompt
    assert "Third?" in prompt
    assert any("earlier turns" in note for note in outcome.notes)
