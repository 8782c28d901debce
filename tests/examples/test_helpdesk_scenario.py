"""The scenario is a script, but its citations have to be those that its searches really find."""

import re
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import pytest
import yaml
from helpdesk_search.search import Hit, find
from helpdesk_search.terms import parse_terms


@pytest.fixture
def script(helpdesk: Path) -> dict[str, Any]:
    script: dict[str, Any] = yaml.safe_load((helpdesk / "script.yaml").read_text(encoding="utf-8"))
    return script


@pytest.fixture
def sources(script: dict[str, Any], manual_index: Connection) -> dict[str, Hit]:
    """The hits of the first turn's searches, numbered as the agent numbers them: in the order of the calls."""
    calls = [call["arguments"] for call in script["turns"][0]["tool_calls"]]
    hits = [hit for call in calls for hit in find(manual_index, parse_terms(call["terms"]), call["language"])]
    return {f"[{number}]": hit for number, hit in enumerate(hits, start=1)}


def test_one_turn_makes_two_searches(script: dict[str, Any]) -> None:
    first = script["turns"][0]
    assert [call["name"] for call in first["tool_calls"]] == ["search_manual", "search_manual"]
    assert first["thought"]
    assert len(first["text"].split()) <= 25


def test_the_cited_sources_are_exactly_those_that_exist(script: dict[str, Any], sources: dict[str, Hit]) -> None:
    assert set(re.findall(r"\[\d+\]", script["turns"][1]["text"])) == set(sources) == {f"[{n}]" for n in range(1, 7)}


@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("[1]", "Set up authenticator app"),
        ("[2]", "32-character key"),
        ("[3]", "recovery code"),
        ("[4]", "Bounced"),
        ("[5]", "spam folder"),
        ("[6]", "Only problems"),
    ],
)
def test_a_cited_source_supports_its_statement(
    script: dict[str, Any], sources: dict[str, Hit], number: str, said: str
) -> None:
    (statement,) = [line for line in script["turns"][1]["text"].splitlines() if number in line and said in line]
    assert statement
    assert said in sources[number].text
