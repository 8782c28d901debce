"""The optional variables: ``tool_results`` has what the tools returned, ``thoughts`` what the model thought."""

import json
from pathlib import Path
from random import Random
from typing import Any

import jsonschema_rs
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from internal.call import CallStatus, RejectedCall, ToolCall, ToolOutcome
from internal.errors import StopReason
from internal.events import CallsAnswered, RunSummary, RunTotals, Thought
from internal.memory.records import State, UserRecord
from internal.node.params import ExtraOutput
from internal.render.outputs import MAX_THOUGHTS, Variables
from internal.render.public import MAX_EXTRA_BYTES, PublicRun
from internal.text.secrets import Redactor
from tests.support import plans
from tests.support.host import Json, When
from tests.support.run import run
from tests.support.scenes import ANSWER, FOUND, search, text
from tests.support.wire import breaks, calls, json_message, parameter, replies, says, text_message, tool

KIB = 1024
CHARACTERS = st.sampled_from(["a", "é", "検", "\U0001f600", '"', "\n", "\x01"])
"""Of each width on the wire: one to six bytes."""


TEXTS = st.builds(lambda character, times: character * times, CHARACTERS, st.integers(0, 300_000))


def made(
    texts: list[str] | None = None, thoughts: list[str] | None = None, state: str = "", arguments: str = ""
) -> Variables:
    """The variables of a run with one call for each text, and a thought in each round."""
    written = json.dumps({"q": arguments})
    ended = [
        ToolOutcome(RejectedCall(ToolCall(f"call_{number}", "search", written), ""), CallStatus.OK, said)
        for number, said in enumerate(texts or ())
    ]
    totals = RunTotals(
        tool_rounds=[CallsAnswered(number, (call,)) for number, call in enumerate(ended, start=1)],
        thoughts=[Thought(number, said) for number, said in enumerate(thoughts or (), start=1)],
    )
    summary = RunSummary(
        *(StopReason.ANSWERED, 1, "Done.", totals),
        extra_outputs=frozenset(ExtraOutput),
        state=State(strategy="s", entries=(UserRecord(text=state),)),
    )
    return Variables.of(PublicRun.of(summary, Redactor()))


