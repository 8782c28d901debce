"""`make test` runs every step, fails if any of them does, and says last what failed.

The interpreter is a small program that notes how it is called and fails as it is told; only the last tests run pytest.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parent.parent
SHELL = shutil.which("sh") or "/bin/sh"
GATE = ("format", "lint", "types", "tests")
STEPS = (
    *GATE,
    "quick",
    "branches",
    "properties",
    "processes",
    "examples",
    "compat",
    "browser",
    "package",
    "wheel",
    "flows",
)

PYTHON = """#!{shell}
if [ "$1" = -c ]; then
    exec "{python}" "$@"
fi
echo "$*" >>"{log}"
case "$*" in
    *"{failing}"*) echo "something is wrong"; exit 3 ;;
esac
"""
SHARED = """import sys
called = " ".join(["-m", __spec__.name, *sys.argv[1:]])
with open({log!r}, "a") as log:
    log.write(called + "\\n")
if {failing!r} in called:
    raise SystemExit("something is wrong")
"""
"""What the real interpreter runs as pytest and coverage, in the two processes that share the tests."""
NOTHING = "no call has this"


class Project:
    """The script, in a project of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.log = home / "calls"
        (home / "scripts").mkdir()
        for example in ("plugin", "workflows"):
            (home / "examples" / example).mkdir(parents=True)
        (home / "examples" / "plugin" / "main.py").touch()
        for environment in (".venv", ".venv-flow"):
            (home / environment / "bin").mkdir(parents=True)
        for folder in ("devhost/src/devhost/flow", "tests/flows"):
            (home / folder).mkdir(parents=True)
            (home / folder / "module.py").touch()
        setup = home / "scripts" / "setup"
        setup.write_text("#!/bin/sh\n", encoding="utf-8")
        setup.chmod(0o755)
        self.script = Path(shutil.copy(ROOT / "scripts" / "test", home / "scripts" / "test"))

    def run(self, *steps: str, failing: str = NOTHING) -> tuple[int, str]:
        """Exit code, and what was said; a call that contains ``failing`` fails."""
        self.write_python(PYTHON.format(shell=SHELL, log=self.log, failing=failing, python=sys.executable))
        shared = SHARED.format(log=str(self.log), failing=failing)
        for module in ("pytest", "coverage"):
            (self.home / f"{module}.py").write_text(shared, encoding="utf-8")
        return self.call(*steps)

    def run_pytest(self, tests: dict[str, str]) -> tuple[int, str]:
        """Exit code and output of the step ``quick`` with the real pytest over these files of unit tests."""
        self.write_python(f'#!{SHELL}\n[ "$2" = mypy ] || exec "{sys.executable}" "$@"\n')
        (self.home / "tests" / "support").mkdir(parents=True)
        shutil.copy(ROOT / "pyproject.toml", self.home)
        shutil.copy(ROOT / "tests" / "support" / "both_ends.py", self.home / "tests" / "support")
        for folder in ("unit", "agent"):
            (self.home / "tests" / folder).mkdir()
        for name in ("test_declarations.py", "test_architecture.py", "test_lines.py"):
            (self.home / "tests" / name).touch()
        for name, source in tests.items():
            (self.home / "tests" / "unit" / name).write_text(source.format(log=str(self.log)), encoding="utf-8")
        return self.call("quick")

    def write_python(self, program: str) -> None:
        for environment in (".venv", ".venv-flow"):
            python = self.home / environment / "bin" / "python"
            python.write_text(program, encoding="utf-8")
            python.chmod(0o755)

    def call(self, *steps: str) -> tuple[int, str]:
        done = subprocess.run(
            [SHELL, self.script, *steps], check=False, capture_output=True, text=True, timeout=600, cwd=self.home
        )
        return done.returncode, done.stdout + done.stderr

    @property
    def calls(self) -> list[str]:
        if self.log.exists():
            return self.log.read_text(encoding="utf-8").splitlines()
        return []


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def banners(said: str) -> list[str]:
    """Each step as it begins, and what is said at the end of all of them, without the times."""
    return [re.sub(r"^== | in \d+ min \d+ s| \d+ s\b", "", line) for line in said.splitlines() if line.startswith("==")]


def test_without_a_step_the_gate_runs(project: Project) -> None:
    code, said = project.run()

    assert code == 0
    assert banners(said) == [*GATE, f"passed: {', '.join(GATE)}, coverage"]
    last = said.splitlines()[-1]
    assert re.fullmatch(r"== passed in \d+ min \d+ s: (\w+ \d+ s, ){4}coverage \d+ s", last)
    assert len([call for call in project.calls if call.startswith("-m mypy")]) == 3
    assert any(call.startswith("-m coverage report") for call in project.calls)


@pytest.mark.parametrize(
    "failing",
    [
        *("ruff format", "ruff check", "mypy .", "mypy -m", "cache-dir"),
        *("--end front", "--end back", "coverage combine", "coverage report"),
    ],
)
def test_whatever_fails_fails_the_gate(project: Project, failing: str) -> None:
    code, said = project.run(failing=failing)

    assert code != 0
    assert said.strip().splitlines()[-1] == "something is wrong"
    assert "passed" not in said


@pytest.mark.parametrize("step", STEPS)
def test_a_step_runs_alone(project: Project, step: str) -> None:
    code, said = project.run(step)

    assert code == 0
    parts = ["flow_types", "tests"] if step == "flows" else []
    measured = ", coverage" if step in {"tests", "branches"} else ""
    assert banners(said) == [step, *parts, f"passed: {step}{measured}"]


def test_an_unknown_step_is_answered_with_the_steps(project: Project) -> None:
    code, said = project.run("lint", "unitt")

    assert code == 2
    assert f"unknown step 'unitt'; the steps are: {' '.join(STEPS)}" in said
    assert project.calls == []


def test_of_shared_tests_each_runs_once_and_what_failed_is_said_last(project: Project) -> None:
    note = "def test_it():\n    with open({log!r}, 'a') as log:\n        log.write(__name__ + '\\n')\n"
    files = {f"test_{letter}.py": note + ("    assert False\n" if letter in "bf" else "") for letter in "abcdefgh"}

    code, said = project.run_pytest(files)

    assert code == 1
    assert sorted(call.rpartition(".")[2] for call in project.calls) == [name.removesuffix(".py") for name in files]
    last = said.splitlines()[-3:]
    assert last[0] == "== failed"
    assert sorted(last[1:]) == [f"tests/unit/test_{letter}.py::test_it" for letter in "bf"]
