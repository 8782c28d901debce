"""Results that are read again: files of earlier versions, differences beyond chance, and many evaluations, drawn."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import pytest

from devhost.cli.commands import main
from devhost.evaluation.table import read_evaluation
from support.evaluating import write, write_results
from support.plugins import FIXTURES

EARLIER = FIXTURES / "evaluations"
ALL = (True, True, True, True)
NONE = (False, False, False, False)
SOME = (True, False, True, True)


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    return write(tmp_path, {"name": "a"}, {"name": "b"}, {"name": "c"})


def show(cases: Path, results: Path, *options: str, code: int = 1) -> None:
    assert main(["eval", str(cases), "--show", "--results", str(results), *options]) == code


def test_results_of_earlier_versions_stay_readable(
    tmp_path: Path, cases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    file = EARLIER / "2026-11-30.results.jsonl"
    show(cases, file, "--report", str(page), "--against", str(file))
    shown = capsys.readouterr().out
    assert "✓ passed 0/3 (0 to 56 %)" in shown
    assert "calm  2 of 3 " in shown
    assert "0 of 3 cases got better, 0 got worse" in shown
    assert "Good night" in page.read_text()
    interrupted = read_evaluation(EARLIER / "2026-11-30.interrupted.jsonl")
    assert (len(interrupted.runs), interrupted.is_finished) == (5, False)


@pytest.mark.parametrize(
    ("before", "after", "sentence", "together"),
    [
        ({"a": NONE}, {"a": ALL}, "1 of 1 case got better, 0 got worse", "no difference beyond chance"),
        ({"a": ALL}, {"a": NONE}, "0 of 1 case got better, 1 got worse", "no difference beyond chance"),
        ({"a": SOME}, {"a": ALL}, "0 of 1 case got better, 0 got worse, 1 differ within chance", "no difference"),
        ({"a": [False]}, {"a": [True]}, "0 got worse, 1 differ within chance", "no difference beyond chance"),
        ({"a": NONE, "b": NONE, "c": NONE}, {"a": ALL, "b": ALL, "c": ALL}, "3 of 3 cases got better", "better"),
    ],
)
def test_better_and_worse_is_said_only_beyond_chance(  # noqa: PLR0917 - two evaluations, and what is said
    tmp_path: Path,
    cases: Path,
    capsys: pytest.CaptureFixture[str],
    before: dict[str, Sequence[bool]],
    after: dict[str, Sequence[bool]],
    sentence: str,
    together: str,
) -> None:
    old = write_results(tmp_path / "old.jsonl", before)
    new = write_results(tmp_path / "new.jsonl", after)
    page = tmp_path / "page.html"
    all_pass = all(all(repeats) for repeats in after.values())
    show(cases, new, "--against", str(old), "--report", str(page), code=int(not all_pass))
    shown = " ".join(capsys.readouterr().out.split())
    assert sentence in shown
    assert f"all cases together: {together}" in shown
    assert f"all cases together: {together}" in page.read_text()


def test_scripted_runs_leave_nothing_to_chance(tmp_path: Path, cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = write_results(tmp_path / "old.jsonl", {"a": [False]}, scripted=True)
    new = write_results(tmp_path / "new.jsonl", {"a": [True]}, scripted=True)
    show(cases, new, "--against", str(old), code=0)
    shown = " ".join(capsys.readouterr().out.split())
    assert "1 of 1 case got better, 0 got worse all cases together: better" in shown


def test_repeats_have_means_with_their_standard_errors_and_intervals(
    tmp_path: Path, cases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = write_results(tmp_path / "new.jsonl", {"a": SOME})
    show(cases, results, "--json")
    report = json.loads(capsys.readouterr().out)
    (cell,) = report["cells"]
    assert (cell["share"], cell["standard_error"]) == (0.75, pytest.approx(0.2165, abs=1e-4))
    assert cell["interval"] == pytest.approx([0.3006, 0.9544], abs=1e-4)
    tokens = report["columns"][0]["figures"]["tokens"]
    assert (tokens["mean"], tokens["count"]) == (102.5, 4)
    assert tokens["interval"] == pytest.approx([102.5 - 3.182 * 0.6455, 102.5 + 3.182 * 0.6455], abs=1e-3)
    show(cases, results)
    shown = capsys.readouterr().out
    assert "✗ failed 3/4 (30 to 95 %)" in shown
    assert "102 ± 1 tokens" in shown
    assert "Ranges are 95 % intervals" in shown


def test_the_history_of_a_folder_is_drawn_and_has_its_numbers_for_a_screen_reader(
    tmp_path: Path, cases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "history"
    folder.mkdir()
    write_results(folder / "2.jsonl", {"a": ALL, "b": NONE}, began="2026-11-02T10:00:00+00:00")
    write_results(folder / "1.jsonl", {"a": NONE, "b": NONE}, began="2026-11-01T10:00:00+00:00")
    write_results(folder / "other.jsonl", {"a": ALL}, file="other.yaml")
    write_results(folder / "part.jsonl", {"a": ALL}, runs=9)
    (folder / "trace.jsonl").write_text('{"trace": "devhost"}\n')
    results = write_results(folder / "3.jsonl", {"a": ALL, "b": ALL}, began="2026-11-03T12:00:00+02:00")
    page = tmp_path / "page.html"
    show(cases, results, "--history", str(folder), "--report", str(page), code=0)

    shown = capsys.readouterr().out
    rows = [" ".join(line.split()) for line in shown.splitlines() if line.startswith("2026-")]
    assert rows == ["2026-11-01 10:00 0 of 2", "2026-11-02 10:00 1 of 2", "2026-11-03 10:00 2 of 2"]
    html = page.read_text()
    for sentence in (
        "other.jsonl belongs to other.yaml",
        "part.jsonl has only a part",
        "trace.jsonl has no evaluation",
    ):
        assert f"Left out: {sentence}" in html
    drawings = [ET.fromstring(each) for each in re.findall(r'<svg viewBox="0 0 480.*?</svg>', html, re.DOTALL)]  # noqa: S314 - our own
    assert [drawing.findtext("title") for drawing in drawings] == [
        "passed cases, by evaluation",
        "tokens, the mean of a run, by evaluation",
        "seconds, the mean of a run, by evaluation",
        "price, the mean of a run, by evaluation",
    ]
    passed = drawings[0]
    said = "default: 2026-11-01 10:00: 0 of 2; 2026-11-02 10:00: 1 of 2; 2026-11-03 10:00: 2 of 2. "
    assert passed.findtext("desc") == said
    assert passed.get("role") == "img"
    heights = [float(circle.get("cy", "")) for circle in passed.iter("circle")]
    assert heights == [164.0, 88.0, 12.0], "from no case at the bottom to all at the top"


def test_a_history_of_no_folder_is_a_mistake(tmp_path: Path, cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = write_results(tmp_path / "new.jsonl", {"a": ALL})
    show(cases, results, "--history", str(tmp_path / "none"), code=2)
    assert "there is no such folder" in capsys.readouterr().err
