"""The benchmarks run, and print what their README explains; no time is judged."""

import pytest
import yaml

import benchmarks.__main__ as command
from benchmarks import cost, declared_inputs, growth, overlap
from benchmarks.answers import Failure, after, prepared, spread
from benchmarks.floor import FloorStrategy
from benchmarks.process import RunFailed, side_by_side
from benchmarks.scenario import Scenario, calling, chunks, play, rounds
from strategies.gpt5_plan_and_reflect import GPT5PlanAndReflectStrategy
from tests.support.wire import json_message, text_message

pytestmark = pytest.mark.heavy


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario([prepared(chunks(1_000))]),
        rounds(3, "found it"),
        cost.one_answer(),
        cost.many_calls(2),
        cost.one_call([text_message("found it")]),
        cost.one_call([json_message(cost.records(1_000))]),
        cost.with_sources(3),
        growth.with_tools(3),
        cost.with_history(4),
    ],
    ids=["chunks", "rounds", "answer", "calls", "text", "JSON", "sources", "tools", "history"],
)
def test_the_floor_says_what_the_agent_says(scenario: Scenario) -> None:
    agent = play(scenario)
    floor = play(scenario, FloorStrategy)

    assert agent.failed_with == floor.failed_with == ""
    assert floor.text.rstrip().endswith(agent.text)  # the floor also shows what is said before a call
    assert agent.text


@pytest.mark.e2e
def test_a_run_in_a_process_of_its_own_says_the_same_for_both_and_costs_cpu_time() -> None:
    scenario = Scenario([after(0, calling()), spread(0, chunks(4))], [prepared([text_message("found it")])])
    with side_by_side(None) as processes:
        before = processes.agent.cpu()
        texts = {process.run(scenario).text.rstrip() for process in (processes.agent, processes.floor)}
        assert processes.agent.cpu() > before
        with pytest.raises(RunFailed, match="out of order"):
            processes.agent.run(Scenario([Failure("out of order")]))
        row = cost.measured(cost.Case("a run", cost.playing(scenario), limit=1_000), processes, repeats=1)
        growing = growth.Growing("rounds", (1, 2), lambda count: rounds(count, "found it"))
        table = growth.table(growing, processes, repeats=1)

    assert (row.cells[0], row.goal.is_met) == ("a run", True)
    assert len(str(table).splitlines()) == 6
    assert texts == {"The quick brown"}


@pytest.mark.parametrize("count", [1, 2])
def test_the_overlap_is_that_of_whole_runs(count: int) -> None:
    assert play(overlap.tool_calls(count)).text == "Done."
    assert play(overlap.subtasks(count), GPT5PlanAndReflectStrategy).text == "Done."


def test_every_hostile_error_has_a_row_for_each_size() -> None:
    table = growth.errors_table(repeats=1)

    assert [row.cells[:2] for row in table.rows] == [
        (name, str(size)) for name in growth.HOSTILE for size in growth.ERROR_SIZES
    ]


FAILING = {"an error of the model", "an answer schema that is not JSON"}
WRITTEN = [case for case in command.PAUSE_CASES if case not in declared_inputs.CASES]


def test_every_written_case_of_pauses_is_a_run_and_only_those_that_are_meant_to_fail_do() -> None:
    failed = {case.name for case in WRITTEN if play(case.scenario(500), case.strategy).failed_with}

    assert failed == FAILING


REFUSED = ("skills", "approval_required", "state", "answer_schema", "answer_tools", "fallback_model")
"""Settings that are errors when they make no sense."""
REFUSED_BY_THE_SDK = tuple(f"chunk: delta.message.{field}" for field in ("role", "content.0.type", "content.0.detail"))


def test_no_declared_field_breaks_a_run_unless_its_values_are_counted() -> None:
    ended = {case.name: play(case.scenario(500), case.strategy).failed_with for case in declared_inputs.CASES}

    assert set(ended.values()) == {"", "InvokeBadRequestError"}
    for name, failed_with in ended.items():
        setting, _, _way = name.rpartition(", ")
        is_refused = setting in REFUSED or setting in REFUSED_BY_THE_SDK
        if name != "answer_schema, a JSON object":  # which is a schema
            assert bool(failed_with) == is_refused, name


def test_every_field_that_the_sdk_and_the_strategies_declare_has_a_case() -> None:
    names = {case.name for case in declared_inputs.CASES}
    declared = yaml.safe_load(declared_inputs.DECLARATIONS.read_text(encoding="utf-8"))["parameters"]
    settings = {each["name"] for each in declared if each["type"] in ("string", "any", "number")}

    assert settings <= {name.rpartition(", ")[0] for name in names}
    assert {f"chunk: delta.{field}, huge" for field in ("finish_reason", "message.name", "usage.currency")} <= names
    assert {f"chunk: delta.message.{field}, many" for field in ("tool_calls", "content", "opaque_body")} <= names
    assert {f"{kind} message: message, many" for kind in ("text", "json", "log", "blob_chunk")} <= names
    assert {"tool: runtime_parameters, many", "model: completion_params, many", "tool: many"} <= names
