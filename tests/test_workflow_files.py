"""The workflows of GitHub run what exists, on the Python versions that the project supports, with few rights."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.yml"))

type Yaml = dict[Any, Any]


def workflow(path: Path) -> Yaml:
    read: Yaml = yaml.safe_load(path.read_text(encoding="utf-8"))
    return read


def jobs() -> Iterator[tuple[str, Yaml]]:
    for path in FILES:
        for name, job in workflow(path)["jobs"].items():
            yield f"{path.stem}/{name}", job


JOBS = dict(jobs())
STEPS = {f"{name}/{number}": step for name, job in JOBS.items() for number, step in enumerate(job.get("steps", ()))}
GATE = JOBS["gate/gate"]
COMMANDS = [step["run"] for step in STEPS.values() if "run" in step]

each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def test_the_gate_runs_on_every_push_and_pull_request_and_before_a_release() -> None:
    on, released = (workflow(FOLDER / f"{name}.yml")[True] for name in ("gate", "release"))  # YAML 1.1 reads `on` so

    assert on["push"] == {"branches": ["**"]}
    assert {"pull_request", "workflow_call"} <= set(on)
    assert released == {"push": {"tags": ["v*"]}}
    assert JOBS["release/gate"] == {"uses": "./.github/workflows/gate.yml"}
    assert JOBS["release/package"]["needs"] == "gate"
    assert ".ci/run" in COMMANDS


@each_file
def test_the_rights_are_the_least(path: Path) -> None:
    assert workflow(path)["permissions"] == {"contents": "read"}
    more = {name: job["permissions"] for name, job in JOBS.items() if "permissions" in job}
    assert more == {"release/package": {"contents": "write"}}


@each_file
def test_actions_are_pinned_by_commit_with_their_version_beside(path: Path) -> None:
    """A tag can be moved to another commit."""
    used = re.findall(r"uses: (actions/.*)", path.read_text(encoding="utf-8"))

    assert used
    assert [line for line in used if not re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


def test_the_python_versions_are_those_that_every_environment_can_be_made_with() -> None:
    """From the oldest that find-python takes to the newest that Dify's workflow engine takes, without a gap."""
    setup = (ROOT / "scripts" / "setup").read_text(encoding="utf-8")
    found = re.findall(r"\bpython3\.(\d+)\b", (ROOT / "scripts" / "find-python").read_text(encoding="utf-8"))
    (below,) = re.findall(r"^    below='\(3, (\d+)\)'", setup, re.MULTILINE)
    oldest = re.search(r'^python_version = "3\.(\d+)"', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert oldest

    versions = [int(version.removeprefix("3.")) for version in GATE["strategy"]["matrix"]["python"]]
    assert versions == list(range(int(oldest[1]), int(below)))
    assert {str(version) for version in versions} <= set(found)
