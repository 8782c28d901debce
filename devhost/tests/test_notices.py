"""What a person should know before a run, such as a tool that is left out: everywhere, and never within the answer."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from devhost.cli.commands import main
from devhost.trace.lines import read_trace
from support.page_reading import page_of
from support.plugins import CHARTS, PUPPET, TOOLBOX
from support.tracing import remove_files

pytestmark = pytest.mark.usefixtures("lent_plugins")

PLUGIN = ["--plugin", str(PUPPET), "--script", str(TOOLBOX / "script.yaml"), "--tools", str(TOOLBOX)]
NOTICE = "left out: tool export_table.project needs a valid value: project is empty: it needs a value"
"""With more behind it: how to set it."""


@pytest.fixture
def lacking(tmp_path: Path) -> list[str]:
    """The options for a plugin of two tools, of which one lacks a value."""
    directory = tmp_path / "charts"
    shutil.copytree(CHARTS, directory)
    file = directory / "tools" / "export_table.yaml"
    tool = yaml.safe_load(file.read_text())
    tool["parameters"].append({**tool["parameters"][0], "name": "project", "form": "form"})
    file.write_text(yaml.safe_dump(tool))
    return ["--tools", str(directory), "--credential", "charts.api_key=ck_live_1234567890"]


def words(text: str) -> str:
    return " ".join(text.split())


def test_the_terminal_trace_and_page_of_a_run_have_it(
    tmp_path: Path, lacking: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "run.jsonl"
    assert main(["run", *PLUGIN, *lacking, "--no-color", "--trace", str(trace)]) == 0
    said = capsys.readouterr()
    remove_files(said.out)
    assert main(["replay", str(trace), "--no-color"]) == 0
    replayed = capsys.readouterr().out

    for shown in (said.out, replayed):
        before, heading, answer = words(shown).partition("answer ──")
        assert NOTICE in before
        assert heading
        assert "left out" not in answer
    assert "left out" not in said.err
    (notice,) = read_trace(trace).notices
    assert notice.startswith(NOTICE)
    assert NOTICE in page_of(trace).text


def test_refused_credentials_still_print_json_and_the_trace_says_why_there_is_no_run(
    tmp_path: Path, lacking: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "run.jsonl"
    wrong = ["--credential", "charts.api_key=wrong_key_123", "--json", "--trace", str(trace)]
    assert main(["run", *PLUGIN, *lacking, *wrong]) == 2
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert report["error"]["kind"] == "SetupError"
    assert report["error"]["message"] == "charts refuses its credentials: 401 Unauthorized: invalid API key [secret]"
    (notice,) = report["notices"]
    assert notice.startswith(NOTICE)

    reason = f"not started: {report['error']['message']}"
    assert read_trace(trace).notices == (notice, reason)
    assert main(["replay", str(trace), "--no-color"]) == 0
    replayed = words(capsys.readouterr().out)
    for notice in (NOTICE, reason):
        assert notice in page_of(trace).text
        assert notice in replayed
    assert "wrong_key_123" not in said.out + said.err + trace.read_text()


def test_a_value_that_the_panel_would_not_hold_is_told_and_sent(capsys: pytest.CaptureFixture[str]) -> None:
    odd = ["--param", "loud=maybe", "--param", "rounds=12", "--set", "repeat.times=0"]
    assert main(["run", *PLUGIN, *odd, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notices"] == [
        "rounds is more than 9, its maximum in Dify's panel",
        "loud is neither true nor false: Dify sends true",
        "repeat.times is less than 1, its minimum in Dify's panel",
    ]
