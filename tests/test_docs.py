"""The documentation: generated tables are up to date, links and citations have targets, names are those of the code."""

import re
from pathlib import Path

import pytest
import yaml

from scripts import docs, example_apps
from support.imports import python_files
from tests.support.command_checks import NEW_PLUGIN
from tests.support.pages import LINK, PAGES, ROOT, TRANSLATIONS, prose, section
from tests.test_architecture import MAKE_WELL_FORMED, REPLACE_SECRETS

CODE_FOLDERS = ("internal", "strategies", "prompt", "provider", "devhost", "examples", "benchmarks", "scripts", "tests")
CODE = [
    ROOT / "main.py",
    *(path for folder in CODE_FOLDERS for path in python_files(ROOT / folder) if path != Path(__file__)),
]
CITATION = re.compile(r'(docs/[\w-]+-facts\.md)((?:,? (?:and )?"[^"]+")*)')
PATH = re.compile(r"\b(?:internal|strategies|prompt|devhost|benchmarks|scripts|tests|docs|readme)/[\w./-]*\w")


def test_the_example_apps_are_up_to_date() -> None:
    assert [file.name for file, _ in example_apps.stale_apps({})] == [], "run `make docs`"


def test_every_parameter_is_on_the_page_once() -> None:
    strategies = [yaml.safe_load(file.read_text("utf-8")) for file in (ROOT / "strategies").glob("*.yaml")]
    declared = {parameter["name"] for strategy in strategies for parameter in strategy["parameters"]}
    named = re.findall(r"^\| \[`(\w+)`", (ROOT / docs.PAGE).read_text("utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(declared)


def test_only_the_text_between_the_markers_is_replaced() -> None:
    page = f"before\n{docs.BEGIN}\nold\n{docs.END}\nafter"
    assert docs.with_generated(page, "new") == f"before\n{docs.BEGIN}\n\nnew\n\n{docs.END}\nafter"
    with pytest.raises(ValueError, match="lacks one of the markers"):
        docs.with_generated(docs.BEGIN, "new")


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


def test_the_list_of_pages_names_each_once() -> None:
    folders = (ROOT / "docs", ROOT / "devhost" / "docs")
    listing = folders[0] / "README.md"
    named = [(listing.parent / link).resolve() for link in LINK.findall(prose(listing))]
    pages = [page for page in PAGES if page.parent in folders and page != listing]
    assert sorted(page for page in named if page.parent in folders) == sorted(pages)


@pytest.mark.parametrize("page", [page for page in PAGES if page not in TRANSLATIONS], ids=str)
def test_prose_is_wrapped(page: Path) -> None:
    """Code and tables may be wider."""
    lines = [line for line in prose(page).splitlines() if not line.lstrip().startswith(("|", "!["))]
    too_long = [line for line in lines if len(line) > docs.MAX_LINE]
    assert too_long == [], f"wrap these lines at {docs.MAX_LINE} characters"


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


def test_the_page_on_architecture_names_every_module_that_cleans_texts() -> None:
    named = section(ARCHITECTURE, "### Where texts are cleaned")
    modules = {module.rpartition(".")[2] for module in MAKE_WELL_FORMED | REPLACE_SECRETS}

    assert [module for module in sorted(modules) if not re.search(rf"\b{module}\.py`", named)] == []


@pytest.mark.parametrize("page", [ARCHITECTURE, ROOT / "docs" / "where-to-change.md"], ids=lambda page: page.stem)
def test_every_name_on_the_pages_for_developers_is_in_the_code(page: Path) -> None:
    names = set(re.findall(r"`([A-Z][A-Za-z]+|[A-Z]+(?:_[A-Z]+)+)\b[^`/]*`", page.read_text(encoding="utf-8")))
    words = {word for path in CODE for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}

    assert names - words - {"CALL", "CHANGELOG", "README"} == set()
