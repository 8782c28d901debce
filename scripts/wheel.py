#!/usr/bin/env python3
"""Builds devhost's wheel, installs it in a new environment, and runs it there on other plugins.

The plugins run in the Python of this repository's .venv, which has the SDK. The new environment has only devhost.
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "dist" / "devhost"
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")


def call(*command: str | Path) -> None:
    subprocess.run(command, cwd=PLACE, check=True)  # noqa: S603 - devhost and pip


def main() -> int:
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    call(sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", PLACE, ROOT / "devhost")
    (wheel,) = PLACE.glob("*.whl")
    environment = PLACE / "env"
    call(sys.executable, "-m", "venv", environment)
    call(environment / "bin" / "python", *PIP, "install", wheel)
    devhost = environment / "bin" / "devhost"
    new = PLACE / "new_plugin"
    example = PLACE / "example"
    call(devhost, "init", "strategy", new.name)
    shutil.copytree(ROOT / "examples" / "injection", example, ignore=shutil.ignore_patterns("__pycache__"))
    call(devhost, "check", new)
    for plugin in (new, example):
        (plugin / ".venv").symlink_to(Path(sys.prefix))
    call(devhost, "run", "--plugin", new, "--script", new / "scenarios" / "hello.yaml", "--trace", "run.jsonl")
    call(devhost, "report", "run.jsonl")
    call(devhost, "tool", "--tools", example, "search_documents", "--arg", "words=hall")
    for made in (environment, new, example):
        shutil.rmtree(made)
    print(wheel.relative_to(ROOT))  # noqa: T201 - a program's output
    return 0


if __name__ == "__main__":
    sys.exit(main())
