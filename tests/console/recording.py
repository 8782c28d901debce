"""Real traces, made by the command that makes them."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEVHOST = (sys.executable, "-m", "devhost")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "devhost" / "tests")}
"""Of a module of the tests that is run: as pytest has it, which reads pyproject.toml."""


def write_traces(module: str, *traces: Path) -> None:
    """Run a module of this folder in a process of its own, since it imports the SDK."""
    command = [sys.executable, "-m", f"tests.console.{module}", *map(str, traces)]
    ran = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def record(folder: Path, *examples: str) -> None:
    """EXAMPLE.jsonl of each example's first scenario, with the scripted model."""
    commands = {
        name: [*DEVHOST, "run", "--example", name, "--scripted", "--trace", str(folder / f"{name}.jsonl")]
        for name in examples
    }
    processes = {
        name: subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for name, command in commands.items()
    }
    for name, process in processes.items():
        said, _ = process.communicate()
        assert (folder / f"{name}.jsonl").is_file(), said


def record_script(trace: Path, example: str, script: str) -> None:
    """The trace of a run with an example's tools and a script of the test's own."""
    file = trace.with_suffix(".yaml")
    file.write_text(script, encoding="utf-8")
    options = ["--example", example, "--script", str(file), "--scripted", "--trace", str(trace)]
    subprocess.run([*DEVHOST, "run", *options], cwd=ROOT, check=True, capture_output=True)
