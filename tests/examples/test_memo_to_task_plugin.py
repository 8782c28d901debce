"""The plugin memo_to_task: its layers, what it declares, and its tools in a process of their own."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import memos
import pytest
import yaml
from memos.opening import memo_database
from memos.services.memos import MemoApplicationService
from memos.services.tasks import TaskApplicationService
from memos.values.schemas import DecisionSummary, MappingReason, MemoUpdate, Submission, TaskInput
from memos.values.status import MemoStatus
from pydantic import BaseModel
from tool_layer.address import CREDENTIAL
from tool_layer.database import Database
from tool_layer.run_steps import steps_of

from support.imports import imported

from .conftest import MEMO_TO_TASK
from .layers import used_by, wrong_directions
from .stdio_plugin import StdioPlugin
from .visible_texts import check_languages

ORDER = re.findall(r"\w+", re.findall(r"`(values → [^`]+)`", memos.__doc__ or "")[0])
TOOLS = ("create_tasks", "update_memo_status", "submit_decision")
DESCRIBED: dict[str, tuple[str, tuple[type[BaseModel], ...]]] = {
    "create_tasks": ("tasks", (TaskInput,)),
    "submit_decision": ("decision", (Submission, DecisionSummary, MappingReason)),
}
"""By tool, the parameter that is nested, and what its description has to name: Dify hands no `input_schema` on."""


def test_every_part_imports_only_those_before_it() -> None:
    folder = MEMO_TO_TASK / "memos"

    parts = {path.stem for path in folder.iterdir() if path.stem not in {"__init__", "__pycache__"}}
    assert set(ORDER) == parts
    assert list(wrong_directions(folder, ORDER)) == []


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_knows_no_repository_and_no_session(tool: str) -> None:
    names = imported(MEMO_TO_TASK / "tools" / f"{tool}.py")

    assert [name for name in names if name.startswith(("sqlalchemy", "tool_layer.database"))] == []
    assert {name.split(".")[1] for name in names if name.startswith("memos.")} == {"tool_base", "values"}


@pytest.mark.parametrize("package", ["services", "tool_base.py", "opening.py"])
def test_only_services_know_repositories(package: str) -> None:
    path = MEMO_TO_TASK / "memos" / package
    names = used_by(path) if path.is_dir() else imported(path)

    assert ("memos.storage.repositories" in names) == (package == "services")


def test_values_know_no_database_and_only_the_base_of_the_tools_knows_dify() -> None:
    folder = MEMO_TO_TASK / "memos"

    assert {name.split(".")[0] for name in used_by(folder / "values")} & {"sqlalchemy", "alembic"} == set()
    knowing = {"dify_plugin", "tool_layer.recorded_tool"}
    assert [file.name for file in folder.rglob("*.py") if imported(file) & knowing] == ["tool_base.py"]


@pytest.mark.parametrize("tool", TOOLS)
def test_the_model_reads_the_shape_of_what_it_sends_in_the_descriptions(tool: str) -> None:
    declared = yaml.safe_load((MEMO_TO_TASK / "tools" / f"{tool}.yaml").read_text(encoding="utf-8"))["parameters"]
    *taken, conversation = declared

    assert (conversation["name"], conversation["form"], conversation["type"]) == ("conversation", "form", "string")
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


@pytest.mark.parametrize("file", sorted(MEMO_TO_TASK.glob("*/*.yaml")), ids=lambda file: file.name)
def test_visible_texts_are_in_all_languages(file: Path) -> None:
    if file.parent.name != "scenarios":
        check_languages(file)


class Plugin:
    def __init__(self, process: StdioPlugin, url: str) -> None:
        self._process = process
        self._credentials = {CREDENTIAL: url}

    @property
    def database(self) -> Database:
        return memo_database(self._credentials)

    def called(self, tool: str, given: object, conversation: str = "c-1") -> dict[str, Any]:
        nested = {"decision": given} if tool == "submit_decision" else given
        assert isinstance(nested, dict)
        parameters = {**nested, "conversation": conversation}
        (event,) = self._asked("invoke_tool", self._credentials, tool=tool, tool_parameters=parameters)
        assert event["type"] == "stream", event
        result: dict[str, Any] = event["data"]["message"]["json_object"]
        assert result.pop("stored_in") == "the SQLite file tools.sqlite3"
        return result

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


CALL = {"title": "Call", "route": "progress"}


@pytest.mark.e2e
def test_a_memo_becomes_a_task_and_a_decision(plugin: Plugin) -> None:
    MemoApplicationService(plugin.database).add("Call Ms Sato")
    decision = {
        "memo_id": 1,
        "created_task_ids": [1],
        "suggested_memo_status": "active",
        "decision_summary": {
            "memo_insights": ["One call"],
            "applied_rules": ["quick_action<=2min→PROGRESS"],
            "mapping_reasons": [{"title": "Call", "route": "progress", "status": "progress", "reasons": ["One call"]}],
            "safety_notes": None,
            "confidence": None,
        },
    }

    assert plugin.called("submit_decision", decision) == {
        "status": "error",
        "result": {
            "message": (
                "The decision was not stored: there is no task 1: use the ids that create_tasks returned; "
                "the memo 1 has the status inbox, not active: call update_memo_status first; "
                "mapping_reasons has 'Call', which is not the title of a created task."
            )
        },
    }
    assert plugin.called("create_tasks", {"memo_id": 1, "tasks": [CALL]}) == {
        "status": "success",
        "result": {"message": "Created: 1 (progress).", "created_task_ids": [1]},
    }
    assert plugin.called("update_memo_status", {"memo_id": 1, "status": "active"}) == {
        "status": "success",
        "result": {"message": "The memo 1 is active now.", "memo_id": 1, "memo_status": "active"},
    }
    assert plugin.called("submit_decision", decision)["result"]["created_task_ids"] == [1]
    stored = MemoApplicationService(plugin.database).decision(1)
    assert stored is not None
    assert {"memo_id": 1, **stored.payload.model_dump(mode="json")} == decision
    steps = steps_of(plugin.database, "c-1")
    assert [(step.tool, step.output["status"]) for step in steps] == [
        ("submit_decision", "error"),
        ("create_tasks", "success"),
        ("update_memo_status", "success"),
        ("submit_decision", "success"),
    ]
    assert steps[1].input == {"memo_id": 1, "tasks": [CALL]}


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("tool", "given", "message"),
    [
        (
            "create_tasks",
            {"memo_id": 1, "tasks": [{"route": "progress"}]},
            "Invalid parameters for create_tasks: tasks[1].title: Field required.",
        ),
        (
            "create_tasks",
            {"memo_id": 1, "tasks": []},
            "Invalid parameters for create_tasks: tasks: List should have at least 1 item",
        ),
        ("create_tasks", {"memo_id": 1}, "Invalid parameters for create_tasks: tasks: Field required."),
        (
            "create_tasks",
            {"memo_id": 1, "tasks": [CALL, {**CALL, "route": "calendar"}]},
            "Invalid parameters for create_tasks: tasks[2]: Value error, the route calendar needs a due_date.",
        ),
        ("create_tasks", {"memo_id": 1, "tasks": [CALL]}, "There is no memo 1."),
        ("submit_decision", "[{", "Invalid JSON for submit_decision: "),
        ("update_memo_status", {"memo_id": 1, "status": "gone"}, "Invalid parameters for update_memo_status: status: "),
        ("update_memo_status", {"memo_id": 1, "status": "idea"}, "There is no memo 1."),
        ("submit_decision", {"memo_id": 2**40}, "Invalid parameters for submit_decision: created_task_ids: Field"),
    ],
)
def test_what_is_invalid_is_refused_and_nothing_is_stored(
    plugin: Plugin, tool: str, given: object, message: str
) -> None:
    answer = plugin.called(tool, given)

    assert answer["status"] == "error"
    assert answer["result"]["message"].startswith(message)
    assert TaskApplicationService(plugin.database).tasks() == []


@pytest.mark.e2e
def test_the_credential_is_tried_before_it_is_saved(plugin: Plugin, tmp_path: Path) -> None:
    assert plugin.validated(f"sqlite:///{tmp_path}/fine.sqlite3")["data"] == {"result": True}

    refused = plugin.validated(f"sqlite:///{tmp_path}/missing/tools.sqlite3")["data"]

    assert refused["error_type"] == "ToolProviderCredentialValidationError"
    assert "cannot be used: unable to open database file" in refused["message"]


def test_the_plugins_own_file_begins_with_the_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memos.opening._PLUGIN_FOLDER", tmp_path)
    monkeypatch.delenv("MEMOS_DATABASE_URL", raising=False)

    assert len(MemoApplicationService(memo_database({})).memos()) == 6
    assert len(MemoApplicationService(memo_database({})).memos()) == 6
    monkeypatch.setenv("MEMOS_DATABASE_URL", f"sqlite:///{tmp_path}/chosen.sqlite3")
    assert MemoApplicationService(memo_database({})).memos() == []
