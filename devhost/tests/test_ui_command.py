"""What `devhost ui` refuses before it opens a port."""

from pathlib import Path

import pytest

from devhost.cli.commands import main


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--plugin", "/nowhere"], "/nowhere is not a plugin: manifest.yaml is missing"),
        (["--runs", ""], "--runs: name a folder"),
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


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder in which not even root can write")
def test_a_folder_in_which_no_run_can_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ui", "--no-open", "--runs", "/proc/self"]) == 2
    assert "--runs /proc/self: no run can be written there" in capsys.readouterr().err
