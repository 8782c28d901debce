"""The benchmarks run and print what their README explains; no time is judged."""

import re

import pytest

from benchmarks.__main__ import MOST_ROUNDS, PAUSE_CASES, main, read_options
from benchmarks.host import Delays, all_calls_at_once, one_call_a_round, run_once
from benchmarks.pauses import HEADINGS as PAUSE_HEADINGS
from benchmarks.pauses import LIMIT, Case, Pause, Scenario, cells, play, watched
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
        ("pauses --megabytes", "0", "give a size in MB, above 0, up to 100"),
        ("pauses --megabytes", "101", "give a size in MB, above 0, up to 100"),
        ("pauses --megabytes", "much", "give a size in MB, above 0, up to 100"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused_with_what_can_be(
    option: str, given: str, allowed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(f"{option}={given}".split())

    said = capsys.readouterr().err
    assert f"argument {option.rpartition(' ')[2]}: " in said
    assert given in said
    assert allowed in said


def test_as_many_rounds_as_are_allowed_are_run() -> None:
    options = read_options(["--rounds", str(MOST_ROUNDS), "--runs", "1", "--tool-delay", "0"])

    assert options.rounds == MOST_ROUNDS
    run_once(one_call_a_round(options.rounds), Delays(), params={"maximum_iterations": options.rounds + 1})  # or raises


def test_a_line_is_printed_for_every_case_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    main(["pauses", "--megabytes", "0.001", "--only", "text in"])

    headings, *lines, last = capsys.readouterr().out.splitlines()
    wanted = [case.name for case in PAUSE_CASES if "text in" in case.name]
    assert len(wanted) > 1
    assert re.split("  +", headings) == ["case", *PAUSE_HEADINGS]
    assert [re.split("  +", line)[0] for line in lines] == wanted
    assert all(re.search(r" \d\S* MB( +\d+\.\d+ s){3}", line) for line in lines)
    assert last.endswith(f" of {len(wanted)} cases over {LIMIT:g} s of its own work")


def test_what_is_over_the_limit_and_how_a_run_failed_stand_last_in_the_line() -> None:
    case = Case("errors", lambda _size: Scenario([]), share=3)

    line = cells(case, 2_000_000, Pause(1.0, 0.2, 1.5, "InvokeServerUnavailableError", longest_read=0.1))

    *numbers, said = [cell.strip() for cell in line]
    assert numbers == ["6 MB", "1.000 s", "0.200 s", "1.50 s"]
    assert said == "over 0.15 s, 0.100 s of it the SDK's reading; InvokeServerUnavailableError"


def test_a_case_that_does_not_exist_is_answered_with_those_that_do() -> None:
    with pytest.raises(SystemExit, match="no case has 'nothing such' in its name") as refused:
        main(["pauses", "--only", "nothing such"])

    assert all(case.name in str(refused.value) for case in PAUSE_CASES)


FAILING = {"an error of the model's", "an answer schema that is no JSON"}


def test_every_case_is_a_run_and_only_those_that_are_meant_to_fail_do() -> None:
    failed = {case.name for case in PAUSE_CASES if play(case.scenario(500)).ended_with}

    assert failed == FAILING


def test_a_watched_stream_that_ends_is_an_error_not_a_wait() -> None:
    with watched() as stream:
        stream.stop()
        with pytest.raises(RuntimeError, match="has ended"):
            stream.wait_for_more()
