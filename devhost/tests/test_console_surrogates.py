"""Half a surrogate pair, which JSON and YAML can hold and UTF-8 cannot, breaks no page: it is shown as U+FFFD."""

import json
from pathlib import Path
from urllib.parse import urlencode

import pytest

from devhost.cli.commands import main
from devhost.console.listing import Index
from devhost.console.live import Listener, RunReader
from devhost.console.runs import Setup
from devhost.console.suites import cases_files
from support.console import ConsoleClient
from support.lending import Lender
from support.plugins import PUPPET, TOOLBOX

SHOWN = "hal\N{REPLACEMENT CHARACTER}ved"
SCRIPT = TOOLBOX / "script.yaml"


@pytest.fixture(scope="module")
def console(lender: Lender, tmp_path_factory: pytest.TempPathFactory) -> ConsoleClient:
    """With a run whose question, prompt and answer hold it."""
    folder = tmp_path_factory.mktemp("runs")
    whole = folder.parent / "whole.jsonl"
    steps = json.dumps([{"ask": "halved"}, {"say": "halved"}])
    plugins = ("--plugin", str(PUPPET), "--tools", str(TOOLBOX), "--script", str(SCRIPT))
    with lender.lends():
        assert main(["run", "--query", steps, *plugins, "--json", "--trace", str(whole)]) == 0
    (folder / "run.jsonl").write_text(whole.read_text().replace("halved", r"hal\ud800ved"))
    return ConsoleClient(folder, PUPPET)


@pytest.mark.parametrize(
    "path", ["/", "/list", "/delete?run=run", "/runs/run", "/runs/run/again", "/runs/run/keep", "/compare/run/run"]
)
def test_a_page_of_a_run_shows_it(console: ConsoleClient, path: str) -> None:
    assert SHOWN in console.get(path)


def test_its_rows_and_its_events_show_it(console: ConsoleClient) -> None:
    reader = RunReader(console.console.folder.trace("run"))
    (shown,) = reader.read().runs
    row = next(shown.anchors[id(span)] for _, span in shown.rows if span.label.startswith("scripted"))

    assert SHOWN in console.get(f"/runs/run/rows/{row}")
    assert SHOWN in console.get(f"/runs/run/rows/{row}/text")
    assert SHOWN.encode() in "".join(Listener("run", reader, console.console.pages).news()).encode()


def test_a_list_keeps_it_in_its_index(console: ConsoleClient) -> None:
    folder = console.console.folder.path
    (folder / "not-utf-8-\udcff.jsonl").write_text("")

    first, second = Index(folder).look().runs, Index(folder).look().runs

    assert [run.summary for run in first] == [run.summary for run in second]
    assert SHOWN in first[-1].searched


def test_a_setup_keeps_it(tmp_path: Path) -> None:
    file = tmp_path / "run.setup.json"

    Setup(question="hal\ud800ved", parameters={"instruction": "hal\ud800ved"}).write(file)

    assert (Setup.read(file).question, Setup.read(file).parameters["instruction"]) == (SHOWN, SHOWN)


def test_a_form_shows_what_a_script_holds(console: ConsoleClient, tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text(r'{query: "hal\ud800ved", turns: [{text: "x"}]}')

    assert SHOWN in console.get(f"/new?{urlencode({'source': 'script', 'script': str(script)})}")


def test_a_file_of_cases_whose_name_is_not_utf_8_has_no_address_and_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "cases.yaml").write_text("")
    (tmp_path / "cases-\udcff.yaml").write_text("")

    assert [file.name for file in cases_files(tmp_path)] == ["cases.yaml"]
