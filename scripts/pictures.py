#!/usr/bin/env python3
"""Makes the pictures for README and docs from real runs of the examples on the scripted model. Needs Chromium.

`devhost run` runs the examples, each with its own database. Without arguments all pictures are made;
`scripts/pictures.py evaluation` makes only that group.
"""

import importlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 1100
"""Width of a picture in pixels. From 900 pixels on, the page has its desktop layout."""


@dataclass(frozen=True)
class Picture:
    file: str
    example: str
    scenario: str | None
    height: int


PICTURES = [
    Picture("docs/images/report.png", "helpdesk", None, 1275),
    Picture("examples/order_entry/picture.png", "order_entry", "approved", 936),
    Picture("examples/memo_to_task/picture.png", "memo_to_task", None, 960),
    Picture("examples/answers/picture.png", "answers", None, 846),
]


EVALUATION = "devhost/docs/images/evaluation.png"
HELPDESK = ROOT / "examples" / "helpdesk" / "evaluation.yaml"
INSTRUCTION = "    like [1].\n"
ADDED = "    like [1]. Answer in the language of the question.\n"


def main() -> None:
    from scripts.console_pictures import make_console  # noqa: PLC0415 - importable only after the path is set

    groups = {"reports": make_reports, "evaluation": make_evaluation, "console": make_console}
    for name in sys.argv[1:] or groups:
        groups[name]()


def make_reports() -> None:
    for picture in PICTURES:
        make(picture)


def make_evaluation() -> None:
    """Make the picture of two evaluations. The instruction changes between them, as in devhost/docs/evaluate.md."""
    from support.chromium import screenshot  # noqa: PLC0415 - importable only after the path is set

    with tempfile.TemporaryDirectory() as made:
        cases = Path(made) / HELPDESK.name
        page = Path(made) / "page.html"
        text = HELPDESK.read_text(encoding="utf-8")
        cases.write_text(text, encoding="utf-8")
        devhost("eval", str(cases), "--scripted", "--column", "standard")
        cases.write_text(text.replace(INSTRUCTION, ADDED), encoding="utf-8")
        devhost("eval", str(cases), "--scripted", "--against", "last", "--column", "standard", "--report", str(page))
        shown = page.read_text(encoding="utf-8").replace(f"{made}/", "examples/helpdesk/")
        page.write_text(shown, encoding="utf-8")
        screenshot(page, ROOT / EVALUATION, WIDTH, 1100)
    print(EVALUATION)  # noqa: T201 - a command line program prints


def make(picture: Picture) -> None:
    from support.chromium import screenshot  # noqa: PLC0415 - importable only after the path is set

    sys.path += [str(ROOT / "examples" / folder) for folder in (picture.example, "shared")]
    checks = importlib.import_module(f"examples.{picture.example}.checks")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "database").mkdir()
        with checks.world(folder / "database") as world:
            world.begin(picture.scenario or "script")
            scenario = [] if picture.scenario is None else ["--scenario", picture.scenario]
            credentials = [
                part
                for provider, values in world.credentials.items()
                for key, value in values.items()
                for part in ("--credential", f"{provider}.{key}={value}")
            ]
            trace = folder / "run.jsonl"
            run = ["run", "--example", picture.example, *scenario, "--scripted", *credentials, "--trace", str(trace)]
            devhost(*run)
            devhost("report", str(trace))
        screenshot(trace.with_suffix(".html"), ROOT / picture.file, WIDTH, picture.height)
    print(picture.file)  # noqa: T201 - a command line program prints


def devhost(*arguments: str) -> None:
    subprocess.run(  # noqa: S603 - the project's own command
        [sys.executable, "-m", "devhost", *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, check=True
    )


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "devhost" / "tests")]
    main()
