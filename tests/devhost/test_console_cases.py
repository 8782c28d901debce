"""The console keeps a run as a case: what is expected, where it goes, and what stays as it was."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from devhost import FunctionTool, Host, ScriptedModel
from devhost.cli.commands import main
from devhost.protocol.wire import JsonObject
from support.console import ConsoleClient, words
from support.lending import Lender
from support.tracing import tracing
from tests.devhost import ROOT

pytestmark = pytest.mark.processes

KEEP = "/runs/run/keep"


@pytest.fixture(scope="module")
def runs(help_desk: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copy(help_desk, tmp_path_factory.mktemp("keep") / "run.jsonl")).parent


@pytest.fixture
def console(runs: Path) -> Iterator[ConsoleClient]:
    console = ConsoleClient(runs, ROOT)
    yield console
    console.close()


@pytest.fixture
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kept(console: ConsoleClient, name: str, *ticked: str, status: int = 303) -> str:
    return console.post(KEEP, status, name=name, file="cases.yaml", **{f"expect.{each}": "yes" for each in ticked})


def test_the_form_has_what_devhost_record_expects_and_ticks_what_was_right(console: ConsoleClient) -> None:
    html = console.get(KEEP)

    assert f'href="{KEEP}"' in console.get("/runs/run")
    assert 'value="how-do-i-set-up-two-factor-login-with-an-authenticator-app"' in html
    assert f'<option value="{console.console.folder.path / "cases.yaml"}"' in html
    assert "- search_manual:" in html
    for name in ("text", "calls", "stop_reason"):
        assert f'name="expect.{name}" value="yes" checked' in html


def test_what_failed_is_not_ticked(tmp_path: Path) -> None:
    def broken(_given: JsonObject) -> str:
        raise ValueError("locked")

    with tracing(tmp_path / "run.jsonl") as writer, Host.start(ROOT, watcher=writer) as host:
        asks = {"tool_calls": [{"name": "look", "id": "call_1", "arguments": {"topic": "x"}}]}
        model = ScriptedModel.of([asks, {"text": "Nothing."}])
        tool = FunctionTool("look", {"topic": "string"}, broken)
        host.run("gpt5_function_calling", {"query": "Look."}, model=model, tools=[tool])

    html = ConsoleClient(tmp_path, ROOT).get(KEEP)

    assert 'name="expect.calls" value="yes">' in html
    assert " checked" not in html, "all calls failed"


def test_kept_runs_are_cases_that_pass_and_the_rest_of_the_file_stays(
    console: ConsoleClient, in_a_folder: Path, capsys: pytest.CaptureFixture[str], lender: Lender
) -> None:
    file = in_a_folder / "cases.yaml"
    written = "# mine\ndescription: Ours # kept\ncases:\n    - {name: first, query: a, turns: [{text: b}], expect: {}}"
    file.write_text(written)

    assert "The case second was written." in words(console.get(kept(console, "second", "calls")))
    kept(console, " The third: ", "text", "stop_reason")

    assert file.read_text() == f"{written}\n    - second.case.yaml\n    - The-third.case.yaml\n"
    cases = [yaml.safe_load((in_a_folder / f"{name}.case.yaml").read_text()) for name in ("second", "The-third")]
    assert [list(case["expect"]) for case in cases] == [["calls"], ["text", "stop_reason"]]
    capsys.readouterr()
    with lender.lends():
        assert main(["eval", "cases.yaml", "--plugin", str(ROOT), "--json"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("written", "name", "why"),
    [
        ("cases:\n- {name: a, expect: {}}\nthreshold: 1\n", "b", "`cases` must be its last key, with a line for each"),
        ("cases: [{name: a, expect: {}}]\n", "b", "`cases` must be its last key, with a line for each"),
        ("cases:\n- {name: b, expect: {}}\n", "b", "cases.yaml has a case 'b': give this one another name"),
        (
            "columns: [{name: one}, {name: two, strategy: gpt5_react}]\ncases:\n- {name: a, expect: {}}\n",
            "b",
            "has columns for gpt5_react, and this run has turns for gpt5_function_calling alone",
        ),
        (f"cases:\n- {ROOT}/examples/workflows/cases/approval.yaml\n", "b", "cases.yaml plays flows alone"),
        ("cases:\n- {name: a, expects: {}}\n", "b", "unknown key"),
    ],
)
def test_a_case_that_cannot_be_kept_leaves_the_folder_as_it_was(
    console: ConsoleClient, in_a_folder: Path, written: str, name: str, why: str
) -> None:
    (in_a_folder / "cases.yaml").write_text(written)

    assert why in words(kept(console, name, "text", status=422))
    assert {each.name: each.read_text() for each in in_a_folder.iterdir()} == {"cases.yaml": written}
