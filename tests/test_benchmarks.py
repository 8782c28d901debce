"""The benchmarks run and print what their README explains; no time is judged."""

import re

import pytest

from benchmarks.__main__ import MOST_ROUNDS, main, read_options
from benchmarks.host import Delays, all_calls_at_once, one_call_a_round, run_once
from benchmarks.table import HEADINGS, Row, medians, written

TINY = ["--runs", "1", "--most", "2", "--rounds", "2", "--model-delay", "0", "--tool-delay", "0.001"]


def test_three_tables_of_ratios_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    main(TINY)

    tables = [table.splitlines() for table in capsys.readouterr().out.strip().split("\n\n")]
    titles = [title.partition(" (")[0] for title, *_ in tables]
    assert titles == ["Subtasks side by side", "Tool calls side by side", "Rounds against the SDK's floor"]
    assert [len(rows) for _, _, *rows in tables] == [3, 3, 4]
    for _, headings, *rows in tables:
        assert headings.split() == [heading for heading in HEADINGS if heading]
        assert all(re.search(r" \d+\.\d ms .* \d+\.\d ms +\d+\.\d\d", row) for row in rows)


def test_a_row_is_its_time_by_the_floors() -> None:
    row = Row("two", 0.3, "one", 0.2, "so so")

    assert row.cells() == ("two", "300.0 ms", "one", "200.0 ms", "1.50", "so so")
    assert written("Title", [row]).splitlines()[0] == "Title"


def test_every_action_is_run_once_before_it_is_timed() -> None:
    done: list[str] = []

    times = medians([lambda: done.append("a"), lambda: done.append("b")], runs=2)

    assert done == ["a", "b"] * 3
    assert all(seconds >= 0 for seconds in times)


def test_a_run_that_does_not_answer_is_no_measurement() -> None:
    with pytest.raises(RuntimeError, match="iteration_limit"):
        run_once(all_calls_at_once(1), Delays(), params={"maximum_iterations": 1})


@pytest.mark.parametrize(
    ("option", "given", "allowed"),
    [
        ("--runs", "0", "give a whole number, 1 or more"),
        ("--runs", "few", "give a whole number, 1 or more"),
        ("--most", "3", "choose from 1, 2, 4, 8"),
        ("--rounds", "101", "give a whole number, 1 to 99"),
        ("--rounds", "100", "give a whole number, 1 to 99"),
        ("--rounds", "-1", "give a whole number, 1 to 99"),
        ("--model-delay", "-1", "give a number of seconds, 0 or more"),
        ("--tool-delay", "nan", "give a number of seconds, 0 or more"),
        ("--tool-delay", "inf", "give a number of seconds, 0 or more"),
        ("--tool-delay", "soon", "give a number of seconds, 0 or more"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused_with_what_can_be(
    option: str, given: str, allowed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([f"{option}={given}"])

    said = capsys.readouterr().err
    assert f"argument {option}: " in said
    assert given in said
    assert allowed in said


def test_as_many_rounds_as_are_allowed_are_run() -> None:
    options = read_options(["--rounds", str(MOST_ROUNDS), "--runs", "1", "--tool-delay", "0"])

    assert options.rounds == MOST_ROUNDS
    run_once(one_call_a_round(options.rounds), Delays(), params={"maximum_iterations": options.rounds + 1})  # or raises
