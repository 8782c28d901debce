"""The flows that `devhost init flow` writes and that devhost/docs/flows.md shows play at once."""

import re
from pathlib import Path

import pytest
import yaml

from devhost.cli.commands import main
from tests.support.documented_commands import shown_commands
from tests.support.pages import ROOT


@pytest.mark.parametrize("own", [True, False], ids=["a new strategy", "this repository's strategy"])
def test_a_new_flow_plays(*, own: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    strategy = tmp_path / "mine" if own else ROOT
    flow = tmp_path / "flow"
    if own:
        assert main(["init", "strategy", "mine", "--folder", str(strategy)]) == 0
    plugin = ["--plugin", str(strategy)]
    assert main(["init", "flow", "new", "--folder", str(flow), *plugin]) == 0

    assert main(["flow", "--script", str(flow / "script.yaml"), *plugin]) == 0
    assert "Published: Rain on new leaves." in capsys.readouterr().out
    case = flow / "case.yaml"
    assert main(["eval", str(case), *plugin]) == 0

    said = yaml.safe_load(case.read_text("utf-8"))
    said["answers"] = {"form": "no", "form.reason": "dull"}
    case.write_text(yaml.safe_dump(said), "utf-8")
    assert main(["eval", str(case), *plugin]) == 1


TOOLS = ["--tools", str(ROOT / "examples" / "injection")]


@pytest.mark.parametrize("approval", ["chat", "form", "none"])
def test_a_new_flow_for_tools_that_there_are_plays(
    approval: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = tmp_path / "desk"
    plugin = ["--plugin", str(ROOT)]
    assert main(["init", "flow", "desk", "--folder", str(flow), *plugin, *TOOLS, "--approval", approval]) == 0
    capsys.readouterr()

    assert main(["check", str(flow / "desk.yml"), *plugin]) == 0
    assert "nothing was found that Dify's editor or engine refuses" in capsys.readouterr().out
    assert main(["eval", str(flow / "case.yaml"), *plugin]) == 0


@pytest.mark.parametrize("approval", ["chat", "form"])
def test_a_call_of_a_new_flow_waits_and_runs_once_after_a_yes(approval: str, tmp_path: Path) -> None:
    flow = tmp_path / "desk"
    plugin = ["--plugin", str(ROOT)]
    ask = ["--approval", approval, "--ask", "search_documents"]
    assert main(["init", "flow", "desk", "--folder", str(flow), *plugin, *TOOLS, *ask]) == 0

    script = yaml.safe_load((flow / "script.yaml").read_text("utf-8"))
    waits = {"agent": {"calls": {"exactly": []}, "outputs": {"stop_reason": "approval_required"}}}
    runs = {"calls": {"exactly": ["search_documents"]}, "outputs": {"stop_reason": "answered"}}
    if approval == "form":
        script["answers"] = {"form": "yes"}
        script["expect"] = {"answer": "It is done.", "nodes": {**waits, "agent_again": runs}}
    else:
        script["expect"] = {"nodes": waits}
        script["then"][0]["expect"] = {"nodes": {"agent": runs}}
        script["then"][1]["expect"] = {"nodes": {"agent": {"calls": {"exactly": []}}}}
    (flow / "script.yaml").write_text(yaml.safe_dump(script), "utf-8")

    assert main(["flow", "--script", str(flow / "script.yaml"), *plugin]) == 0


def test_another_answer_to_the_form_of_a_new_flow_is_another_answer_to_the_user(tmp_path: Path) -> None:
    flow = tmp_path / "desk"
    plugin = ["--plugin", str(ROOT)]
    assert main(["init", "flow", "desk", "--folder", str(flow), *plugin, *TOOLS, "--approval", "form"]) == 0
    script = yaml.safe_load((flow / "script.yaml").read_text("utf-8"))
    script["answers"] = {"form": "no"}
    script["expect"] = {"answer": "Then I leave it."}
    (flow / "script.yaml").write_text(yaml.safe_dump(script), "utf-8")

    assert main(["flow", "--script", str(flow / "script.yaml"), *plugin]) == 0


PAGE = (ROOT / "devhost" / "docs" / "flows.md").read_text(encoding="utf-8")
SCRIPT, CASE = re.findall(r"^```yaml\n(?=# answers\.yaml|flow:)(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
PLAYED = next(command for command in shown_commands(PAGE) if "--script answers.yaml" in command.line)


@pytest.mark.parametrize("script", [SCRIPT, CASE], ids=["a question", "a case"])
def test_the_flow_of_the_page_plays(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "answers.yaml"
    file.write_text(script.replace("../", f"{ROOT}/examples/workflows/"), encoding="utf-8")
    monkeypatch.chdir(ROOT)
    given = [str(file) if word == "answers.yaml" else word for word in PLAYED.devhost or ()]

    assert main(["flow", "--script", str(file)] if script is CASE else given) == 0
    assert re.findall(r"\btext: ([\w ]+)", script)[-1] in capsys.readouterr().out
