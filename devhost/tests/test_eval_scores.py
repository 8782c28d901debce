"""Scorers in Python: what they get and give, and what their mistakes are called."""

import gc
from pathlib import Path

import pytest

from devhost.cli.commands import main
from fake_openai import KEY
from support.evaluating import WHERE, case, evaluate, result_lines, write

pytestmark = pytest.mark.usefixtures("lent_plugins")

SCORERS = """
import beside
from devhost import Score, ScoredRun


def is_short(run: ScoredRun) -> bool:
    return len(run.observed.text) < beside.MOST


def share(run: ScoredRun) -> Score:
    return Score(0.25, f"{run.case}, {run.column}: {run.question[3:6]} {run.reference}")


def breaks(run: ScoredRun) -> float:
    return {}["wordy"]


def tells(run: ScoredRun) -> float:
    raise ValueError("the key is KEY")


def leaves(run: ScoredRun) -> float:
    raise SystemExit("bye")


def says(run: ScoredRun) -> object:
    return "good"


def counts(run: ScoredRun) -> int:
    return 10**400
""".replace("KEY", KEY)
GREETS = case("greets", {"ask": "hello"}, said="Good day", reference="gold")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    (tmp_path / "my_scores.py").write_text(SCORERS)
    (tmp_path / "beside.py").write_text("MOST = 20\n")
    return tmp_path / "cases.results.jsonl"


def checks(results: Path) -> dict[str, tuple[str, str, float | None]]:
    """What was found, remarked and scored, by the name of the check."""
    (line,) = result_lines(results)
    return {check["name"]: (check["found"], check["remark"], check["score"]) for check in line["checks"]}


def test_a_scorer_gets_the_run_and_gives_a_boolean_or_a_score_with_a_reason(results: Path) -> None:
    score = ["my_scores:is_short", {"function": "my_scores:share", "at_least": 0.2, "at_most": 0.3}]
    assert evaluate(write(results.parent, {**GREETS, "expect": {"score": score}}), "--allow-code") == 0
    assert checks(results) == {
        "score my_scores:is_short": ("", "", 1.0),
        "score my_scores:share": ("", "greets, default: ask gold", 0.25),
    }


@pytest.mark.parametrize(
    ("score", "found"),
    [
        ({"function": "my_scores:share", "at_least": 0.26}, "0.25"),
        ({"function": "my_scores:share", "at_most": 0.24}, "0.25"),
        ("my_scores:share", "0.25"),
        ("my_scores:breaks", "KeyError: 'wordy', "),
        ("my_scores:leaves", "SystemExit: bye, "),
        ("my_scores:says", "'good' of type str"),
        ("my_scores:counts", " of type int"),
    ],
)
def test_a_score_out_of_bounds_and_a_scorer_that_fails_fail_the_case(results: Path, score: object, found: str) -> None:
    assert evaluate(write(results.parent, {**GREETS, "expect": {"score": score}}), "--allow-code") == 1
    ((said, _, _),) = checks(results).values()
    assert found in said
    assert "my_scores.py:" in said or found == said or "of type" in said


def test_what_a_scorer_says_of_secrets_is_redacted(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    page = results.parent / "page.html"
    file = write(results.parent, {**GREETS, "expect": {"score": "my_scores:tells"}})
    assert evaluate(file, "--allow-code", "--json", "--report", str(page)) == 1
    shown = capsys.readouterr()
    assert "ValueError: the key is " in shown.out
    assert KEY not in shown.out + shown.err + page.read_text() + results.read_text()


def test_scores_have_means_over_repeats(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    score = {"function": "my_scores:share", "at_least": 0}
    file = write(results.parent, {**GREETS, "expect": {"score": score}}, repeats=3)
    assert evaluate(file, "--allow-code", "--report", str(results.parent / "page.html")) == 0
    assert "score my_scores:share 0.25 ± 0" in capsys.readouterr().out
    assert "score my_scores:share <b>0.25 ± 0 (0.25 to 0.25)</b>" in (results.parent / "page.html").read_text()


@pytest.mark.parametrize(
    ("score", "options", "sentence"),
    [
        ("my_scores:share", [], "score: my_scores:share is Python code beside the cases: allow it with --allow-code"),
        ("my_scores:shares", ["--allow-code"], "the module has no function 'shares'; there are: breaks, counts, is_"),
        ("no_scores:share", ["--allow-code"], "no_scores.py does not exist"),
        ("wrong:share", ["--allow-code"], "score: wrong cannot be imported: ZeroDivisionError: division by zero, "),
        ("../wrong:share", ["--allow-code"], "should be module:function, such as my_scores:is_polite"),
        ("my_scores", ["--allow-code"], "should be module:function, such as my_scores:is_polite"),
    ],
)
def test_a_mistake_is_found_before_the_first_run(
    results: Path, capsys: pytest.CaptureFixture[str], score: str, options: list[str], sentence: str
) -> None:
    (results.parent / "wrong.py").write_text("1 / 0\n")
    assert evaluate(write(results.parent, {**GREETS, "expect": {"score": score}}), *options) == 2
    shown = capsys.readouterr().err.replace("\n", " ")
    assert sentence in shown
    if "wrong" in score and score[0] != ".":
        assert "wrong.py:1" in shown
    assert not results.exists()


def test_a_module_that_is_named_as_another_one_hides_it_from_nobody(results: Path) -> None:
    (results.parent / "json.py").write_text("def same(run):\n    return True\n")
    file = write(results.parent, {**GREETS, "expect": {"score": "json:same"}})
    assert (
        main(["eval", str(file), *WHERE, "--scripted", "--allow-code", "--report", str(results.parent / "p.html")]) == 0
    )


def test_an_evaluation_keeps_no_run_that_has_ended(results: Path) -> None:
    """A scorer counts what is alive while each of 30 runs ends: neither runs with their messages nor answers add up.

    What was alive before is frozen: other tests of the process may have left some, and collecting it takes a second.
    """
    code = """
import gc
from devhost import Run
from devhost.observed import Observed

def alive(run):
    gc.collect()
    return sum(type(each) in (Run, Observed) for each in gc.get_objects())
"""
    (results.parent / "counting.py").write_text(code)
    score = {"function": "counting:alive", "at_most": 5}
    file = write(results.parent, {**GREETS, "expect": {"score": score}}, repeats=30)
    gc.freeze()
    try:
        assert evaluate(file, "--allow-code", "--jobs", "1") == 0
    finally:
        gc.unfreeze()
