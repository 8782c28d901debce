"""The console keeps a run as a case: what is expected, where it goes, and what stays as it was."""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from devhost.cli.commands import main
from devhost.console.cases import suggested_name
from devhost.evaluation.suite import Suite
from support.console import ConsoleClient, words
from support.lending import Lender
from tests.devhost import ROOT

KEEP = "/runs/run/keep"
EXPECTED = {"calls": "search_manual", "stop_reason": "", "sources": "", "text": "Two-factor\r\n\r\n[1]"}
TICKED = {f"expect.{name}": "yes" for name in EXPECTED}


@pytest.fixture(scope="module")
def runs(lender: Lender, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keep")
    with lender.lends():
        assert main(["run", "--example", "helpdesk", "--json", "--trace", str(folder / "run.jsonl")]) == 0
    return folder


@pytest.fixture
def console(runs: Path) -> Iterator[ConsoleClient]:
    console = ConsoleClient(runs, ROOT)
    yield console
    console.close()


@pytest.fixture
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kept(console: ConsoleClient, given: Mapping[str, str], status: int = 200) -> str:
    return console.post(KEEP, status, **{**EXPECTED, **TICKED, **given})


def test_the_form_is_filled_with_what_was_true_of_the_run(console: ConsoleClient) -> None:
    html = console.get(KEEP)

    assert f'href="{KEEP}"' in console.get("/runs/run")
    assert 'value="How do I set up two-factor login with an authenticator app"' in html
    assert f'value="{console.console.folder.path / "cases.yaml"}"' in html
    assert ">\nsearch_manual\nsearch_manual</textarea>" in html
    assert 'name="expect.text" value="yes" checked' in html


def test_a_kept_run_is_a_case_that_passes(
    console: ConsoleClient, tmp_path: Path, capsys: pytest.CaptureFixture[str], lender: Lender
) -> None:
    file = tmp_path / "cases.yaml"

    page = kept(console, {"file": str(file), "name": "two <i>topics</i> [1]"})

    (case,) = yaml.safe_load(file.read_text())["cases"]
    assert case["expect"] == {"text": {"contains": ["Two-factor", "[1]"]}, "calls": {"in_order": ["search_manual"]}}
    assert (tmp_path / case["script"]).is_file()
    assert f"{file} has the case “two &lt;i&gt;topics&lt;/i&gt; [1]”" in page
    command = words(page).partition("The same in a terminal")[2].partition(" Keys ")[0]
    capsys.readouterr()
    with lender.lends():
        assert main([*shlex.split(command)[1:], "--json"]) == 0, capsys.readouterr().out


def test_a_case_is_added_at_the_end_and_the_rest_stays_as_it_is(console: ConsoleClient, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    written = (
        "# mine\r\ndescription: Ours # kept\r\ncases:\r\n    - {name: first, query: a, turns: [{text: b}], expect: {}}"
    )
    file.write_bytes(written.encode())

    kept(console, {"file": str(file), "name": "second", "expect.text": ""})

    assert file.read_bytes().decode().startswith(f"{written}\n    - name: second\n")
    assert [case.name for case in Suite.read(file).cases] == ["first", "second"]
    second = Suite.read(file).cases[1].expect
    assert second is not None
    assert second.text is None


@pytest.mark.parametrize(
    ("written", "why"),
    {
        "a key after the cases": ("cases:\n- {name: a, expect: {}}\nthreshold: 1\n", "its last key is 'threshold'"),
        "in brackets": ("cases: [{name: a, expect: {}}]\n", "stands in brackets"),
        "the end of a document": ("cases:\n- {name: a, expect: {}}\n...\n", "mine.yaml"),
    }.values(),
)
def test_a_file_to_which_nothing_can_be_added_keeps_its_bytes(
    console: ConsoleClient, tmp_path: Path, written: str, why: str
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(written)

    page = kept(console, {"file": str(file), "name": "second"}, 422)

    assert why in words(page)
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"mine.yaml": written}


@pytest.mark.parametrize(
    ("given", "field", "sentence"),
    [
        ({"name": "taken"}, "name", "has a case of this name already"),
        ({"name": " "}, "name", "a case needs a name"),
        ({"file": "nowhere/cases.yaml"}, "file", "there is no folder nowhere"),
        ({"file": "cases.txt"}, "file", "ends with .yaml"),
        ({"file": "broken.yaml"}, "file", "unknown key"),
        ({"file": f"{'a' * 300}.yaml"}, "file", "the name of the file is too long: it may have 200 bytes"),
        ({"file": f"{'a' * 250}.yaml"}, "file", "the name of the file is too long: it may have 200 bytes"),
    ],
)
def test_a_mistake_is_said_beside_its_field(
    console: ConsoleClient, in_a_folder: Path, given: dict[str, str], field: str, sentence: str
) -> None:
    Path("cases.yaml").write_text("cases: [{name: taken, expect: {}}]")
    Path("broken.yaml").write_text("cases: [{name: a, expects: {}}]")

    page = kept(console, {"file": "cases.yaml", "name": "new", **given}, 422)

    assert sentence in page.partition(f'id="wrong-{field}">')[2].partition("</p>")[0]
    assert f'Nothing was written: 1 value is wrong.</p><ul>\n<li><a href="#{field}">' in page
    assert not list(in_a_folder.glob("*.case.yaml"))


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("How do I log in?", "How do I log in"),
        (" Wait –\nwhat's this ... ", "Wait – what's this"),
        (f"{'long ' * 11}words, and more", f"{'long ' * 11}".strip()),
        (f"{'long ' * 11}abc, and more", f"{'long ' * 11}abc"),
        (f"{'字' * 59}。{'字' * 9}", "字" * 59),
        ("Is it (a)", "Is it (a)"),
        ("?!", "case"),
    ],
)
def test_a_name_of_whole_words_is_suggested(question: str, name: str) -> None:
    assert suggested_name(question, []) == name
    assert suggested_name(question, [name]) == f"{name} (2)"
