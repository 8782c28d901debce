"""`make demo` and `make test` from a fresh clone: which Python they use, and when they make .venv again.

The interpreters are small programs that answer as Python would; no package is installed.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parent.parent
SHELL = shutil.which("sh") or "/bin/sh"
REAL = Path(sys._base_executable)  # type: ignore[attr-defined] # the Python beneath .venv; typeshed leaves it out
TOOLS = ("cat", "cksum", "cp", "dirname", "mkdir", "rm", "sleep", "sh")


class Machine:
    """A home directory and two folders on PATH."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.first = home / "first bin"
        self.second = home / "second bin"
        self.pyenv = home / ".pyenv" / "versions"

    def start(self, script: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [SHELL, script, *arguments],
            env={"PATH": f"{self.first}:{self.second}", "HOME": str(self.home), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, script: Path, *arguments: str, **environment: str) -> tuple[int, list[str], str]:
        """Exit code, lines on stdout, stderr."""
        process = self.start(script, *arguments, **environment)
        stdout, stderr = process.communicate(timeout=300)
        return process.returncode, stdout.splitlines(), stderr


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "a home")


def program(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{SHELL}\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def shim(path: Path) -> Path:
    """What pyenv leaves on PATH for a version that is installed but not chosen."""
    return program(path, 'echo "pyenv: $0: command not found" >&2\nexit 127')


def python(path: Path, version: tuple[int, int], *, lacks: tuple[str, ...] = ()) -> Path:
    """A real Python that runs the real probe, and reports another version."""
    disguise = (
        f"import sys; sys.version_info = {version}; sys._base_executable = '{path}'; "
        f"sys.modules.update(dict.fromkeys({list(lacks)})); exec(sys.argv[1])"
    )
    return program(path, f'exec "{REAL}" -c "{disguise}" "$2"')


# --- scripts/find-python ---------------------------------------------------------------------------------------------

FIND = ROOT / "scripts" / "find-python"


def test_python_3_12_is_preferred_to_newer_ones_and_a_failing_shim_hides_none(machine: Machine) -> None:
    for name in ("python3.12", "python3", "python"):
        shim(machine.first / name)
    newest = python(machine.first / "python3.14", (3, 14))
    newer = python(machine.second / "python3", (3, 13))
    best = python(machine.second / "python3.12", (3, 12))
    of_pyenv = python(machine.pyenv / "3.13.4" / "bin" / "python", (3, 13))

    code, found, errors = machine.run(FIND)

    assert (code, found[0], errors) == (0, str(best), "")
    assert set(found[1:]) == {str(path) for path in (newest, newer, of_pyenv)}


def test_the_requested_python_comes_first_by_its_path_or_its_name_on_path(machine: Machine) -> None:
    best = python(machine.first / "python3.12", (3, 12))
    asked = python(machine.second / "mypython", (3, 14))
    for name in (str(asked), "mypython"):
        assert machine.run(FIND, PYTHON=name) == (0, [str(asked), str(best)], "")

    code, found, errors = machine.run(FIND, PYTHON=str(machine.home / "no such python"))
    assert (code, found) == (0, [str(best)])
    assert "the interpreter in PYTHON is not usable" in errors
    assert "no such python: it does not run" in errors


UNUSABLE: dict[str, tuple[Callable[[Path], Path], str]] = {
    "too old": (lambda path: python(path, (3, 11)), "{}: it is Python 3.11"),
    "a shim": (shim, "{}: it does not run"),
    "without venv": (lambda path: python(path, (3, 12), lacks=("venv",)), "{}: it lacks the module venv or ensurepip"),
    "without pip": (lambda path: python(path, (3, 12), lacks=("ensurepip",)), "apt-get install python3-venv"),
    "another program": (lambda path: program(path, "echo hello"), "{}: it does not answer as Python does"),
}


@pytest.mark.parametrize(("put", "sentence"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_python_that_cannot_be_used_is_named(machine: Machine, put: Callable[[Path], Path], sentence: str) -> None:
    path = put(machine.first / "python3")
    program(machine.first / "uv", "exit 2")
    code, found, errors = machine.run(FIND)
    assert (code, found) == (1, [])
    assert "No Python 3.12 or newer was found." in errors
    assert sentence.format(path) in errors


def test_without_any_python_the_places_that_were_searched_are_named(machine: Machine) -> None:
    code, found, errors = machine.run(FIND)
    assert (code, found) == (1, [])
    for place in ("PYTHON", "python3.12", "on PATH", str(machine.pyenv), "uv"):
        assert place in errors
    assert "Not usable" not in errors


# --- scripts/setup ---------------------------------------------------------------------------------------------------


class Checkout:
    """A copy of what scripts/setup needs, at a path with spaces, on a machine with a stand-in for Python 3.12."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.root = machine.home / "my check out"
        self.venv = self.root / ".venv"
        self.installs = machine.home / "installs"
        (self.root / "scripts").mkdir(parents=True)
        machine.second.mkdir(parents=True)
        for script in ("setup", "find-python"):
            shutil.copy(ROOT / "scripts" / script, self.root / "scripts")
        (self.root / "devhost").mkdir()
        for name in ("requirements.txt", "requirements-dev.txt", "requirements-flow.txt", "devhost/pyproject.toml"):
            (self.root / name).write_text("rich==15.0.0\n", encoding="utf-8")
        for tool in TOOLS:
            (machine.second / tool).symlink_to(shutil.which(tool) or tool)

    def python(self, path: Path, *, venv: str = "", pip: str = "", install: str = "", version: str = "") -> Path:
        """A program that answers the probe, copies itself as an environment's python, and notes what pip installs.

        Each argument is shell code to run first, in the step that it names.
        """
        return program(
            path,
            f"""
            case "$1 $2" in
                "-m venv") {venv or ":"}; mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
                "-m pip") case $3 in
                    --version) {pip or ":"} ;;
                    *) {install or ":"}; echo "$*" >>"{self.installs}" ;;
                esac ;;
                *_base_executable*) echo "3.12 $0" ;;
                *"sys.version_info <"*) {version or ":"} ;;
                *) echo "3.12.0 (a stand-in)" ;;
            esac
            """,
        )

    def setup(self, *arguments: str) -> tuple[int, str]:
        """Exit code and what a person reads."""
        code, output, errors = self.machine.run(self.root / "scripts" / "setup", *arguments)
        assert output == []
        assert not list(self.root.glob(".venv*.lock"))
        return code, errors

    def installed(self) -> int:
        if self.installs.exists():
            return len(self.installs.read_text().splitlines())
        return 0


@pytest.fixture
def checkout(machine: Machine) -> Checkout:
    return Checkout(machine)


@pytest.fixture
def made(checkout: Checkout) -> Checkout:
    """A checkout with a finished .venv, and a file in it that disappears when .venv is made again."""
    checkout.python(checkout.machine.first / "python3.12")
    assert checkout.setup()[0] == 0
    (checkout.venv / "mark").touch()
    return checkout


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt", "devhost/pyproject.toml"])
def test_changed_requirements_are_installed_into_the_same_environment(made: Checkout, name: str) -> None:
    (made.root / name).write_text("rich==15.0.1\n", encoding="utf-8")
    assert made.setup()[0] == 0
    assert made.installed() == 2
    assert (made.venv / "mark").exists()


def fails_to_install(made: Checkout) -> None:
    made.python(made.venv / "bin" / "python", install="echo no network >&2; exit 1")
    (made.root / "requirements.txt").write_text("rich==15.0.1\n", encoding="utf-8")
    code, said = made.setup()
    assert code != 0
    assert "no network" in said


def loses_its_python(made: Checkout) -> None:
    (made.venv / "bin" / "python").unlink()
    (made.venv / "bin" / "python").symlink_to(made.machine.home / "gone")


def loses_pip(made: Checkout) -> None:
    made.python(made.venv / "bin" / "python", pip="exit 1")
    (made.venv / ".setup-stamp").unlink()


def moves(made: Checkout) -> None:
    elsewhere = made.machine.home / "elsewhere"
    made.root.rename(elsewhere)
    made.root = elsewhere
    made.venv = elsewhere / ".venv"


@pytest.mark.parametrize("spoil", [fails_to_install, loses_its_python, loses_pip, moves])
def test_an_environment_that_cannot_be_used_is_made_again(made: Checkout, spoil: Callable[[Checkout], None]) -> None:
    spoil(made)
    assert made.setup()[0] == 0
    assert not (made.venv / "mark").exists()
    assert made.setup() == (0, "")


def test_uv_makes_the_environment_when_no_python_can(checkout: Checkout) -> None:
    model = checkout.python(checkout.machine.home / "model")
    program(
        checkout.machine.first / "uv",
        f'[ "$1" = venv ] || exit 2\nfor place; do :; done\nmkdir -p "$place/bin" && cp "{model}" "$place/bin/python"',
    )
    code, said = checkout.setup()
    assert code == 0
    assert "making .venv with uv" in said
    assert checkout.setup() == (0, "")


@pytest.mark.parametrize(
    ("uv", "settings", "by"),
    [
        ('echo "uv $*" >>"{installs}"', "", ["uv pip install"]),
        ('echo "uv $*" >>"{installs}"; exit 2', "", ["uv pip install", "-m pip install"]),
        ('echo "uv $*" >>"{installs}"', "global.index-url='https://packages.example/simple'", ["-m pip install"]),
    ],
    ids=["uv", "uv fails", "pip has a package index"],
)
def test_uv_installs_the_packages_unless_it_fails_or_pip_has_settings_of_its_own(
    checkout: Checkout, uv: str, settings: str, by: list[str]
) -> None:
    pip = f'[ "$3 $4" != "config list" ] || {{ echo "{settings}"; exit 0; }}'
    checkout.python(checkout.machine.first / "python3.12", install=pip)
    program(checkout.machine.first / "uv", uv.format(installs=checkout.installs))

    assert checkout.setup()[0] == 0

    lines = checkout.installs.read_text().splitlines()
    assert [line.partition(" -qq")[0].partition(" --quiet")[0] for line in lines] == by
    assert checkout.setup() == (0, "")


def test_when_nothing_works_it_says_what_was_tried_and_how_to_get_a_python(checkout: Checkout) -> None:
    checkout.python(checkout.machine.first / "python3.12", venv="echo ensurepip is missing; exit 1")
    program(checkout.machine.first / "uv", "echo no such version >&2; exit 2")
    code, said = checkout.setup()
    assert code == 1
    for part in ("ensurepip is missing", "no such version", "uv python install 3.12", "PYTHON=/path/to/python3.12"):
        assert part in said
    assert not checkout.venv.exists()


def test_two_setups_at_once_make_one_environment(checkout: Checkout) -> None:
    checkout.python(checkout.machine.first / "python3.12")
    both = [checkout.machine.start(checkout.root / "scripts" / "setup") for _ in range(2)]
    for process in both:
        process.communicate(timeout=300)
    assert [process.returncode for process in both] == [0, 0]
    assert checkout.installed() == 1


def test_the_lock_of_a_dead_setup_is_taken_over(checkout: Checkout) -> None:
    checkout.python(checkout.machine.first / "python3.12")
    dead = checkout.machine.start(ROOT / "scripts" / "find-python")
    dead.communicate(timeout=300)
    (checkout.root / ".venv.lock").mkdir()
    (checkout.root / ".venv.lock" / "pid").write_text(f"{dead.pid}\n", encoding="utf-8")
    assert checkout.setup()[0] == 0


# --- scripts/setup flow ----------------------------------------------------------------------------------------------


def test_a_python_that_is_too_new_for_the_engine_is_passed_over_and_told(checkout: Checkout) -> None:
    checkout.python(checkout.machine.first / "python3.12", version='case $2 in *"< (3, 14)"*) exit 1 ;; esac')
    assert checkout.setup()[0] == 0
    code, said = checkout.setup("flow")
    assert code == 1
    assert ".venv-flow cannot be made." in said
    assert ".venv-flow needs Python 3.12 or 3.13." in said
