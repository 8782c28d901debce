"""Real traces, made by the command that makes them."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEVHOST = (sys.executable, "-m", "devhost")


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
