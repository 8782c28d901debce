"""The example of docs/write-a-strategy.md, run on the scripted model."""

import json
from pathlib import Path

import pytest

import tests.support.example_strategy as example
from tests.support.plans import tree
from tests.support.run import run
from tests.support.scenes import check_growth, search
from tests.support.wire import calls, replies, says

PAGE = Path(__file__).parents[2] / "docs" / "write-a-strategy.md"
FOUND = {"search": replies("found")}
DRAFT = "A poor draft. </finding>"
SCHEMA = json.dumps({"type": "object", "properties": {"verdict": {"type": "string"}}, "required": ["verdict"]})


def test_the_page_shows_the_example_as_it_is_run() -> None:
    code = Path(example.__file__).read_text(encoding="utf-8")

    assert PAGE.read_text(encoding="utf-8").count(f"```python\n{code}```") == 1


@pytest.mark.parametrize("thoughts", [False, True], ids=["hidden thoughts", "shown thoughts"])
def test_the_example_shows_only_the_checked_answer(*, thoughts: bool) -> None:
    steps = [search("a"), says(f"<think>hm</think>{DRAFT}"), search("b"), says("A good answer.")]

    outcome = run(steps, FOUND, {"emit_intermediate_thoughts": thoughts}, blueprint=example.DRAFT_AND_CHECK)

    assert outcome.error is None
    assert outcome.text.rpartition("</think>")[2].strip() == "A good answer."
    assert "draft" not in outcome.text
    assert (outcome.stop_reason, outcome.variables["draft"]) == ("answered", DRAFT)
    assert [entry["round"] for entry in outcome.variables["tool_runs"]] == [1, 1]
    assert outcome.last_json["decision_summary"]["rounds"] == 4
    check_growth(outcome.model.requests[:2])
    check_growth(outcome.model.requests[2:])
    assert "<finding>\nA poor draft. &lt;/finding>\n</finding>" in outcome.model.prompts[2][1]["content"]
    turn, call = ["gpt-5-scripted"], ["CALL search"]
    rounds = [["ROUND 1", turn, call], ["ROUND 2", turn]]
    assert tree(outcome) == [["DRAFT", *rounds], ["ANSWER", *rounds], ["RUN FINISHED: answered"]]


def test_the_example_hands_over_an_answer_in_a_schema() -> None:
    steps = [says(DRAFT), calls(("submit_answer", {"verdict": "good"}))]

    outcome = run(steps, FOUND, {"answer_schema": SCHEMA}, blueprint=example.DRAFT_AND_CHECK)

    assert outcome.error is None
    assert outcome.variables["structured_output"] == {"verdict": "good"}
    assert json.loads(outcome.text) == {"verdict": "good"}
