"""The README and its translations: short, the same page in each language, and true about what was tested."""

import re
from pathlib import Path

import pytest

from tests.support.pages import FENCE, LINK, README, TRANSLATIONS, prose

MAX_WORDS = 1_000


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").split()) <= MAX_WORDS


def test_the_readme_has_the_topics_that_the_marketplace_requires() -> None:
    text = README.read_text(encoding="utf-8")
    for topic in ("setting up", "usage", "credentials", "connection"):
        assert topic in text.lower()


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
