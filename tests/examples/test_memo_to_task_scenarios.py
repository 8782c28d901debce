"""The scripts of memo_to_task say what its schemas, samples and checks say; `make examples` plays them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from memos.opening import memo_database
from memos.services.memos import MemoApplicationService
from memos.services.tasks import TaskApplicationService
from memos.storage.samples import SAMPLES, message
from memos.values.schemas import Decision, Submission, TaskInput
from memos.values.status import MemoStatus, TaskStatus
from sqlalchemy import URL
from tool_layer.run_steps import recorded

from devhost.models.scripted.script import Script
from examples.memo_to_task.__main__ import desk
from examples.memo_to_task.checks import OUTCOMES, Desk
from examples.runner.world import Played

from .conftest import MEMO_TO_TASK
from .json_schemas import plain_schema
from .workflow import Workflow

STRATEGIES = ("gpt5_function_calling", "gpt5_react", "gpt5_plan_and_reflect")
FILES = {file.stem: file for file in [MEMO_TO_TASK / "script.yaml", *(MEMO_TO_TASK / "scenarios").glob("*.yaml")]}

every_scenario = pytest.mark.parametrize("scenario", SAMPLES)


def arguments(script: Script, tool: str) -> Mapping[str, Any]:
    """Of the last call of the tool."""
    *_, last = [call.arguments for turn in script.turns for call in turn.tool_calls if call.name == tool]
    assert isinstance(last, dict)
    return last


def test_there_is_a_sample_and_a_check_for_each_of_the_six_scenarios() -> None:
    assert len(FILES) == 6
    assert set(FILES) == set(SAMPLES) == set(OUTCOMES)


@every_scenario
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_script_asks_about_its_own_sample_under_every_strategy(scenario: str, strategy: str) -> None:
    script = Script.read(FILES[scenario], strategy)

    assert script.fits
    assert script.query == message([*SAMPLES].index(scenario) + 1, SAMPLES[scenario])
    assert plain_schema(script.params["answer_schema"]) == plain_schema(Decision.model_json_schema())


@every_scenario
def test_the_answer_of_a_script_is_the_decision_that_it_submits(scenario: str) -> None:
    script = Script.read(FILES[scenario])

    submitted = Submission.model_validate(arguments(script, "submit_decision")["decision"])
    assert submitted.as_decision == Decision.model_validate(arguments(script, "submit_answer"))


@every_scenario
def test_an_untouched_database_is_a_problem_in_every_scenario(scenario: str, tmp_path: Path) -> None:
    desk = Desk(URL.create("sqlite", database=str(tmp_path / "memos.sqlite3")))
    desk.begin(scenario)

    problems = list(desk.problems(Played(scenario, STRATEGIES[0], ())))

    memo_id = [*SAMPLES].index(scenario) + 1
    assert f"no decision about memo {memo_id} is stored" in problems
    assert f"memo {memo_id} is inbox, not {OUTCOMES[scenario].memo}" in problems
    assert any(problem.startswith("the tasks are []") for problem in problems) == bool(OUTCOMES[scenario].tasks)
    assert desk.rows() == len(SAMPLES)


@pytest.fixture
def own_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMOS_DATABASE_URL", f"sqlite:///{tmp_path}/memos.sqlite3")


def printed(*command: str) -> str:
    result = CliRunner().invoke(desk, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.usefixtures("own_database")
def test_a_memo_is_added_and_printed_as_what_to_say_to_the_agent() -> None:
    assert printed("add", " Buy tea ") == "Memo 1: Buy tea\n"
    assert printed("list") == "Memo 1: Buy tea  [inbox]\n"


@pytest.mark.usefixtures("own_database")
@pytest.mark.parametrize("text", ["  ", "half a pair: \udcff"])
def test_a_memo_that_cannot_be_stored_is_refused_in_one_sentence(text: str) -> None:
    result = CliRunner().invoke(desk, ["add", text], catch_exceptions=False)

    assert result.exit_code == 1
    assert result.output.startswith("Error: Invalid parameters for add: text: ")
    assert printed("list") == ""


@pytest.mark.usefixtures("own_database")
def test_the_audit_is_of_one_conversation_or_of_all() -> None:
    for conversation in ("c-1", "c-2"):
        recorded(memo_database({}), "create_tasks", conversation, {"tasks": []}, dict)

    assert printed("audit", "c-2").count("create_tasks") == 1
    assert printed("audit").count("create_tasks") == 2


@pytest.mark.usefixtures("own_database")
def test_the_list_shows_tasks_below_their_memo_with_the_rules() -> None:
    printed("begin", "--yes")
    script = Script.read(FILES["dated"])
    tasks = [TaskInput.model_validate(task) for task in arguments(script, "create_tasks")["tasks"]]
    TaskApplicationService(memo_database({})).create(3, tasks)
    memos = MemoApplicationService(memo_database({}))
    memos.update_status(3, MemoStatus.ACTIVE)
    memos.decide(Submission.model_validate(arguments(script, "submit_decision")["decision"]), "c-1")

    assert printed("list").splitlines()[2:5] == [
        f"{message(3, SAMPLES['dated'])}  [active]",
        "    task 1: Dentist  [todo, due 2026-12-04T15:00:00]",
        "    because date_found→calendar",
    ]


@pytest.mark.usefixtures("own_database")
def test_beginning_again_asks_first() -> None:
    printed("add", "Mine")

    refused = CliRunner().invoke(desk, ["begin"], input="n\n")

    assert refused.exit_code == 1
    assert printed("list") == "Memo 1: Mine  [inbox]\n"
    printed("begin", "--yes")
    assert printed("list").splitlines() == [
        f"{message(number, text)}  [inbox]" for number, text in enumerate(SAMPLES.values(), start=1)
    ]


@pytest.mark.usefixtures("own_database")
def test_the_downgrade_says_how_many_drafts_become_tasks_to_do(caplog: pytest.LogCaptureFixture) -> None:
    printed("downgrade")
    script = Script.read(FILES["review"])
    draft = TaskInput.model_validate(arguments(script, "create_tasks")["tasks"][0])
    memo = MemoApplicationService(memo_database({})).add("Think")
    TaskApplicationService(memo_database({})).create(memo.id, [draft])

    assert printed("downgrade") == "No task can be a draft any more.\n"

    assert "1 draft task(s) became todo" in caplog.text
    assert [task.status for task in TaskApplicationService(memo_database({})).tasks()] == [TaskStatus.TODO]


def test_the_workflow_has_the_instruction_and_the_schema_of_the_scripts() -> None:
    (agent,) = Workflow.read(MEMO_TO_TASK / "workflow.yml").agents
    given = {name: parameter["value"] for name, parameter in agent.data["agent_parameters"].items()}
    params = Script.read(FILES["script"]).params

    assert given["instruction"] == params["instruction"]
    assert json.loads(given["answer_schema"]) == params["answer_schema"]
    assert given["maximum_iterations"] == params["maximum_iterations"]
    for tool in given["tools"]:
        assert tool["settings"] == {"conversation": {"value": {"type": "mixed", "value": "{{#sys.conversation_id#}}"}}}
