"""Two runs beside each other: what the user got comes first, and only what was compared is called the same."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from devhost.cli.commands import main
from devhost.comparison.comparison import Comparison, RunComparison, compared
from devhost.comparison.side import Side
from devhost.trace import flow
from devhost.trace.lines import read_trace
from devhost.trace.turns import traced_turns
from support.console import ConsoleClient, words
from test_flow_view import ASKED, FORM, START, ran, told

KEPT = Path(__file__).parent / "fixtures" / "traces" / "run.jsonl"
LISTED = '"tool_messages": [{'
"""Where the list of a variable begins."""
BUTTONS = (flow.Button("yes", "Publish"), flow.Button("no", "Do not publish"))
FIELDS = (flow.AskedField("reason", "paragraph", "none"),)
QUESTION = replace(ASKED, content="Publish it? {{#$output.reason#}}", fields=FIELDS, buttons=BUTTONS)


def answered(button: str, answer: str, reason: str = "fine", state: str = "s" * 400) -> list[flow.FlowEvent]:
    """A turn whose form was answered."""
    started, ended = ran("2", FORM)
    pressed = flow.FormAnswered("f1", button, {"reason": reason}, "script")
    end = flow.FlowEnded("succeeded", {"answer": answer}, "", {"state": state, "draft": "Chairs."})
    return [*ran("1", START), started, QUESTION, pressed, ended, *ran("3", replace(START, id=button)), end]


def runs(folder: Path, left: list[list[flow.FlowEvent]], right: list[list[flow.FlowEvent]]) -> RunComparison:
    sides = []
    for name, turns in (("left", left), ("right", right)):
        told(*turns, trace=folder / f"{name}.jsonl")
        sides.append([Side(turn) for turn in traced_turns(read_trace(folder / f"{name}.jsonl"))])
    return compared(("left", "right"), *sides)


def one(folder: Path, left: list[flow.FlowEvent], right: list[flow.FlowEvent]) -> Comparison:
    (comparison,) = runs(folder, [left], [right]).turns
    return comparison


def test_another_answer_to_a_form_is_seen_in_the_answer_the_form_and_the_path(tmp_path: Path) -> None:
    yes = answered("yes", "Published: Chairs.")
    no = answered("no", "Not published: Chairs.", "too long")
    found = one(tmp_path, yes, no)

    assert found.different[:2] == ["answer", "forms"]
    assert found.same == ["path of nodes", "variables", "outcome and cost", "question and inputs"]
    answer, forms = found.parts[:2]
    assert [(row.left, row.right) for row in answer.rows] == [("Published: Chairs.", "Not published: Chairs.")]
    assert [row.right for row in forms.rows] == [
        "Ask a person:",
        "  Publish it? [too long]",
        "  button: Do not publish",
    ]


def test_another_state_of_the_same_length_is_not_called_the_same_and_not_shown(tmp_path: Path) -> None:
    found = one(tmp_path, answered("yes", "Done."), answered("yes", "Done.", state="t" * 400))

    (variables,) = [part for part in found.parts if part.name == "variables"]
    assert found.different == ["variables"]
    assert [(fact.name, fact.left, fact.differs) for fact in variables.facts] == [
        ("state", "packed, 400 characters", True),
        ("draft", "Chairs.", False),
    ]


def test_times_in_variables_are_not_compared(tmp_path: Path) -> None:
    def ended(seconds: float, tool: str = "search") -> list[flow.FlowEvent]:
        runs = [{"tool": tool, "elapsed_seconds": seconds}]
        return [*ran("1", START), flow.FlowEnded("succeeded", {"answer": "Done."}, "", {"tool_runs": runs})]

    assert one(tmp_path, ended(0.1), ended(0.2)).different == []
    assert one(tmp_path, ended(0.1), ended(0.1, "send")).different == ["variables"]


def test_every_turn_is_compared_and_one_without_its_like_is_named(tmp_path: Path) -> None:
    first = answered("yes", "Published.")
    found = runs(tmp_path, [first, first], [answered("no", "Not published."), first, first])

    assert ["answer" in each.different for each in found.turns] == [True, False]
    assert found.unpaired == [("right", "What is there?")]


def test_runs_of_different_things_are_said_to_be_so(tmp_path: Path) -> None:
    told(answered("yes", "Published."), trace=tmp_path / "flow.jsonl")
    (turn,) = traced_turns(read_trace(tmp_path / "flow.jsonl"))
    other = replace(turn, facts=replace(turn.facts, name="Shop"))
    strategy = replace(turn, facts=replace(turn.facts, kind="strategy", name="clerk"))
    sides = [[Side(each)] for each in (turn, other, strategy)]

    same, others, kinds = (compared(("a", "b"), sides[0], side) for side in sides)
    assert (same.of, same.is_alike) == ("Both are runs of the chatflow Office.", True)
    assert (others.of, others.is_alike) == ("These are runs of different chatflows: Office, and Shop.", False)
    assert kinds.of == "These are runs of different things: the chatflow Office, and the strategy clerk."


def test_two_strategies_are_compared_round_by_round_and_not_in_the_time_of_their_calls(tmp_path: Path) -> None:
    kept = KEPT.read_text(encoding="utf-8")
    sides = []
    for strategy, seconds in (("puppet", "0.1"), ("actor", "0.2")):
        file = tmp_path / f"{strategy}.jsonl"
        text = kept.replace('"strategy": "puppet"', f'"strategy": "{strategy}"')
        file.write_text(text.replace(LISTED, f'{LISTED}"elapsed_seconds": {seconds}, '), encoding="utf-8")
        sides.append(traced_turns(read_trace(file)))
    (left,), (right,) = sides
    assert left.outcomes[0].outputs.variables != right.outcomes[0].outputs.variables

    found = compared(("left", "right"), [Side(left)], [Side(right)])
    assert found.of == "These are runs of different strategies: puppet, and actor."
    assert found.turns[0].different == []
    assert {"prompts", "variables"} <= set(found.turns[0].same)


def test_the_page_names_runs_by_what_both_have(tmp_path: Path) -> None:
    told(answered("yes", "Published."), trace=tmp_path / "asked.jsonl")
    text = (tmp_path / "asked.jsonl").read_text(encoding="utf-8")
    (tmp_path / "unasked.jsonl").write_text(re.sub(r'"query": "[^"]+"', '"query": ""', text), encoding="utf-8")

    page = ConsoleClient(tmp_path).get("/compare/asked/unasked")
    assert re.findall(r'<th scope="col">([^<]*)</th>', page)[-2:] == ["the first", "the second"]


def test_the_page_says_what_differs_first_and_folds_the_rest(tmp_path: Path) -> None:
    told(answered("yes", "Published: Chairs."), trace=tmp_path / "yes.jsonl")
    told(answered("no", "Not published: Chairs."), trace=tmp_path / "no.jsonl")
    html = ConsoleClient(tmp_path).get("/compare/yes/no")
    page = words(html)

    assert "Different: answer, forms." in page
    assert "Answer: the same" not in page
    assert (
        page.index("Published: Chairs.") < page.index("button: Publish") < page.index("Question and inputs: the same")
    )
    assert html.count("<summary>Variables: the same</summary>") == 1


def test_the_command_says_what_the_page_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(answered("yes", "Published: Chairs."), trace=tmp_path / "yes.jsonl")
    told(answered("no", "Not published: Chairs."), trace=tmp_path / "no.jsonl")
    files = [str(tmp_path / name) for name in ("yes.jsonl", "no.jsonl")]

    assert main(["compare", *files]) == 0
    shown = capsys.readouterr().out
    assert "Both are runs of the chatflow Office." in shown
    assert "different: answer, forms" in shown
    assert "the same: path of nodes, variables, outcome and cost, question and inputs" in shown
    assert shown.index("Not published: Chairs.") < shown.index("button: Do not publish")
    assert "yes.jsonl" in shown

    assert main(["compare", "--json", *files]) == 0
    (turn,) = json.loads(capsys.readouterr().out)["turns"]
    assert turn["different"] == ["answer", "forms"]
    assert turn["parts"][0]["rows"] == [
        {"kind": "changed", "left": "Published: Chairs.", "right": "Not published: Chairs."}
    ]


def test_turns_of_one_run_alone_and_runs_of_nothing_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = answered("yes", "Published.")
    told(first, first, trace=tmp_path / "two.jsonl")
    told(first, trace=tmp_path / "one.jsonl")
    begun = (tmp_path / "one.jsonl").read_text(encoding="utf-8").splitlines()[0]
    (tmp_path / "none.jsonl").write_text(f"{begun}\n")

    assert main(["compare", str(tmp_path / "one.jsonl"), str(tmp_path / "two.jsonl")]) == 0
    assert "a turn of one run alone (two.jsonl): What is there?" in capsys.readouterr().out
    assert main(["compare", str(tmp_path / "none.jsonl"), str(tmp_path / "two.jsonl")]) == 2
    assert "none.jsonl ended before anything was asked" in capsys.readouterr().err
