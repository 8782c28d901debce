"""The documentation: generated tables are up to date, links and citations have targets, names are those of the code."""

import dataclasses
import json
import re
from pathlib import Path

import pytest
import yaml

import devhost
import internal
from internal.policy import PolicyTexts, build_system_instruction, read_policy_overrides
from internal.report.events import StopReason
from internal.tools.virtual_tools import answer_tool
from prompt.approval_words import APPROVAL_WORDS
from scripts import docs
from tests.support.documented_commands import NEW_PLUGIN
from tests.test_architecture import MAKE_WELL_FORMED, REPLACE_SECRETS

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
TRANSLATIONS = sorted((ROOT / "readme").iterdir())
PAGES = [
    *(README, ROOT / "CHANGELOG.md", ROOT / "PRIVACY.md", ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md"),
    *(ROOT / "AGENTS.md", ROOT / "benchmarks" / "README.md"),
    *(*TRANSLATIONS, *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*/*.md"))),
]

MAX_README_WORDS = 900

CODE_FOLDERS = ("internal", "strategies", "prompt", "provider", "devhost", "examples", "benchmarks", "scripts", "tests")
CODE = [
    ROOT / "main.py",
    *(path for folder in CODE_FOLDERS for path in sorted((ROOT / folder).rglob("*.py")) if path != Path(__file__)),
]
CITATION = re.compile(r'(docs/[\w-]+-facts\.md)((?:,? (?:and )?"[^"]+")*)')
PATH = re.compile(r"\b(?:internal|strategies|prompt|devhost|benchmarks|scripts|tests|docs|readme)/[\w./-]*\w")

FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def test_the_parameters_are_up_to_date() -> None:
    assert docs.main(["--check"]) == 0, "run `make docs`"


@pytest.mark.parametrize("name", ["answer_schema", "maximum_attempts"])
def test_a_stale_page_is_named(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """For a parameter of all strategies and for one of a single strategy."""
    strategies = docs.declared()
    for parameter in (parameter for taken in strategies.values() for parameter in taken if parameter["name"] == name):
        parameter["help"]["en_US"] += " Changed."
    monkeypatch.setattr(docs, "declared", lambda: strategies)
    assert docs.main(["--check"]) == 1
    assert "docs/parameters.md is stale: run `make docs`" in capsys.readouterr().out


def test_every_parameter_is_on_the_page_once() -> None:
    """A parameter that the strategies declare differently would be on it several times."""
    names = re.findall(r"^### `(\w+)`", docs.reference(), re.MULTILINE)
    assert names == [parameter["name"] for parameter in docs.declared()["gpt5_plan_and_reflect"]]


def test_parameters_of_one_strategy_are_below_its_name() -> None:
    _, named, only = docs.reference().partition("`gpt5_plan_and_reflect`")
    assert named
    assert re.findall(r"^### `(\w+)`", only, re.MULTILINE) == ["maximum_subtasks", "maximum_attempts"]


def test_only_the_text_between_the_markers_is_replaced() -> None:
    page = f"before\n{docs.BEGIN}\nold\n{docs.END}\nafter"
    assert docs.with_generated(page, "new") == f"before\n{docs.BEGIN}\n\nnew\n\n{docs.END}\nafter"


@pytest.mark.parametrize("page", ["", docs.BEGIN, docs.END])
def test_a_page_without_its_markers_is_an_error(page: str) -> None:
    with pytest.raises(ValueError, match="lacks one of the markers"):
        docs.with_generated(page, "new")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_have_a_target(page: Path) -> None:
    """The file, and the heading that a fragment names; addresses on the web are not asked."""
    assert dead_links(page) == []


def dead_links(page: Path) -> list[str]:
    return [link for link in LINK.findall(prose(page)) if not re.match(r"[a-z]+:", link) and not has_target(page, link)]


def has_target(page: Path, link: str) -> bool:
    name, _, fragment = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not fragment or fragment in anchors(target))


def anchors(page: Path) -> set[str]:
    """The fragments of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("link", ["none.md", "#none", "page.md#none", "page.md#code"])
def test_a_dead_link_is_found(link: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# What `it` is\n\n```sh\n# code\n```\n\n[dead]({link}), [alive](#what-it-is), [alive](page.md)\n")
    assert dead_links(page) == [link]


@pytest.mark.parametrize("page", [page for page in PAGES if page not in TRANSLATIONS], ids=str)
def test_prose_is_wrapped(page: Path) -> None:
    """Code and tables may be wider."""
    lines = [line for line in prose(page).splitlines() if not line.lstrip().startswith(("|", "!["))]
    assert [line for line in lines if len(line) > docs.MAX_LINE] == []


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").split()) <= MAX_README_WORDS


def test_both_commands_are_on_the_first_screen() -> None:
    first_screen = README.read_text(encoding="utf-8").splitlines()[:12]
    assert any(line.startswith("make demo") for line in first_screen)
    assert any(line.startswith("make test") for line in first_screen)


def test_the_readme_has_the_topics_that_the_marketplace_requires() -> None:
    text = README.read_text(encoding="utf-8")
    for topic in ("setting up", "usage", "credentials", "connection"):
        assert topic in text.lower()


def test_the_answer_on_the_page_satisfies_the_schema_above_it() -> None:
    page = (ROOT / "docs" / "answer-schema.md").read_text(encoding="utf-8")
    schema, answer = re.findall(r"^```json\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    form = answer_tool(schema).virtual_schema
    assert form is not None
    assert form.check.is_satisfied_by(json.loads(answer))
    assert not form.check.is_satisfied_by({})


@pytest.mark.parametrize("page", [README, *TRANSLATIONS, ROOT / "docs" / "strategies.md"], ids=lambda page: page.name)
def test_the_pages_name_every_strategy(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [name for name in docs.declared() if f"`{name}`" not in text] == []


def test_every_example_of_a_policy_changes_the_prompt() -> None:
    """And the first is what the page says that it makes."""
    page = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```json\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    prompts = [build_system_instruction("You are the help desk.", example) for example in examples]

    assert len({build_system_instruction("You are the help desk."), *prompts}) == len(examples) + 1 > 3
    assert [note for example in examples for note in read_policy_overrides(example).notes] == []
    (end,) = re.findall(r"^```text\n(<.*?)\n```", page, re.DOTALL | re.MULTILINE)
    assert prompts[0].endswith(f"</tool_results>\n\n{end}")


def test_the_page_on_policies_names_every_block() -> None:
    page = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    keys = [field.name for field in dataclasses.fields(PolicyTexts)]
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == [*keys, "extra_policy"]


def test_the_page_on_outputs_names_every_variable_and_stop_reason() -> None:
    text = (ROOT / "docs" / "outputs.md").read_text(encoding="utf-8")
    schemas = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in (ROOT / "strategies").glob("*.yaml")]
    names = {name for schema in schemas for name in schema["output_schema"]["properties"]} | set(StopReason)
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []


def test_translations_have_the_file_names_that_the_daemon_reads() -> None:
    assert [page.name for page in TRANSLATIONS] == ["README_ja_JP.md", "README_pt_BR.md", "README_zh_Hans.md"]


@pytest.mark.parametrize("page", TRANSLATIONS, ids=lambda page: page.name)
def test_a_translation_is_the_same_readme(page: Path) -> None:
    """As many sections, tables and list items, with the same commands and the same links, in the same order."""
    assert outline(page) == outline(README)
    assert commands(page) == commands(README)
    assert targets(page) == targets(README)


def outline(page: Path) -> list[str]:
    """How each line begins that is a heading, a row of a table, a list item, a quotation or a picture."""
    lines = (re.match(r"#+ |\| |- |\d\. |> |!\[", line) for line in prose(page).splitlines())
    beginnings = [line[0] for line in lines if line]
    return [each for each, before in zip(beginnings, ["", *beginnings], strict=False) if (each, before) != ("> ", "> ")]


def commands(page: Path) -> list[str]:
    """The lines of the code blocks, without their comments."""
    code = "\n".join(FENCE.findall(page.read_text(encoding="utf-8")))
    return [line.partition("#")[0].strip() for line in code.splitlines()]


def targets(page: Path) -> list[Path]:
    """Where the links lead, but for those to the README in another language."""
    links = [(page.parent / name).resolve() for name in LINK.findall(prose(page))]
    return [link for link in links if link not in {README, *TRANSLATIONS}]


@pytest.mark.parametrize("page", [README, *TRANSLATIONS], ids=lambda page: page.name)
def test_every_readme_leads_to_all_others(page: Path) -> None:
    links = {(page.parent / name).resolve() for name in LINK.findall(prose(page))}
    assert {README, *TRANSLATIONS} - links == {page}


@pytest.mark.parametrize("page", [README, *TRANSLATIONS], ids=lambda page: page.name)
def test_every_readme_says_what_was_tested_and_what_was_not(page: Path) -> None:
    not_seen = {
        "README.md": "It has not yet been tested in a whole Dify with its web interface",
        "README_ja_JP.md": "まだ確認していません",
        "README_pt_BR.md": "Ainda não foi testado em um Dify completo",
        "README_zh_Hans.md": "尚未在带有 Web 界面的完整 Dify",
    }
    text = " ".join(page.read_text(encoding="utf-8").replace("> ", "").split())
    assert not_seen[page.name] in text
    assert all(fact in text for fact in ("2026-08-21", "PostgreSQL", "Redis", "API 1.17.0"))


def test_the_debugging_page_warns_of_an_installed_package() -> None:
    text = " ".join((ROOT / "docs" / "debugging.md").read_text(encoding="utf-8").replace("> ", "").split())
    assert "Debug in a workspace in which the packaged plugin is not installed, or uninstall it first." in text
    assert "`no available node, plugin runtime not found`" in text
    assert "A debugging session survives a restart of the daemon" in text


def comments(path: Path) -> str:
    """A module's text with line breaks and comment signs as single spaces, so that a citation stands in one piece."""
    return re.sub(r"\s*\n\s*(?:# ?)?", " ", path.read_text(encoding="utf-8"))


def headings(page: str) -> list[str]:
    return re.findall(r"^#+ (.+)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("page", ["docs/host-facts.md", "docs/model-facts.md"])
def test_every_fact_has_one_heading_and_a_source(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    sections = text.split("\n### ")[1:]

    assert len(set(headings(page))) == len(headings(page))
    assert [section.splitlines()[0] for section in sections if section.count("\nSource: ") != 1] == []


@pytest.mark.parametrize("path", [path for path in CODE if "-facts.md" in path.read_text(encoding="utf-8")], ids=str)
def test_a_citation_names_a_heading_that_exists(path: Path) -> None:
    for page, cited in CITATION.findall(comments(path)):
        names = re.findall(r'"([^"]+)"', cited)
        assert names, f"{path.name} cites {page} without a heading"
        assert [name for name in names if name not in headings(page)] == []


def test_only_documents_of_the_repository_are_cited() -> None:
    """A section sign would be the mark of another: headings have names here."""
    outside = re.compile(r"\N{SECTION SIGN}|\b(?:dify-contract|model-behaviour|sdk-recipes|field-notes)\b")
    texts = {path: path.read_text(encoding="utf-8") for path in (*CODE, *PAGES)}

    assert [str(path) for path, text in texts.items() if outside.search(text)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_folders_that_a_page_names_exist(page: Path) -> None:
    """Those in backticks that begin at the root, of the repository or of a new plugin; a changelog may name others."""
    text = page.read_text(encoding="utf-8").partition("\n## [0.")[0]
    named = [path for code in re.findall(r"`([^`\n]+)`", text) for path in PATH.findall(code)]

    assert [path for path in named if not (ROOT / path).exists() and path not in NEW_PLUGIN] == []


ARCHITECTURE = ROOT / "docs" / "architecture.md"


def section(page: Path, heading: str) -> str:
    """The text below a heading, up to the next one of its level or above."""
    level = heading.split(maxsplit=1)[0]
    text = page.read_text(encoding="utf-8").partition(f"\n{heading}\n")[2]
    return re.split(rf"^#{{2,{len(level)}}} ", text, maxsplit=1, flags=re.MULTILINE)[0]


def packages(heading: str) -> list[str]:
    """The packages of the table below a heading, in its order."""
    return re.findall(r"^\| `([\w.]+)` \|", section(ARCHITECTURE, heading), re.MULTILINE)


def listed(docstring: str | None) -> list[str]:
    """The packages that a package's own docstring lists, in its order."""
    return re.findall(r"^    ([\w.]+)  ", docstring or "", re.MULTILINE)


def test_the_page_on_architecture_has_the_order_of_the_packages() -> None:
    assert packages("### Who may import whom") == listed(internal.__doc__)
    assert packages("## devhost") == listed(devhost.__doc__)


def test_the_page_on_architecture_names_every_module_that_cleans_texts() -> None:
    named = section(ARCHITECTURE, "### Where texts are cleaned")
    modules = {module.rpartition(".")[2] for module in MAKE_WELL_FORMED | REPLACE_SECRETS}

    assert [module for module in sorted(modules) if not re.search(rf"\b{module}\.py`", named)] == []


def test_every_name_on_the_page_on_architecture_is_in_the_code() -> None:
    names = set(re.findall(r"`([A-Z][A-Za-z]+|[A-Z]+(?:_[A-Z]+)+)\b[^`/]*`", ARCHITECTURE.read_text(encoding="utf-8")))
    words = {word for path in CODE for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}

    assert names - words - {"CALL", "CHANGELOG", "README"} == set()


def test_a_page_lists_every_word_that_approves() -> None:
    """Where they differ, copy the row that is missing."""
    languages = {"en": "English", "ja": "Japanese", "zh": "Chinese", "pt": "Portuguese", "any": "Any"}
    rows = [f"| {languages[language]} | {' · '.join(words)} |" for language, words in APPROVAL_WORDS.items()]
    listed = section(ROOT / "docs" / "approval-words.md", "## The list")

    assert re.findall(r"^\| .* · .* \|$", listed, re.MULTILINE) == rows
