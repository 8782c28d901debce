"""What single pages promise: their examples and commands work, and they name all that there is."""

import dataclasses
import json
import re
from pathlib import Path

import pytest
import yaml

from internal.errors import StopReason
from internal.node.virtual_tools import answer_tool
from internal.policy import PolicyTexts, build_system_instruction, read_policy
from tests.support.command_checks import check_page
from tests.support.pages import PAGES, README, ROOT, TRANSLATIONS

STRATEGIES = {file.stem: yaml.safe_load(file.read_text("utf-8")) for file in (ROOT / "strategies").glob("*.yaml")}


def test_the_answer_on_the_page_satisfies_the_schema_above_it() -> None:
    page = (ROOT / "docs" / "answer-schema.md").read_text(encoding="utf-8")
    schema, answer = re.findall(r"^```json\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    form = answer_tool(schema).check
    assert form is not None
    assert form.accepts(json.loads(answer))
    assert not form.accepts({})


@pytest.mark.parametrize("page", [README, *TRANSLATIONS, ROOT / "docs" / "strategies.md"], ids=lambda page: page.name)
def test_the_pages_name_every_strategy(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [name for name in STRATEGIES if f"`{name}`" not in text] == []


def test_every_example_of_a_policy_changes_the_prompt() -> None:
    """And the first is what the page says that it makes."""
    page = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```json\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    notes = list[str]()
    policies = [read_policy(example, note=notes.append) for example in examples]
    prompts = [build_system_instruction("You are the help desk.", defaults=policy) for policy in policies]

    assert len({build_system_instruction("You are the help desk."), *prompts}) == len(examples) + 1 > 3
    assert notes == []
    (end,) = re.findall(r"^```text\n(<.*?)\n```", page, re.DOTALL | re.MULTILINE)
    assert prompts[0].endswith(f"</tool_results>\n\n{end}")


def test_the_page_on_policies_names_every_block() -> None:
    page = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    keys = [field.name for field in dataclasses.fields(PolicyTexts)]
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == keys


def test_the_page_on_outputs_names_every_variable_and_stop_reason() -> None:
    text = (ROOT / "docs" / "outputs.md").read_text(encoding="utf-8")
    schemas = [strategy["output_schema"] for strategy in STRATEGIES.values()]
    names = {name for schema in schemas for name in schema["properties"]} | set(StopReason)
    missing = [name for name in sorted(names) if f"`{name}`" not in text]
    assert missing == [], f"docs/outputs.md does not describe {missing}"


def test_one_page_says_which_models_reason_by_themselves() -> None:
    """The others link to it: the fact changes with every model."""
    texts = {page.name: page.read_text(encoding="utf-8") for page in PAGES if page.name != "CHANGELOG.md"}

    assert [name for name, text in texts.items() if re.search(r"5\.1 to (GPT-)?5\.\d", text)] == ["model-facts.md"]
    told = [name for name, text in texts.items() if "`reasoning_effort` in the model's settings" in text]
    assert len(told) == 3
    assert [name for name in told if "(model-facts.md#reasoning-effort)" not in texts[name]] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_can_run(page: Path) -> None:
    assert check_page(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("make tset", "make has no target tset"),
        ("devhost run --exmaple helpdesk", "No such option"),
        ("devhost run --example helpdsek", "there is no example helpdsek"),
        ("devhost report tests/none.jsonl", "the repository has no tests/none.jsonl"),
        (".venv/bin/python -m exmaples", "there is no module exmaples"),
        ("scripts/none", "there is no scripts/none"),
    ],
)
def test_a_mistake_is_found(line: str, problem: str) -> None:
    (found,) = check_page(f"```sh\n{line}  # a comment\n```\n")
    assert problem in found
