"""`make test` runs every step, and fails if any does, those beside it too.

The interpreter is a small program that notes how it is called and fails as it is told.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHELL = shutil.which("sh") or "/bin/sh"

PYTHON = """#!{shell}
if [ "$1" = -c ]; then
    exec "{python}" "$@"
fi
echo "$*" >>"{log}"
case "$*" in
    *"{failing}"*) {wait}; echo "something is wrong"; exit 3 ;;
esac
"""
BESIDE = """import sys, time
def note(said):
    with open({log!r}, "a") as log:
        log.write(said + "\\n")
note("-m pytest " + " ".join(sys.argv[1:]))
if {is_stuck}:
    try:
        note("stuck")
        time.sleep(60)
    except KeyboardInterrupt:
        note("interrupted")
        raise SystemExit(2)
if {failing!r} in "-m pytest " + " ".join(sys.argv[1:]):
    raise SystemExit("something is wrong")
"""
"""What the real interpreter runs as pytest, in the place of the tests beside."""
NOTHING = "no call has this"


class Project:
    """The script, in a project of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.log = home / "calls"
        (home / "scripts").mkdir()
        (home / "examples" / "one").mkdir(parents=True)
        (home / ".venv" / "bin").mkdir(parents=True)
        self.script = Path(shutil.copy(ROOT / "scripts" / "test", home / "scripts" / "test"))

    def run(self, *steps: str, failing: str = NOTHING, is_stuck: bool = False) -> tuple[int, str]:
        """Exit code, and what was said."""
        python = self.home / ".venv" / "bin" / "python"
        wait = f"until grep -q stuck {self.log}; do sleep 0.05; done" if is_stuck else ":"
        written = PYTHON.format(shell=SHELL, log=self.log, failing=failing, python=sys.executable, wait=wait)
        python.write_text(written, encoding="utf-8")
        python.chmod(0o755)
        beside = BESIDE.format(log=str(self.log), is_stuck=is_stuck, failing=failing)
        (self.home / "pytest.py").write_text(beside, encoding="utf-8")
        done = subprocess.run(
            [SHELL, self.script, *steps], check=False, capture_output=True, text=True, timeout=60, cwd=self.home
        )
        return done.returncode, done.stdout + done.stderr

    @property
    def calls(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_without_a_step_all_of_them_run(project: Project) -> None:
    code, said = project.run()

    assert code == 0
    assert [line for line in said.splitlines() if line.startswith("==")] == [
        *("== format", "== lint", "== types", "== unit", "== heavy"),
        "== e2e",
    ]
    assert "-m pytest -m e2e" in project.calls
    assert any("-m pytest -m not e2e and not heavy --cov" in call for call in project.calls)
    assert len([call for call in project.calls if call.startswith("-m mypy")]) == 2


@pytest.mark.parametrize(
    "failing", ["ruff format", "ruff check", "mypy .", "cache-dir", "not heavy --cov", "-m heavy", "-m e2e"]
)
def test_whatever_fails_fails_the_gate(project: Project, failing: str) -> None:
    code, said = project.run(failing=failing)

    assert code != 0
    assert "something is wrong" in said


def test_a_step_that_fails_ends_what_runs_beside_it(project: Project) -> None:
    code, _ = project.run(failing="ruff format", is_stuck=True)

    assert code != 0
    assert "interrupted" in project.calls
    assert not [call for call in project.calls if "ruff check" in call]


@pytest.mark.parametrize("step", ["format", "lint", "types", "unit", "heavy", "e2e"])
def test_a_step_runs_alone(project: Project, step: str) -> None:
    code, said = project.run(step)

    assert code == 0
    assert [line for line in said.splitlines() if line.startswith("==")] == [f"== {step}"]
    assert ("-m pytest -m e2e" in project.calls) == (step == "e2e")


def test_a_step_that_does_not_exist_is_answered_with_those_that_do(project: Project) -> None:
    code, said = project.run("lint", "unitt")

    assert code == 2
    assert "there is no step 'unitt'; the steps are: format lint types unit heavy e2e" in said
    assert project.calls == []
