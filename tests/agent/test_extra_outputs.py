"""The optional variables: ``tool_results`` has what the tools returned, ``thoughts`` what the model thought."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from tests.agent import plans
from tests.agent.scenes import ANSWER, search, text
from tests.support.host import Json, When
from tests.support.run import run
from tests.support.wire import breaks, calls, fails, json_message, parameter, replies, says, text_message, tool

STRATEGY = Path(__file__).parents[2] / "strategies" / "gpt5_function_calling.yaml"
DECLARED = jsonschema_rs.validator_for(
    yaml.safe_load(STRATEGY.read_text(encoding="utf-8"))["output_schema"]["properties"]["tool_results"]
)
"""The variable as other nodes expect it."""
SECRET = "hunter2-hunter2"
NODE_SECRET = {"tools": [tool("search", parameter("q"), runtime_parameters={"api_key": SECRET})]}
FOUND = {"search": replies("found")}


def asks(*names: str) -> Json:
    return {"extra_outputs": ", ".join(names)}


def results_of(*messages: Json | str, turn: list[Any] | None = None, **params: Any) -> list[Json]:  # noqa: ANN401
    """The variable after one turn of calls whose tool says this."""
    outcome = run([turn or search(), ANSWER], {"search": replies(*messages)}, {**asks("tool_results"), **params})
    assert outcome.error is None
    return list(outcome.variables["tool_results"])


def result_of(*messages: Json | str, **params: Any) -> Json:  # noqa: ANN401 - passed on as it is
    (result,) = results_of(*messages, **params)
    return result


def test_a_run_puts_out_what_the_node_asks_for_and_nothing_else() -> None:
    for names in ((), ("tool_results",), ("thoughts",), ("tool_results", "thoughts")):
        variables = run([ANSWER], FOUND, asks(*names)).variables

        assert set(variables) & {"tool_results", "thoughts"} == set(names)
        assert all(variables[name] == [] for name in names)


# tool_results


def test_each_call_of_tool_runs_has_an_entry_in_the_same_order() -> None:
    handlers = {"search": replies("found"), "look": breaks("503 overloaded", [text_message("half")])}
    first = calls(
        ("search", {"q": "a"}), ("look", {"q": "b"}), ("search", {"q": "c", "nope": 1}), ("search", "{"), ("other", {})
    )

    outcome = run([first, search("d"), ANSWER], handlers, asks("tool_results"))

    listed = outcome.variables["tool_results"]
    names = ("round", "tool", "status")
    runs = outcome.variables["tool_runs"]
    assert [[item[name] for name in names] for item in listed] == [[item[name] for name in names] for item in runs]
    assert [item["arguments"] for item in listed] == [
        {"q": "a"},
        {"q": "b"},
        {"q": "c", "nope": 1},
        None,
        {},
        {"q": "d"},
    ]
    assert [item["text"] for item in listed[:5]] == outcome.tool_results(1)
    assert [list(item) for item in listed] == [["round", "tool", "arguments", "status", "text", "json"]] * 6
    assert DECLARED.is_valid(listed)


def test_arguments_are_those_that_were_sent() -> None:
    outcome = run(
        [calls(("search", {"q": 7, "n": "12", "gone": None})), ANSWER],
        {"search": replies("found")},
        {
            "tools": [tool("search", parameter("q"), parameter("n", "number"), parameter("gone"))],
            **asks("tool_results"),
        },
    )

    (item,) = outcome.variables["tool_results"]
    (sent,) = outcome.tools.requests
    assert item["arguments"] == sent["tool_parameters"] == {"q": "7", "n": 12}


@pytest.mark.parametrize("more", ["", ', "nope": 1'])
def test_nul_in_arguments_does_not_go_out(more: str) -> None:
    (item,) = results_of("found", turn=calls(("search", f'{{"q": "a\\u0000b"{more}}}')))

    assert item["arguments"]["q"] == "ab"


def test_a_call_that_waits_has_its_checked_arguments_and_its_result_comes_with_the_approval() -> None:
    handlers = {"order": replies("ordered", json_message({"id": 7}))}
    params = {**asks("tool_results"), "approval_required": "order"}

    first = run([calls(("order", {"q": 3}))], handlers, params)
    second = run([ANSWER], handlers, {**params, "state": first.variables["state"], "approval": "yes"})

    (waiting,), (done,) = (outcome.variables["tool_results"] for outcome in (first, second))
    assert (waiting["status"], waiting["arguments"], waiting["json"]) == ("waiting", {"q": "3"}, None)
    assert (done["status"], done["arguments"], done["json"]) == ("ok", {"q": "3"}, {"id": 7})


def test_what_the_developer_sets_is_not_among_the_arguments() -> None:
    item = result_of("found", **NODE_SECRET)

    assert item["arguments"] == {"q": "x"}


VALUES: dict[str, tuple[list[Json | str], object]] = {
    "none": (["found"], None),
    "one object": ([json_message({"a": 1})], {"a": 1}),
    "one list": ([json_message([1, 2])], [1, 2]),
    "several": ([json_message({"a": 1}), "and", json_message([2])], [{"a": 1}, [2]]),
    "the same as the text": (['{"a": 1}', json_message({"a": 1})], {"a": 1}),
    "an integer that the host would round": ([json_message({"id": 2**60, "n": 2**53})], {"id": str(2**60), "n": 2**53}),
    "NUL and half a pair": ([json_message({"a\0": "b\0\ud83d"})], {"a": "b?"}),
    "what no number is": ([json_message([float("nan"), float("inf")])], [None, None]),
    "a large number": ([json_message({"a": 1e300})], {"a": 1e300}),
}


@pytest.mark.parametrize(("said", "value"), VALUES.values(), ids=VALUES)
def test_json_is_the_value_that_the_tool_sent(said: list[Json | str], value: object) -> None:
    result = result_of(*said)
    assert result["json"] == value
    assert DECLARED.is_valid([result])


def test_json_that_is_nested_too_deeply_for_a_message_is_left_out_and_counted() -> None:
    deep: object = 1
    for _ in range(300):
        deep = [deep]

    outcome = run([search(), ANSWER], {"search": replies(json_message(deep), json_message([2]))}, asks("tool_results"))

    assert outcome.error is None
    assert [item["json"] for item in outcome.variables["tool_results"]] == [[2]]
    assert outcome.last_json["decision_summary"]["left_out"] == {"tool_results.json": 1}


def test_json_that_is_too_long_for_the_variables_is_left_out_and_noted() -> None:
    outcome = run(
        [search(), ANSWER], {"search": replies(json_message(["x" * 600_000]), json_message([2]))}, asks("tool_results")
    )

    assert [item["json"] for item in outcome.variables["tool_results"]] == [[2]]
    assert any("its JSON values for tool_results were kept" in note for note in outcome.notes)


def test_json_is_kept_only_where_it_is_put_out() -> None:
    outcome = run([search(), ANSWER], {"search": replies(json_message(["x" * 600_000]))})

    assert not any("tool_results" in note for note in outcome.notes)


def test_the_text_is_what_the_model_read_without_what_means_something_in_the_prompt_alone() -> None:
    long = "".join(f"{number:05}" for number in range(2_000))
    resource = {"content": "Yes.", "title": "A page", "position": 1}
    source = {
        "type": "retriever_resources",
        "message": {"retriever_resources": [resource], "context": ""},
        "meta": None,
    }

    cut = result_of(long, source, tool_result_limit=1_000)["text"]

    assert len(cut) <= 1_000
    assert cut.startswith("00000")
    assert cut.endswith("01999")
    assert "read_result" not in cut
    assert "[1]" not in cut


def test_a_call_that_reads_on_in_a_result_has_no_entry() -> None:
    steps = [search(), calls(("read_result", {"id": "result_1", "offset": 1_000})), ANSWER]

    outcome = run(steps, {"search": replies("x" * 5_000)}, {**asks("tool_results"), "tool_result_limit": 1_000})

    assert [item["tool"] for item in outcome.variables["tool_results"]] == ["search"]


def test_an_answer_that_is_handed_over_has_an_entry_as_in_tool_runs() -> None:
    schema = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})

    outcome = run([calls(("submit_answer", {"n": 3}))], FOUND, {"answer_schema": schema, **asks("tool_results")})

    assert [(item["tool"], item["arguments"]) for item in outcome.variables["tool_results"]] == [
        ("submit_answer", {"n": 3})
    ]


def test_secrets_of_the_node_are_replaced_in_all_of_an_entry() -> None:
    said: list[Json | str] = [f"It is {SECRET}.", json_message({SECRET: [f"a {SECRET}"]})]

    item = result_of(*said, turn=search(f"is it {SECRET}?"), **NODE_SECRET)

    assert item["arguments"] == {"q": "is it [redacted]?"}
    assert "It is [redacted]." in item["text"]
    assert item["json"] == {"[redacted]": ["a [redacted]"]}


def test_a_number_that_is_a_secret_is_replaced() -> None:
    offered = tool("search", parameter("q"), runtime_parameters={"pin_password": "12345678"})

    assert result_of(json_message({"pin": 12345678}), tools=[offered])["json"] == {"pin": "[redacted]"}


def test_what_the_model_gave_to_a_secret_parameter_is_replaced() -> None:
    offered = tool("login", parameter("pin", "secret-input"), parameter("q"))
    said = {"login": replies(f"Welcome, {SECRET}.", json_message({"pin": SECRET}))}

    outcome = run([calls(("login", {"pin": SECRET})), ANSWER], said, {"tools": [offered], **asks("tool_results")})

    (item,) = outcome.variables["tool_results"]
    assert (item["arguments"], item["json"]) == ({"pin": "[redacted]"}, {"pin": "[redacted]"})
    assert SECRET not in json.dumps(outcome.bodies("variable"))


def test_an_answer_of_many_long_results_names_what_was_left_out() -> None:
    """Ten results of 60,000 characters: the oldest two lose their texts."""
    steps = [search(str(number)) for number in range(10)]
    params = {**asks("tool_results"), "tool_result_limit": 60_000, "maximum_iterations": 20}

    outcome = run([*steps, ANSWER], {"search": lambda request: [text_message(_long(request))]}, params)

    texts = [item["text"] for item in outcome.variables["tool_results"]]
    assert [bool(said) for said in texts] == [False] * 2 + [True] * 8
    assert outcome.last_json["decision_summary"]["left_out"] == {"tool_results.text": 2}


def _long(request: Json) -> str:
    return str(request["tool_parameters"]["q"]) * 60_000


# thoughts


def thinks(thought: str, turn: list[Any]) -> list[Any]:
    return [text(f"<think>{thought}</think>"), *turn]


@pytest.mark.parametrize("shown", [False, True])
def test_thoughts_have_the_round_of_their_turn(*, shown: bool) -> None:
    steps = [thinks("search first", search()), search("y"), thinks("that will do", ANSWER)]

    outcome = run(steps, FOUND, {**asks("thoughts"), "emit_intermediate_thoughts": shown})

    assert outcome.variables["thoughts"] == [{"round": 1, "text": "search first"}, {"round": 3, "text": "that will do"}]
    assert ("search first" in outcome.text) is shown
    assert "search first" not in json.dumps(outcome.last_json)


def test_the_closing_answer_counts_as_the_next_round() -> None:
    steps = [thinks("one", search()), thinks("two", ANSWER)]

    outcome = run(steps, FOUND, {**asks("thoughts"), "maximum_iterations": 1})

    assert outcome.stop_reason == "iteration_limit"
    assert [thought["round"] for thought in outcome.variables["thoughts"]] == [1, 2]


def test_a_remark_before_calls_is_not_a_thought() -> None:
    outcome = run([[text("I search."), *search()], ANSWER], FOUND, asks("thoughts"))

    assert outcome.variables["thoughts"] == []


def test_the_thoughts_of_a_model_that_was_replaced_are_among_them() -> None:
    failed = fails("InvokeBadRequestError", "odd", after=[text("<think>hm</think>")])

    outcome = run([failed, thinks("well", ANSWER)], FOUND, {**asks("thoughts"), "fallback_model": "a/b/c/d"})

    assert [thought["text"] for thought in outcome.variables["thoughts"]] == ["hm", "well"]


def test_a_plan_names_the_subtask_and_its_judgements_stand_outside_of_rounds() -> None:
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


def test_secrets_leave_thoughts_too() -> None:
    outcome = run([thinks(f"the key {SECRET}", ANSWER)], FOUND, {**asks("thoughts"), **NODE_SECRET})

    assert [thought["text"] for thought in outcome.variables["thoughts"]] == ["the key [redacted]"]


def test_the_variables_are_cleaned_once_since_their_size_is_measured_then() -> None:
    offered = tool("search", parameter("q"), runtime_parameters={"api_key": "redacted"})

    outcome = run([thinks("the key redacted", ANSWER)], FOUND, {**asks("thoughts"), "tools": [offered]})

    assert [thought["text"] for thought in outcome.variables["thoughts"]] == ["the key [redacted]"]


def test_of_more_thoughts_than_fit_the_oldest_go() -> None:
    steps = [thinks(letter * 40_000, search(letter)) for letter in "abc"]

    outcome = run([*steps, ANSWER], FOUND, asks("thoughts"))

    assert [thought["text"][0] for thought in outcome.variables["thoughts"]] == ["b", "c"]
    assert outcome.last_json["decision_summary"]["left_out"] == {"thoughts": 1}
