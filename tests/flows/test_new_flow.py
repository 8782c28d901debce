"""`devhost init flow` writes a chatflow, a script and a case that play at once, with any strategy that calls tools."""

from pathlib import Path

import pytest
import yaml

from devhost.cli.commands import main
from tests.flows.playing import ROOT


@pytest.mark.parametrize("own", [True, False], ids=["a new strategy", "this repository's strategy"])
def test_a_new_flow_plays(*, own: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    strategy, flow = tmp_path / "mine" if own else ROOT, tmp_path / "flow"
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
