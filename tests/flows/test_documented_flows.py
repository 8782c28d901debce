"""The flow that devhost/docs/flows.md plays, with each script that it shows for it."""

import re
from pathlib import Path

import pytest

from devhost.cli.commands import main
from tests.support.documented_commands import shown_commands
from tests.support.pages import ROOT

PAGE = (ROOT / "devhost" / "docs" / "flows.md").read_text(encoding="utf-8")
SCRIPTS = re.findall(r"^```yaml\n# answers\.yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
PLAYED = next(command for command in shown_commands(PAGE) if "--script answers.yaml" in command.line)


@pytest.mark.parametrize("script", SCRIPTS, ids=["a question", "a conversation"])
def test_the_flow_of_the_page_plays(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "answers.yaml").write_text(script, encoding="utf-8")
    monkeypatch.chdir(ROOT)
    given = [str(tmp_path / word) if word == "answers.yaml" else word for word in PLAYED.devhost or ()]

    assert main(given) == 0
    last = re.findall(r"- text: (.*)", script)[-1]
    assert last in capsys.readouterr().out
