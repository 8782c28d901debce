"""One script for several strategies: which turns a strategy gets, and what is said where none fit."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from devhost.cli.commands import main
from devhost.models.scripted.script import ScriptedModelCard, ScriptedTurn
from devhost.script import ONLY, Script, ScriptFile, TurnScript
from support.plugins import PROJECT, TOOLBOX

CALLING = "gpt5_function_calling"
REACT = "gpt5_react"
PLAN = "gpt5_plan_and_reflect"
BOTH = """
query: q
strategy: [gpt5_function_calling, gpt5_react]
params: {maximum_iterations: 2, instruction: short}
turns: &work [{text: look}, &answer {text: found}]
then: [{query: more, turns: [*answer]}]
otherwise: [{text: else}]
variants:
- strategy: gpt5_plan_and_reflect
  params: {maximum_attempts: 1, instruction: long}
  turns: [{text: plan}, *work, [{text: judge}, [*answer]]]
"""


def texts(turns: tuple[ScriptedTurn, ...] | None) -> list[object]:
    return [turn.text for turn in turns or ()]


def written(file: Path, text: str) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """An example without scripts."""
    return shutil.copytree(TOOLBOX, tmp_path / "shop", ignore=shutil.ignore_patterns("script.yaml"))


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["run", "--scripted", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    return " ".join(said.err.split())


@pytest.mark.parametrize(
    ("strategy", "turns", "then", "params"),
    [
        (None, ["look", "found"], ["more"], {"maximum_iterations": 2, "instruction": "short"}),
        (REACT, ["look", "found"], ["more"], {"maximum_iterations": 2, "instruction": "short"}),
        (
            PLAN,
            ["plan", "look", "found", "judge", "found"],
            [],
            {"maximum_iterations": 2, "instruction": "long", "maximum_attempts": 1},
        ),
        ("mine", [], [], {"maximum_iterations": 2, "instruction": "short"}),
    ],
)
def test_a_strategy_gets_its_turns(
    tmp_path: Path, strategy: str | None, turns: list[str], then: list[str], params: dict[str, object]
) -> None:
    script = Script.read(written(tmp_path / "script.yaml", BOTH), strategy)

    assert texts(script.turns) == turns
    assert script.fits == bool(turns)
    assert [each.query for each in script.then] == then
    assert script.params == params
    assert script.first_strategy == CALLING
    assert script.written_for == (CALLING, REACT, PLAN)


def test_what_a_variant_lacks_is_not_taken_from_turns_for_other_strategies(tmp_path: Path) -> None:
    file = written(tmp_path / "script.yaml", BOTH)
    assert texts(Script.read(file).turn_for("?").turns) == ["else"]
    assert Script.read(file, PLAN).turn_for("?").turns == ()


def test_without_strategy_the_turns_are_for_any() -> None:
    data = {"query": "q", "turns": [{"text": "any"}], "variants": [{"strategy": PLAN, "turns": [{"text": "plan"}]}]}
    assert texts(Script.of(data, "mine").turns) == ["any"]
    assert texts(Script.of(data, PLAN).turns) == ["plan"]
    assert Script.of(data).written_for == ()


def test_what_a_script_does_not_set_is_as_in_the_one_that_it_extends(tmp_path: Path) -> None:
    written(tmp_path / "script.yaml", f"{BOTH}variables: {{s.a: 1}}\ndescription: old")
    file = written(
        tmp_path / "scenarios" / "more.yaml",
        "extends: ../script.yaml\ndescription: new\nparams: {instruction: other}\nvariables: {s.b: 2}\n"
        "strategy: gpt5_plan_and_reflect\nturns: [{text: own}]",
    )
    plan = Script.read(file)
    react = Script.read(file, REACT)
    assert (plan.description, plan.query, plan.first_strategy) == ("new", "q", PLAN)
    assert (texts(plan.turns), texts(react.turns)) == (["own"], ["look", "found"])
    assert plan.params["instruction"] == react.params["instruction"] == "other"
    assert react.variables == {"s.a": 1, "s.b": 2}


def test_the_page_shows_every_key() -> None:
    page = (PROJECT / "docs" / "scripts.md").read_text()
    shown = yaml.safe_load(page.partition("## All keys")[2].partition("```yaml\n")[2].partition("```")[0])

    assert set(shown) == set(ScriptFile.model_fields) - ONLY["flow"] - {"approval"}
    assert {key for turn in shown["turns"] for key in turn} == set(ScriptedTurn.model_fields)
    assert {key for said in shown["then"] for key in said} == set(TurnScript.model_fields) - ONLY["flow"]
    assert set(shown["model"]) == set(ScriptedModelCard.model_fields)


@pytest.mark.parametrize("strategy", [CALLING, REACT, PLAN])
def test_the_pages_script_is_for_every_strategy(strategy: str) -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", (PROJECT / "docs" / "scripts.md").read_text(), re.DOTALL | re.MULTILINE)
    (shown,) = [block for block in blocks if "book it" in block]
    assert Script.of(yaml.safe_load(shown), strategy).fits


def test_a_strategy_without_turns_is_refused_before_the_start(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file, turns_for in [("script.yaml", REACT), ("scenarios/b.yaml", PLAN)]:
        written(shop / file, f"query: q\nstrategy: {turns_for}\nturns: [{{text: hi}}]")
    example = ("--examples", str(shop.parent), "--example", "shop")

    said = refusal(capsys, *example, "--scenario", "b", "--strategy", CALLING)
    assert f"shop/scenarios/b.yaml has no turns for the strategy {CALLING}, only for {PLAN}: run one of those" in said
