"""The help desk's evaluation, and the ten-minute path of devhost/docs/evaluate.md through it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from devhost.cli.commands import main

ROOT = Path(__file__).resolve().parents[2]
HELPDESK = ROOT / "examples" / "helpdesk"
CASES = HELPDESK / "evaluation.yaml"
DOCS = (ROOT / "devhost" / "docs" / "evaluate.md").read_text(encoding="utf-8")
ADDED = "Answer in the language of the question."


def evaluated(capsys: pytest.CaptureFixture[str], file: Path, results: Path, *options: str) -> tuple[Any, str]:
    """The JSON, and what a person reads."""
    where = ["--plugin", str(ROOT), "--scripted", "--results", str(results)]
    assert main(["eval", str(file), *where, "--json", *options]) == 0
    shown = capsys.readouterr()
    return json.loads(shown.out), shown.err


def test_a_changed_instruction_makes_three_cases_better_as_the_docs_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file is changed as the docs tell a reader to change it."""
    results = tmp_path / "results.jsonl"
    before, shown = evaluated(capsys, CASES, results)
    totals = re.findall(r"^.+  23 of 26  [\d,]+ tokens", shown, re.MULTILINE)
    assert len(totals) == len(before["columns"])
    assert [total for total in totals if total not in DOCS] == []
    old, new = re.findall(r"^([-+]) +(like \[1\].*)$", DOCS, re.MULTILINE)
    assert (old[0], new[0]) == ("-", "+")
    assert ADDED in new[1]
    text = CASES.read_text(encoding="utf-8")
    assert text.count(f"    {old[1]}\n") == 1
    changed = tmp_path / "evaluation.yaml"
    changed.write_text(text.replace(f"    {old[1]}\n", f"    {new[1]}\n"), encoding="utf-8")
    after, shown = evaluated(capsys, changed, results, "--against", "last", "--column", "standard")
    (column,) = after["comparison"]
    assert [change["name"] for change in column["better"]] == [
        "expired invitation (ja)",
        "revoked link (ja)",
        "code by SMS (ja)",
    ]
    assert column["worse"] == []
    assert "standard: 3 of 26 cases got better, 0 got worse" in shown
    assert "standard: 3 of 26 cases got better, 0 got worse" in DOCS
    (setting,) = column["changed_settings"]
    assert setting.endswith(f'{ADDED}"')
