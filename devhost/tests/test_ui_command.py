"""What `devhost ui` refuses before it opens a port."""

from pathlib import Path

import pytest

from devhost.cli.commands import main


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--plugin", "/nowhere"], "/nowhere is not a plugin: manifest.yaml is missing"),
        (["--runs", "/dev/null/runs"], "--runs /dev/null/runs: no run can be written there: Not a directory"),
    ],
)
def test_a_folder_that_cannot_be_used(
    given: list[str], sentence: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["ui", "--no-open", *given]) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
