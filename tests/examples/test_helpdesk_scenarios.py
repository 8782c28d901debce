"""The scenarios of plan and reflect: each turn fits exactly one call, and the searches find what is cited."""

import json
import re
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import pytest
from helpdesk_search.likeness import find_alike, past_questions
from helpdesk_search.search import find
from helpdesk_search.terms import parse_terms
from helpdesk_search.wording import answers_as_text, hits_as_text, pair

from devhost.cli.commands import main
from devhost.models.scripted.script import Script, Turn

from .conftest import HELPDESK

NAMES = ["two-topics", "single-topic", "not-found"]


class Scenario:
    def __init__(self, file: Path, manual: Connection) -> None:
        self.script = Script.read(file)
        self._manual = manual

    @property
    def subtasks(self) -> list[str]:
        (plan,) = [call for turn in self.script.turns for call in turn.tool_calls if call.name == "submit_plan"]
        assert isinstance(plan.arguments, dict)
        subtasks = plan.arguments["subtasks"]
        assert isinstance(subtasks, list)
        return [str(subtask) for subtask in subtasks]

    def searched(self, turn: Turn) -> list[tuple[str, list[str]]]:
        """For each search of the turn, what the tool says and the texts of its sources."""
        searches = []
        for call in turn.tool_calls:
            arguments: Any = call.arguments
            if call.name == "search_manual":
                hits = find(self._manual, parse_terms(arguments["terms"]), arguments["language"])
                searches.append((hits_as_text(arguments["terms"], hits), [hit.text for hit in hits]))
            elif call.name == "search_qa":
                found = find_alike(past_questions(HELPDESK / "qa"), arguments["question"], arguments["language"])
                said = answers_as_text(arguments["question"], found)
                searches.append((said, [pair(likeness) for likeness in found]))
        return searches

    @property
    def sources(self) -> dict[str, str]:
        """By the number that the agent gives them: in the order of the searches."""
        texts = [text for turn in self.script.turns for _, texts in self.searched(turn) for text in texts]
        return {f"[{number}]": text for number, text in enumerate(texts, start=1)}


@pytest.fixture
def scenario(request: pytest.FixtureRequest, manual_index: Connection) -> Scenario:
    return Scenario(HELPDESK / "scenarios" / f"{request.param}.yaml", manual_index)


every_scenario = pytest.mark.parametrize("scenario", NAMES, indirect=True)
two_topics = pytest.mark.parametrize("scenario", NAMES[:1], indirect=True)


def test_all_scenarios_are_tested(helpdesk: Path) -> None:
    assert sorted(file.stem for file in (helpdesk / "scenarios").iterdir()) == sorted([*NAMES, "as-data"])


@every_scenario
def test_each_turn_waits_for_its_own_call(scenario: Scenario) -> None:
    assert scenario.script.strategy == "gpt5_plan_and_reflect"
    first, *between, last = [turn.when or "" for turn in scenario.script.turns]
    assert (first, last) == ("Call submit_plan", "Answer the question")
    assert all(between)
    # Only requests for a judgement repeat the same words.
    others = [when for when in between if not when.startswith("Judge subtask: ")]
    assert len(set(others)) == len(others)
    for subtask in scenario.subtasks:
        assert f"Subtask: {subtask}" in others
        assert f"Judge subtask: {subtask}" in between


@every_scenario
def test_a_turn_after_a_search_waits_for_the_result_of_that_search(scenario: Scenario) -> None:
    turns = scenario.script.turns
    said = [
        (position, self_said)
        for position, turn in enumerate(turns)
        for self_said in [scenario.searched(turn)]
        if self_said
    ]
    assert said
    for position, searches in said:
        when = turns[position + 1].when or ""
        assert when in searches[-1][0]  # the last message of the prompt is the last tool's
        others = [text for other, results in said if other != position for text, _ in results]
        assert not any(when in text for text in others)


@every_scenario
def test_the_next_attempt_waits_for_the_exact_advice(scenario: Scenario) -> None:
    turns = scenario.script.turns
    judgements = [
        (turn.when, call.arguments) for turn in turns for call in turn.tool_calls if call.name == "submit_reflection"
    ]
    for when, judgement in judgements:
        assert isinstance(judgement, dict)
        followed = [turn for turn in turns if (turn.when or "").startswith("Advice: ")]
        if judgement["is_completed"]:
            assert judgement["advice"] == ""
        elif (when, judgement) != judgements[-1]:
            assert any((turn.when or "") in f"Advice: {judgement['advice']}" for turn in followed)


@every_scenario
def test_the_answer_cites_only_sources_that_exist(scenario: Scenario) -> None:
    cited = set(re.findall(r"\[\d+\]", str(scenario.script.turns[-1].text)))
    assert cited <= set(scenario.sources)
    assert bool(cited) == bool(scenario.sources)


@two_topics
@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("[1]", "Set up authenticator app"),
        ("[2]", "32-character key"),
        ("[3]", "recovery codes"),
        ("[4]", "the recipient has left the workspace"),
        ("[5]", "single addresses"),
        ("[6]", "spam folder"),
        ("[7]", "Admin > Backups > History"),
        ("[8]", "48 hours"),
    ],
)
def test_a_cited_source_supports_its_statement(scenario: Scenario, number: str, said: str) -> None:
    (statement,) = [line for line in str(scenario.script.turns[-1].text).splitlines() if number in line]
    assert said in statement
    assert said in scenario.sources[number]


@two_topics
def test_one_subtask_needs_a_second_attempt(scenario: Scenario) -> None:
    assert len(scenario.subtasks) == 2
    whens = [turn.when for turn in scenario.script.turns]
    assert [whens.count(f"Judge subtask: {subtask}") for subtask in scenario.subtasks] == [1, 2]


@pytest.mark.parametrize("scenario", ["not-found"], indirect=True)
def test_what_is_not_found_is_in_neither_source(scenario: Scenario) -> None:
    assert scenario.sources == {}
    assert "We go on investigating" in str(scenario.script.turns[-1].text)
    assert "@" not in str(scenario.script.turns[-1].text)


@pytest.mark.parametrize("strategy", ["gpt5_function_calling", "gpt5_plan_and_reflect"])
def test_an_ordinary_question_finds_something_in_both_sources(
    strategy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    question = "How do I restore a file that I deleted?"
    arguments = ["--example", "helpdesk", "--strategy", strategy, "--query", question, "--json"]
    assert main(["run", "--scripted", *arguments]) == 0

    sources = json.loads(capsys.readouterr().out)["variables"]["sources"]
    documents = [source["document_id"] for source in sources]
    assert "en/user-guide.md" in documents
    assert any(document.startswith("qa/en.csv") for document in documents)