def size(value: object) -> int:
    """Bytes as the SDK writes them."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def rounds(entries: list[dict[str, Any]]) -> list[int]:
    return [entry["round"] for entry in entries]


STRATEGY = Path(__file__).parents[2] / "strategies" / "gpt5_function_calling.yaml"
DECLARED = jsonschema_rs.validator_for(
    yaml.safe_load(STRATEGY.read_text(encoding="utf-8"))["output_schema"]["properties"]["tool_results"]
)
"""The variable as other nodes expect it."""
SECRET = "hunter2-hunter2"


def asks(*names: str) -> Json:
    return {"extra_outputs": ", ".join(names)}


def result_of(*messages: Json | str, turn: list[Any] | None = None, **params: Any) -> Json:  # noqa: ANN401
    """The one entry of the variable after a turn with a call whose tool says this."""
    outcome = run([turn or search(), ANSWER], {"search": replies(*messages)}, {**asks("tool_results"), **params})
    assert outcome.error is None
    (result,) = outcome.variables["tool_results"]
    assert DECLARED.is_valid([result])
    return dict(result)


def test_a_run_puts_out_what_the_node_asks_for_and_nothing_else() -> None:
    for names in ((), ("tool_results",), ("thoughts",), ("tool_results", "thoughts")):
        variables = run([ANSWER], FOUND, asks(*names)).variables

        assert set(variables) & {"tool_results", "thoughts"} == set(names)
        assert all(variables[name] == [] for name in names)


# tool_results


def test_each_call_of_tool_runs_has_an_entry_in_the_same_order() -> None:
    handlers = {"search": replies("found"), "look": breaks("503 overloaded", [text_message("half")])}
    first = calls(
        ("search", {"q": 7}), ("look", {"q": "b"}), ("search", {"q": "c", "nope": 1}), ("search", "{"), ("other", {})
    )

    outcome = run([first, search("d"), ANSWER], handlers, asks("tool_results"))

    listed = outcome.variables["tool_results"]
    names = ("round", "tool", "status")
    runs = outcome.variables["tool_runs"]
    assert [[item[name] for name in names] for item in listed] == [[item[name] for name in names] for item in runs]
    assert [item["arguments"] for item in listed] == [
        {"q": "7"},  # as it was sent
        {"q": "b"},
        {"q": "c", "nope": 1},
        None,
        {},
        {"q": "d"},
    ]
    assert [item["text"] for item in listed[:5]] == outcome.tool_results(1)
    assert [list(item) for item in listed] == [["round", "tool", "arguments", "status", "text", "json"]] * 6
    assert DECLARED.is_valid(listed)


def test_a_call_that_waits_has_its_checked_arguments_and_its_result_comes_with_the_approval() -> None:
    handlers = {"order": replies("ordered", json_message({"id": 7}))}
    params = {**asks("tool_results"), "approval_required": "order"}

    first = run([calls(("order", {"q": 3}))], handlers, params)
    second = run([ANSWER], handlers, {**params, "state": first.variables["state"], "approval": "yes"})

    (waiting,), (done,) = (outcome.variables["tool_results"] for outcome in (first, second))
    assert (waiting["status"], waiting["arguments"], waiting["json"]) == ("waiting", {"q": "3"}, None)
    assert (done["status"], done["arguments"], done["json"]) == ("ok", {"q": "3"}, {"id": 7})


VALUES: dict[str, tuple[list[Json | str], object]] = {
    "none": (["found"], None),
    "one object": ([json_message({"a": 1})], {"a": 1}),
    "several": ([json_message({"a": 1}), "and", json_message([2])], [{"a": 1}, [2]]),
    "an integer that the host would round": ([json_message({"id": 2**60, "n": 2**53})], {"id": str(2**60), "n": 2**53}),
    "NUL and half a pair": ([json_message({"a\0": "b\0\ud83d"})], {"a": "b?"}),
}


@pytest.mark.parametrize(("said", "value"), VALUES.values(), ids=VALUES)
def test_json_is_the_value_that_the_tool_sent(said: list[Json | str], value: object) -> None:
    assert result_of(*said)["json"] == value


def test_json_that_does_not_fit_is_left_out_and_counted() -> None:
    deep: object = 1
    for _ in range(300):
        deep = [deep]
    long = json_message(["x" * 600_000])

    said = replies(json_message(deep), long, json_message([2]))
    outcome = run([search(), ANSWER], {"search": said}, asks("tool_results"))

    assert [item["json"] for item in outcome.variables["tool_results"]] == [[2]]
    assert outcome.last_json["decision_summary"]["left_out"] == {"tool_results.json": 2}


def test_the_text_is_what_the_model_read_without_what_means_something_in_the_prompt_alone() -> None:
    long = "".join(f"{number:05}" for number in range(2_000))
    resource = {"content": "Yes.", "title": "A page", "position": 1}
    source = {"type": "retriever_resources", "message": {"retriever_resources": [resource], "context": ""}}
    reads = calls(("read_result", {"id": "result_1", "offset": 1_000}))

    outcome = run(
        [search(), reads, ANSWER],
        {"search": replies(long, {**source, "meta": None})},
        {**asks("tool_results"), "tool_result_limit": 1_000},
    )

    (item,) = outcome.variables["tool_results"]  # reading on has no entry
    cut = item["text"]
    assert len(cut) <= 1_000
    assert (cut[:5], cut[-5:]) == ("00000", "01999")
    assert "read_result" not in cut
    assert "[1]" not in cut


def test_secrets_of_the_node_and_of_a_secret_parameter_are_replaced_in_all_of_an_entry_and_in_thoughts() -> None:
    fixed = {"api_key": SECRET, "pin_password": "12345678"}
    offered = tool("login", parameter("q"), parameter("pin", "secret-input"), runtime_parameters=fixed)
    found = replies(f"It is {SECRET}.", json_message({SECRET: [f"a {SECRET}", 12345678, "letme-in"]}))

    outcome = run(
        [thinks(f"the key {SECRET}", calls(("login", {"q": f"is it {SECRET}?\0", "pin": "letme-in"}))), ANSWER],
        {"login": found},
        {"tools": [offered], **asks("tool_results", "thoughts")},
    )

    (item,) = outcome.variables["tool_results"]
    assert item["arguments"] == {"q": "is it [redacted]?", "pin": "[redacted]"}  # without what the developer set
    assert "It is [redacted]." in item["text"]
    assert item["json"] == {"[redacted]": ["a [redacted]", "[redacted]", "[redacted]"]}
    assert [thought["text"] for thought in outcome.variables["thoughts"]] == ["the key [redacted]"]


# thoughts


def thinks(thought: str, turn: list[Any]) -> list[Any]:
    return [text(f"<think>{thought}</think>"), *turn]


@pytest.mark.parametrize("shown", [False, True])
def test_thoughts_have_the_round_of_their_turn(*, shown: bool) -> None:
    steps = [thinks("search first", search()), [text("I search."), *search("y")], thinks("that will do", ANSWER)]
    params = {**asks("thoughts"), "emit_intermediate_thoughts": shown, "maximum_iterations": 2}

    outcome = run(steps, FOUND, params)

    assert outcome.stop_reason == "iteration_limit"  # the closing answer counts as the next round
    assert outcome.variables["thoughts"] == [{"round": 1, "text": "search first"}, {"round": 3, "text": "that will do"}]
    assert ("search first" in outcome.text) is shown
    assert "search first" not in json.dumps(outcome.last_json)
    assert "search first" not in json.dumps({**outcome.variables, "thoughts": []})


def test_a_plan_names_the_subtask_and_its_judgements_are_outside_of_rounds() -> None:
    steps = [
        thinks("split it", plans.plans("alpha")),
        plans.works_on("alpha", thinks("look it up", calls(("search", {"q": "alpha"})))),
        When("result for alpha", thinks("found", says("Answer to alpha."))),
        plans.judges("alpha", thinks("good", plans.verdict(is_completed=True))),
        When("<findings>", thinks("sum up", says("All of it."))),
    ]

    outcome = plans.plan_run(steps, {"search": plans.echo}, asks("thoughts", "tool_results"))

    assert outcome.variables["thoughts"] == [
        {"round": 0, "text": "split it"},
        {"round": 1, "text": "look it up", "subtask": "alpha"},
        {"round": 2, "text": "found", "subtask": "alpha"},
        {"round": 0, "text": "good", "subtask": "alpha"},
        {"round": 1, "text": "sum up"},
    ]
    assert [item["text"] for item in outcome.variables["tool_results"]] == ["result for alpha"]


# What they share of a node's outputs.


@example(["x"] * 8, [], 0, 200_000)  # their arguments alone are too long
@given(st.lists(TEXTS, max_size=8), st.lists(TEXTS, max_size=4), st.integers(0, 128 * KIB), st.integers(0, 200_000))
def test_together_with_the_state_they_never_exceed_the_limit(
    texts: list[str], thoughts: list[str], state: int, arguments: int
) -> None:
    state_text = Random(state).randbytes(state // 2).hex()  # noqa: S311 - any text that cannot be compressed
    extra = made(texts, thoughts, state_text, "a" * arguments)
    results = extra.values["tool_results"]
    thought = extra.values["thoughts"]

    assert size(results) + size(thought) + size(extra.values["state"]) <= MAX_EXTRA_BYTES
    assert sum(len(entry["text"]) for entry in thought) <= MAX_THOUGHTS
    assert rounds(results) == list(range(1, len(texts) + 1))[extra.left_out.get("tool_results", 0) :]
    assert rounds(thought) == list(range(1, len(thoughts) + 1))[len(thoughts) - len(thought) :]
    assert all(entry["text"] in {"", texts[entry["round"] - 1]} for entry in results)
    assert all(thoughts[entry["round"] - 1].endswith(entry["text"]) for entry in thought)
    empty = sum(not entry["text"] and bool(texts[entry["round"] - 1]) for entry in results)
    assert empty <= extra.left_out.get("tool_results.text", 0)


@given(st.lists(st.integers(1, 60_000), max_size=20))
def test_all_of_what_fits_is_there(lengths: list[int]) -> None:
    texts = ["x" * length for length in lengths]
    entries = made(texts).values["tool_results"]
    missing = [position for position, entry in enumerate(entries) if not entry["text"]]

    assert missing == list(range(len(missing)))
    if missing:
        whole = [{**entry, "text": said} for entry, said in zip(entries, texts, strict=True)]
        assert size(entries[: missing[-1]] + whole[missing[-1] :]) > MAX_EXTRA_BYTES - 100


def test_results_yield_before_thoughts_and_thoughts_before_the_state() -> None:
    heavy = ["\x01" * 60_000, "\x01" * 40_000]

    extra = made(["found" * 20_000], heavy, "s" * 128 * KIB)

    assert [entry["text"] for entry in extra.values["thoughts"]] == heavy[1:]
    assert [bool(entry["text"]) for entry in extra.values["tool_results"]] == [True]
    assert extra.left_out["thoughts"] == 1


@pytest.mark.parametrize("letter", ["a", "\x01"])
def test_of_a_thought_that_does_not_fit_alone_the_end_is_kept(letter: str) -> None:
    extra = made(thoughts=["old", f"{letter * 150_000}end"])

    (kept,) = extra.values["thoughts"]
    assert (kept["round"], kept["text"][-3:]) == (2, "end")
    assert 80_000 < len(kept["text"]) < MAX_THOUGHTS
    assert extra.left_out["thoughts"] == 2
