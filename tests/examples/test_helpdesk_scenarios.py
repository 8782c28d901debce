"""The scenarios are scripts, but their citations have to be those that their searches really find.

That each turn is asked for is seen when `python -m examples` plays them.
"""

import json
import re
from collections.abc import Iterator
from sqlite3 import Connection
from typing import Any

import pytest
from helpdesk_search.likeness import find_alike, past_questions
from helpdesk_search.search import find
from helpdesk_search.terms import parse_terms
from helpdesk_search.wording import pair

from devhost.cli.commands import main
from devhost.script import Script

from .conftest import HELPDESK

SCRIPTS = {"script": HELPDESK / "script.yaml", **{file.stem: file for file in HELPDESK.glob("scenarios/*.yaml")}}


def answer(name: str) -> str:
    return str(Script.read(SCRIPTS[name]).turns[-1].text)


def found(name: str, manual: Connection) -> Iterator[str]:
    """The texts of the sources, in the order of the searches: the agent numbers them so."""
    for call in (call for turn in Script.read(SCRIPTS[name]).turns for call in turn.tool_calls):
        given: Any = call.arguments
        if call.name == "search_manual":
            yield from (hit.text for hit in find(manual, parse_terms(given["terms"]), given["language"]))
        elif call.name == "search_qa":
            alike = find_alike(past_questions(HELPDESK / "qa"), given["question"], given["language"])
            yield from map(pair, alike)


@pytest.mark.parametrize("name", ["script", "two-topics", "single-topic", "locked-out", "not-found"])
def test_the_answer_cites_only_sources_that_exist(name: str, manual_index: Connection) -> None:
    sources = list(found(name, manual_index))
    cited = {int(number) for number in re.findall(r"\[(\d+)\]", answer(name))}

    assert cited <= set(range(1, len(sources) + 1))
    assert bool(cited) == bool(sources) == (name != "not-found")


SAID = {
    "script": "Set up authenticator app|32-character key|recovery code|Bounced|spam folder|Only problems",
    "two-topics": "Set up authenticator app|32-character key|recovery codes|the recipient has left|single addresses"
    "|spam folder|Admin > Backups > History|48 hours",
    "locked-out": "最近の活動|||login.locked",
}


@pytest.mark.parametrize(("name", "said"), SAID.items())
def test_a_cited_source_supports_its_statement(name: str, said: str, manual_index: Connection) -> None:
    sources = list(found(name, manual_index))

    for number, words in ((number, words) for number, words in enumerate(said.split("|"), start=1) if words):
        statements = [line for line in answer(name).splitlines() if f"[{number}]" in line]
        assert any(words in line for line in statements), number
        assert words in sources[number - 1]


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
