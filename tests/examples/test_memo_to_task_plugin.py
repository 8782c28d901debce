"""The plugin memo_to_task: its layers, what it declares, and its tools in a process of their own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import memos
import pytest
import yaml
from memos.database import memo_database
from memos.services import MemoService
from memos.values import MemoStatus, MemoUpdate, Submission, TaskInput, TaskReasons
from pydantic import BaseModel
from tool_layer.address import CREDENTIAL
from tool_layer.database import Database
from tool_layer.run_steps import steps_of

from support.imports import imported

from .conftest import MEMO_TO_TASK
from .layers import misplaced
from .stdio_plugin import StdioPlugin

TOOLS = ("create_tasks", "update_memo_status", "submit_decision")
DESCRIBED: dict[str, tuple[str, tuple[type[BaseModel], ...]]] = {
    "create_tasks": ("tasks", (TaskInput,)),
    "submit_decision": ("decision", (Submission, TaskReasons)),
}
"""By tool, the parameter that is nested, and what its description has to name: Dify hands no `input_schema` on."""


def test_every_module_imports_only_those_to_its_left() -> None:
    assert list(misplaced(memos)) == []


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_knows_no_repository_and_no_session(tool: str) -> None:
    names = imported(MEMO_TO_TASK / "tools" / f"{tool}.py")

    assert [name for name in names if name.startswith(("sqlalchemy", "tool_layer.database"))] == []
    assert {name.split(".")[1] for name in names if name.startswith("memos.")} == {"tool_base", "values"}


@pytest.mark.parametrize("tool", TOOLS)
def test_the_model_reads_the_shape_of_what_it_sends_in_the_descriptions(tool: str) -> None:
    declared = yaml.safe_load((MEMO_TO_TASK / "tools" / f"{tool}.yaml").read_text(encoding="utf-8"))["parameters"]
    *taken, conversation, turn = declared

    assert (conversation["name"], conversation["form"], conversation["type"]) == ("conversation", "form", "string")
    assert (turn["name"], turn["form"], turn["type"]) == ("turn", "form", "string")
    assert all((each["form"], each["required"], "input_schema" in each) == ("llm", True, False) for each in taken)
    if tool in DESCRIBED:
        *_, nested = taken
        name, models = DESCRIBED[tool]
        assert nested["name"] == name
        for field in (field for model in models for field in model.model_fields):
            assert field in nested["llm_description"]
    else:
        assert [each["name"] for each in taken] == [*MemoUpdate.model_fields]
        assert [option["value"] for option in taken[1]["options"]] == [*MemoStatus]


class Plugin:
    def __init__(self, process: StdioPlugin, url: str) -> None:
        self._process = process
        self._credentials = {CREDENTIAL: url}

    @property
    def database(self) -> Database:
        return memo_database(self._credentials)

    def called(self, tool: str, given: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
        """What the tool says as JSON, or the sentence of its exception."""
        parameters = {**({"decision": given} if tool == "submit_decision" else given), "conversation": "c-1"}
        (event,) = self._asked("invoke_tool", self._credentials, tool=tool, tool_parameters=parameters)
        if event["type"] == "error":
            return event["data"]["message"]
        return event["data"]["message"]["json_object"]

    def validated(self, url: str) -> dict[str, Any]:
        (event,) = self._asked("validate_tool_credentials", {CREDENTIAL: url})
        return event

    def _asked(self, action: str, credentials: dict[str, str], **more: object) -> list[dict[str, Any]]:
        data = {"type": "tool", "action": action, "provider": "memos", "credentials": credentials, **more}
        return self._process.request({"session": {"credential_type": "api-key", **data}})["session"]


@pytest.fixture(scope="module")
def process() -> Iterator[StdioPlugin]:
    with StdioPlugin(MEMO_TO_TASK, {}) as running:
        yield running


@pytest.fixture
def plugin(process: StdioPlugin, tmp_path: Path) -> Plugin:
    return Plugin(process, f"sqlite:///{tmp_path / 'tools.sqlite3'}")


MEMO = str(uuid4())
RULE = {"rule": "quick_action<=2min→PROGRESS", "quote": "Call Ms Sato"}


@pytest.mark.e2e
def test_a_memo_becomes_a_task_and_a_decision_which_is_all_that_the_last_tool_says(plugin: Plugin) -> None:
    service = MemoService(plugin.database)
    memo = str(service.add("Call Ms Sato").id)
    given = {"memo_id": memo, "memo_insights": ["One call"], "applied_rules": [RULE]}
    reasons = {"task_reasons": [{"title": "Call", "reasons": ["One call"]}]}

    assert "The decision was not stored: the memo is still in the inbox" in plugin.called("submit_decision", given)
    created = plugin.called("create_tasks", {"memo_id": memo, "tasks": [{"title": "Call", "route": "progress"}]})
    updated = plugin.called("update_memo_status", {"memo_id": memo, "status": "active"})
    decision = plugin.called("submit_decision", {**given, **reasons})

    (task,) = service.tasks(service.memos()[0].id)
    result = {"message": "Created: 'Call' (progress).", "created_task_ids": [str(task.id)]}
    assert created == {"status": "success", "result": result}
    result = {"message": "The memo is active now.", "memo_status": "active"}
    assert updated == {"status": "success", "result": result}
    assert decision == {
        "created_task_ids": [str(task.id)],
        "suggested_memo_status": "active",
        "decision_summary": {
            "memo_insights": ["One call"],
            "applied_rules": ["quick_action<=2min→PROGRESS"],
            "quotations": ["Call Ms Sato"],
            "mapping_reasons": [{"title": "Call", "route": "progress", "status": "progress", "reasons": ["One call"]}],
            "safety_notes": None,
            "confidence": None,
        },
    }
    assert [(step.tool, step.output["status"]) for step in steps_of(plugin.database, "c-1")] == [
        ("submit_decision", "error"),
        ("create_tasks", "success"),
        ("update_memo_status", "success"),
        ("submit_decision", "success"),
    ]


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("tool", "given", "message"),
    [
        ("create_tasks", {"tasks": [{"route": "progress"}]}, "tasks[1].title: Field required."),
        ("create_tasks", {"tasks": [{"title": "x", "route": "calendar"}]}, "the route calendar needs a due_date."),
        *(
            ("create_tasks", {"tasks": [{"title": "x", "due_date": day}]}, "tasks[1].due_date: Value error, should be")
            for day in ("next Friday", "2026-02-30", 1764806400)
        ),
        ("create_tasks", {"memo_id": 1, "tasks": [{"title": "x"}]}, "memo_id: UUID input should be a string"),
        ("create_tasks", {"tasks": [{"title": "x"}]}, f"There is no memo {MEMO}."),
        ("update_memo_status", {"status": "gone"}, "status: Input should be 'inbox', 'active', 'idea' or 'archive'"),
    ],
)
def test_what_is_invalid_is_refused_in_a_sentence(
    plugin: Plugin, tool: str, given: dict[str, Any], message: str
) -> None:
    said = plugin.called(tool, {"memo_id": MEMO, **given})

    sentence = said if isinstance(said, str) else said["result"]["message"]
    assert message in sentence
    assert isinstance(said, str) == (tool == "submit_decision")


@pytest.mark.e2e
def test_the_credential_is_tried_before_it_is_saved(plugin: Plugin, tmp_path: Path) -> None:
    assert plugin.validated(f"sqlite:///{tmp_path}/fine.sqlite3")["data"] == {"result": True}

    refused = plugin.validated(f"sqlite:///{tmp_path}/missing/tools.sqlite3")["data"]

    assert refused["error_type"] == "ToolProviderCredentialValidationError"
    assert "cannot be used: unable to open database file" in refused["message"]


def test_the_plugins_own_file_begins_with_the_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memos.database._PLUGIN_FOLDER", tmp_path)
    monkeypatch.delenv("MEMOS_DATABASE_URL", raising=False)

    assert len(MemoService(memo_database({})).memos()) == 6
    assert len(MemoService(memo_database({})).memos()) == 6
    monkeypatch.setenv("MEMOS_DATABASE_URL", f"sqlite:///{tmp_path}/chosen.sqlite3")
    assert MemoService(memo_database({})).memos() == []
