"""`limits: price`: of a run, by script and option, and of an evaluation."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from devhost.cli.commands import main
from devhost.protocol.wire import JsonObject
from support.evaluating import WHERE, case, evaluate, result_lines, write
from support.plugins import PUPPET

pytestmark = pytest.mark.usefixtures("lent_plugins")

ASKS = [{"ask": "one"}, {"ask": "two"}, {"ask": "three"}]
REFUSED = "the run has spent 0.04 USD, and its limit is 0.04: no further model call begins"


def priced(text: str, price: object = "0.02") -> JsonObject:
    return {"text": text, "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_price": price}}


TURNS = [priced("a"), priced("b"), priced("c")]


def run(folder: Path, capsys: pytest.CaptureFixture[str], *options: str, **keys: Any) -> tuple[int, JsonObject, str]:  # noqa: ANN401 - as in YAML
    """The exit code, the report and what stands on stderr."""
    script = folder / "script.yaml"
    script.write_text(yaml.safe_dump({"query": json.dumps(ASKS), "turns": TURNS, **keys}))
    code = main(["run", "--plugin", str(PUPPET), "--script", str(script), "--scripted", "--json", *options])
    shown = capsys.readouterr()
    return code, json.loads(shown.out or "{}"), shown.err


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ((), {"limits": {"price": 0.04}}),
        (("--limit", "price=0.04"), {}),
        (("--limit", "price=0.04"), {"limits": {"price": 9}}),
    ],
    ids=["script", "option", "the option goes before the script"],
)
def test_a_run_stops_when_it_has_spent_its_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], keys: dict[str, Any]
) -> None:
    code, report, shown = run(tmp_path, capsys, *options, **keys)
    assert code == 1
    assert report["error"]["kind"] == "PriceLimitError"
    assert REFUSED in report["error"]["message"]
    assert report["spent"]["total_price"] == "0.04"
    assert REFUSED in " ".join(shown.split())


def test_a_run_below_its_limit_ends_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report, _ = run(tmp_path, capsys, "--limit", "price=0.05")
    assert (code, report["spent"]["total_price"]) == (0, "0.06")


def test_the_turns_of_a_conversation_share_one_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = {"query": json.dumps([{"ask": "four"}]), "turns": [priced("d")]}
    code, report, _ = run(tmp_path, capsys, then=[said], limits={"price": "0.06"})
    assert code == 1
    assert "has spent 0.06 USD" in report["error"]["message"]
    assert report["earlier_turns"][0]["error"] is None


@pytest.mark.parametrize("options", [(), ("--limit", "price=1")])
def test_without_a_known_price_a_limit_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    keys: dict[str, Any] = {"turns": [{"text": "a"}]}
    if not options:
        keys["limits"] = {"price": 1}
    code, _, shown = run(tmp_path, capsys, *options, **keys)
    assert code == 2
    assert "the script of scripted-gpt-5 has no turn with usage: {total_price: …}" in shown


@pytest.mark.parametrize("value", ["0", "inf", "much", "NaN"])
def test_a_limit_that_is_no_price_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str) -> None:
    assert run(tmp_path, capsys, "--limit", f"price={value}")[0] == 2
    assert evaluate(write(tmp_path, case("a")), f"--budget={value}") == 2
    assert f"--budget {value!r}: price: " in capsys.readouterr().err


def cases(count: int, **keys: Any) -> list[JsonObject]:  # noqa: ANN401 - as in YAML
    return [case(f"case {number}", {"ask": "x"}, said=[priced("a")], **keys) for number in range(count)]


def test_an_evaluation_begins_no_run_once_its_limit_is_reached_and_goes_on_with_a_larger_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "cases.results.jsonl"
    file = write(tmp_path, *cases(6), limits={"price": 0.05})
    assert evaluate(file, "--jobs", "1") == 3
    shown = " ".join(capsys.readouterr().out.split())
    assert "the price limit is reached: all runs have spent 0.06 USD, and 3 runs did not begin" in shown
    assert len(result_lines(results)) == 3
    assert evaluate(file, "--jobs", "1") == 3
    assert len(result_lines(results)) == 3, "what was spent before counts"
    assert evaluate(file, "--jobs", "1", "--budget", "10") == 0
    assert len(result_lines(results)) == 6


def test_a_case_whose_run_reaches_its_own_limit_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = {"turns": TURNS, "limits": {"price": "0.04"}}
    asks = {"name": "asks", "query": json.dumps(ASKS), "script": script, "expect": {}}
    assert evaluate(write(tmp_path, asks)) == 1
    assert f"PriceLimitError: {REFUSED}" in " ".join(capsys.readouterr().out.split())


def test_what_judges_spend_counts(tmp_path: Path) -> None:
    verdict = priced('{"passed": true}', "0.5")
    judged = {"expect": {"judge": {"rubric": "Good?", "turns": [verdict]}}}
    assert evaluate(write(tmp_path, *cases(3, **judged)), "--jobs", "1", "--budget", "1") == 3
    lines = result_lines(tmp_path / "cases.results.jsonl")
    assert [Decimal(line["judge_price"]) for line in lines] == [Decimal("0.5")] * 2


def test_an_evaluation_whose_models_have_no_price_takes_no_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, case("free", {"ask": "x"}))
    assert main(["eval", str(file), *WHERE, "--scripted", "--budget", "1"]) == 2
    shown = capsys.readouterr().err
    assert (
        "case 'free', column 'default': limits: price needs a model with a price, but the script of scripted" in shown
    )
