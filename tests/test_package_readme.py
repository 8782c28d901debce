"""The folder that is packed, and the READMEs in it, which Dify shows on the plugin's page."""

import itertools
import re
from pathlib import Path

import pytest
import yaml

from devhost.plugin.check import check_plugin
from devhost.plugin.contents import Contents
from scripts import stage
from tests.support.pages import FENCE, ROOT
from tests.test_readme import outline

each_language = pytest.mark.parametrize("language", stage.PAGES)
MOST_WORDS = 600
SIGNS_OF_A_WORD = 4
"""Chinese and Japanese signs that say about as much as a word."""


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("dist") / "gpt5_agent"
    (target / "old").mkdir(parents=True)
    stage.stage(target)
    return target


def test_the_staged_folder_has_the_plugins_files_and_breaks_no_rule(staged: Path) -> None:
    """It has no ignore file, so that devhost and Dify's own packager take all of it."""
    contents = Contents.of(staged)
    assert contents.paths == Contents.of(ROOT).paths
    assert contents.ignored_by == ""
    problems = check_plugin(staged).problems
    assert [problem for problem in problems if problem.key not in {"repo", "contact"}] == []
    for language, page in stage.PAGES.items():
        assert (staged / page).read_text(encoding="utf-8") == stage.readme(language)


def test_a_file_that_git_does_not_know_is_not_staged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "unknown_files", lambda _contents: ("internal/notes.txt",))

    with pytest.raises(ValueError, match=r"git does not know internal/notes\.txt; git add"):
        stage.stage(tmp_path / "staged")
    assert not (tmp_path / "staged").exists()


@each_language
def test_no_asterisk_stands_between_two_letters(language: str) -> None:
    """Dify's page counts the others, and where their number is odd it ends with an asterisk of its own."""
    prose = re.sub(r"`[^`]*`", "x", FENCE.sub("", stage.readme(language))).replace("**", "")
    repository = re.sub(r"`[^`]*`", "x", (ROOT / stage.PAGES[language]).read_text("utf-8")).replace("**", "")

    assert re.findall(r".{,9}\w\*\w.{,9}", prose + repository) == []


@each_language
def test_the_page_is_as_dify_shows_it(language: str) -> None:
    """No link into the repository, no picture, no comment, and no line's end within a paragraph."""
    text = stage.readme(language)
    prose = FENCE.sub("", text)
    signs = re.findall(r"[\u3040-\u9fff]", text)
    words = [word for word in re.sub(r"[\u3040-\u9fff]", " ", text).split() if re.search(r"\w", word)]

    assert len(words) + len(signs) / SIGNS_OF_A_WORD <= MOST_WORDS
    assert [link for link in re.findall(r"\]\(([^)]*)\)", prose) if not link.startswith("https://")] == []
    assert "<!--" not in text
    assert "![" not in text
    pairs = itertools.pairwise(prose.splitlines())
    wrapped = [after for line, after in pairs if line and after and not re.match(r"[|#-] ?|\d\. ", after)]
    assert wrapped == []
    assert "devhost" not in text
    assert "|" not in text
    assert text.count("*") % 2 == 0


@each_language
def test_the_page_is_the_same_in_every_language(language: str, tmp_path: Path) -> None:
    for name in (language, "en_US"):
        (tmp_path / name).write_text(stage.readme(name), encoding="utf-8")

    assert outline(tmp_path / language) == outline(tmp_path / "en_US")
    named, named_in_english = (
        set(re.findall(r"`[^`\n]+`", FENCE.sub("", stage.readme(each)))) for each in (language, "en_US")
    )
    assert named == named_in_english


@each_language
def test_the_page_names_fields_as_the_panel_does(language: str) -> None:
    """The strategies, and each parameter that stands in bold in the steps and the table."""
    strategies = [yaml.safe_load(file.read_text("utf-8")) for file in (ROOT / "strategies").glob("*.yaml")]
    labels = {each["label"][language] for strategy in strategies for each in strategy["parameters"]}
    shown = {re.sub(r" ?[（(].*", "", label) for label in labels} | {
        strategy["identity"]["label"][language] for strategy in strategies
    }
    before = stage.readme(language).split("\n## ")[:-2]
    named = set(re.findall(r"\*\*([^*]+)\*\*", "".join(before)))

    assert len(named - shown) == 1, "Dify's own name for the choice of a strategy"
    assert {strategy["identity"]["label"][language] for strategy in strategies} <= named
