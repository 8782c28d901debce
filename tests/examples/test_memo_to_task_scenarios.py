"""The scripts of memo_to_task say what its schemas, samples and checks say; `make examples` plays them."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from memos.database import SAMPLES, memo_database
from memos.decisions import LOOK_AT_IT
from memos.services import MemoService
from memos.values import MemoStatus, Submission

from devhost.flow.document import FlowFile
from devhost.script import Script
from examples.memo_to_task.__main__ import desk
from examples.memo_to_task.checks import OUTCOMES

from .conftest import MEMO_TO_TASK

FILES = {file.stem: file for file in [MEMO_TO_TASK / "script.yaml", *(MEMO_TO_TASK / "scenarios").glob("*.yaml")]}

every_scenario = pytest.mark.parametrize("scenario", SAMPLES)


@every_scenario
def test_a_script_asks_about_its_own_sample_and_is_checked(scenario: str) -> None:
    assert set(FILES) == set(SAMPLES) == set(OUTCOMES)
    assert Script.read(FILES[scenario]).query == SAMPLES[scenario].message


@pytest.fixture
def own_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMOS_DATABASE_URL", f"sqlite:///{tmp_path}/memos.sqlite3")


def printed(*command: str) -> str:
    result = CliRunner().invoke(desk, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.usefixtures("own_database")
def test_a_memo_is_added_and_printed_as_what_to_say_to_the_agent() -> None:
    said = printed("add", " Buy tea ")
    (memo,) = MemoService(memo_database({})).memos()

    assert said == f"Memo {memo.id}: Buy tea\n"
    assert printed("list") == f"Memo {memo.id}: Buy tea  [inbox]\n"


@pytest.mark.usefixtures("own_database")
@pytest.mark.parametrize("text", ["  ", "half a pair: \udcff"])
def test_a_memo_that_cannot_be_stored_is_refused_in_one_sentence(text: str) -> None:
    result = CliRunner().invoke(desk, ["add", text], catch_exceptions=False)

    assert result.exit_code == 1
    assert result.output.startswith("Error: Invalid parameters for add: text: ")
    assert printed("list") == ""


@pytest.mark.usefixtures("own_database")
def test_a_person_sees_the_draft_of_a_memo_that_would_have_ended_without_evidence() -> None:
    service = MemoService(memo_database({}))
    memo = service.add("Reply to Ms Sato about the invoice").id
    service.update_status(memo, MemoStatus.IDEA)
    rules = [{"rule": "not_actionable→idea", "quote": "nothing to do"}]
    given = {"memo_id": memo, "memo_insights": ["a wish"], "applied_rules": rules}

    service.decide(Submission.model_validate(given), "c-1")

    assert printed("list").splitlines() == [
        f"Memo {memo}: Reply to Ms Sato about the invoice  [active]",
        "    task: Review: Reply to Ms Sato about the invoice  [draft]",
        "    because review_requested→DRAFT",
        f"    note: {LOOK_AT_IT}",
    ]


def test_the_workflow_has_the_instruction_and_the_answer_tool_of_the_scripts() -> None:
    flow = FlowFile.read(MEMO_TO_TASK / "workflow.yml")
    (agent,) = [node for node in flow.nodes.values() if node.type == "agent"]
    given = {name: parameter["value"] for name, parameter in agent.data["agent_parameters"].items()}

    for name, value in Script.read(FILES["script"]).params.items():
        assert given[name] == value
    for tool in given["tools"]:
        filled_in = {name: setting["value"] for name, setting in tool["settings"].items()}
        assert filled_in == {
            "conversation": {"type": "mixed", "value": "{{#sys.conversation_id#}}"},
            "turn": {"type": "mixed", "value": "{{#sys.dialogue_count#}}"},
        }
