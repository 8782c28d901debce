"""The page of a trace: rows and their groups, prompts, sources, files, what plugins printed."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from devhost import Host, ScriptedModel
from devhost.cli.commands import main
from devhost.page import contents
from devhost.page.calls import PromptPart, changes_since, prompt_changes
from devhost.page.contents import ShownFile, shown_file
from devhost.page.page import render_page
from devhost.page.section import FEW_ROWS, shown_run
from devhost.protocol.wire import JsonObject
from devhost.trace.lines import read_trace
from devhost.trace.runs import Call, traced_runs
from support.page_reading import harmless, page_of
from support.plugins import ODDMENTS, PUPPET
from support.tracing import tracing

pytestmark = pytest.mark.usefixtures("lent_plugins")


def traced(folder: Path, *steps: JsonObject, tools: Sequence[Path] = ()) -> Path:
    """The trace of a run of the puppet."""
    file = folder / "run.jsonl"
    with tracing(file) as writer, Host.start(PUPPET, tools=list(tools), watcher=writer) as host:
        host.run("puppet", {"query": json.dumps(steps)}, model=ScriptedModel.of([{"text": "unused"}]))
    return file


def log(name: str, parent: str | None = None, status: str = "success") -> JsonObject:
    message: JsonObject = {"id": name, "parent_id": parent, "label": name, "status": status, "data": {}}
    return {"emit": {"type": "log", "message": message}}


# --- groups of the timeline -------------------------------------------------------------------------------------------


def test_in_a_long_run_only_groups_with_a_failure_or_an_open_end_are_open(tmp_path: Path) -> None:
    rounds = [step for number in range(FEW_ROWS) for step in (log(f"r{number}"), log(f"in r{number}", f"r{number}"))]
    trace = read_trace(traced(tmp_path, *rounds, log("bad", "r7", "error"), log("hangs", "r9", "start")))
    shown = shown_run(1, traced_runs(trace)[0], trace.header.strategy)
    assert [span.label for span in shown.spans if shown.is_open(span)] == ["r7", "r9"]

    trace = read_trace(traced(tmp_path, *rounds[:20]))
    shown = shown_run(1, traced_runs(trace)[0], trace.header.strategy)
    assert all(map(shown.is_open, shown.spans)), "a short run is open as a whole"


# --- what is new in a prompt ------------------------------------------------------------------------------------------

SYSTEM = PromptPart("system", "Be brief.")
ASKED = PromptPart("user", "Look.")
WROTE = PromptPart("assistant", "→ look {}")
LONG = PromptPart("tool", "found " * 50)
SHORT = PromptPart("tool", "found … [cut]")
LATER = PromptPart("assistant", "→ look {1}")


@pytest.mark.parametrize(
    ("before", "now", "words", "new"),
    [
        ([SYSTEM, ASKED], [SYSTEM, ASKED, WROTE, LONG], "2 new, 2 as in the round before", [WROTE, LONG]),
        (
            [SYSTEM, ASKED, WROTE, LONG],
            [SYSTEM, ASKED, WROTE, SHORT, LATER],
            "2 new, 1 gone, 3 as in the round before",
            [SHORT, LATER],
        ),
        ([SYSTEM, WROTE, WROTE], [SYSTEM, WROTE], "1 gone, 2 as in the round before", []),
    ],
)
def test_what_is_new_and_gone_is_counted(
    before: list[PromptPart], now: list[PromptPart], words: str, new: list[PromptPart]
) -> None:
    changes = prompt_changes(before, now)
    assert changes.words == words
    assert [said for _, part in changes.parts for said in part] == now
    assert [said for is_new, part in changes.parts if is_new for said in part] == new


def asked(name: str, began: float, *words: str, ended: float | None = None) -> Call:
    """A model call whose prompt is a system message and these messages of the user's."""
    messages = [{"role": "system", "content": "Be brief."}, *({"role": "user", "content": each} for each in words)]
    return Call("p", "llm", {"prompt_messages": messages}, began, began + 1 if ended is None else ended, id=name)


@pytest.mark.parametrize(
    ("calls", "new"),
    [
        ([asked("1", 0, "Look."), asked("2", 2, "Look.", "a"), asked("3", 4, "Look.", "a", "b")], {"2": "a", "3": "b"}),
        (  # subtasks side by side are loops of their own
            [asked("a1", 0, "A."), asked("b1", 1.5, "B."), asked("a2", 4, "A.", "a"), asked("b2", 3, "B.", "b")],
            {"a2": "a", "b2": "b"},
        ),
        ([asked("1", 0, "Look."), asked("judge", 2, "Judge.")], {}),
        ([asked("1", 0, "Look.", ended=9), asked("2", 2, "Look.")], {}),
    ],
)
def test_the_round_before_has_the_same_beginning_and_has_ended(calls: list[Call], new: dict[str, str]) -> None:
    found = changes_since(calls)
    assert {
        key: "".join(said.text for is_new, part in each.parts if is_new for said in part) for key, each in found.items()
    } == new


# --- sources, parameters, printed lines -------------------------------------------------------------------------------

PASSAGE = "The long passage. " * 240


def variable(name: str, value: object) -> JsonObject:
    return {"emit": {"type": "variable", "message": {"variable_name": name, "variable_value": value}}}


def retrieved(*resources: JsonObject) -> JsonObject:
    message = {"retriever_resources": list(resources), "context": ""}
    return {"emit": {"type": "retriever_resources", "message": message}}


def card(file: Path, title: str) -> str:
    html = render_page(read_trace(file))
    return html.partition(f'<section class="card"><h2>{title}</h2>')[2].partition("</section>")[0]


def test_a_source_shows_its_passage_and_whether_it_was_cited(tmp_path: Path) -> None:
    sources = [
        {"number": 1, "title": "Guide", "document_id": "guide.md", "cited": True},
        {"number": 2, "title": "Manual", "document_id": "manual.md", "cited": False},
        {"number": 3, "title": "Lost", "document_id": "lost.md", "cited": False},
    ]
    resources = [
        {"position": 1, "document_id": "guide.md", "content": "Press the <b>button."},
        {"position": 2, "document_id": "manual.md", "content": PASSAGE},
    ]
    shown = card(traced(tmp_path, variable("sources", sources), retrieved(*resources)), "Sources")
    first, second, third = shown.split("<li ")[1:]
    assert 'class="is-cited"' in first
    assert "<blockquote>Press the &lt;b&gt;button.</blockquote>" in first
    assert "is-cited" not in second
    assert f"<summary>Passage, {len(PASSAGE):,} characters</summary><blockquote>The long" in second
    assert "blockquote" not in third


def test_what_a_strategy_without_a_variable_retrieved_are_its_sources(tmp_path: Path) -> None:
    resource = {"position": 1, "document_id": "a.md", "content": "Words.", "dataset_name": "Shelf"}
    shown = card(traced(tmp_path, retrieved(resource)), "Sources")
    for words in ("<b>a.md</b>", "<small>Shelf</small>", "<blockquote>Words.</blockquote>"):
        assert words in shown


def test_the_page_has_what_the_node_gave_and_what_plugins_printed_and_a_tools_traceback(tmp_path: Path) -> None:
    provider = "devhost-tests/oddments/oddments"
    steps = [["shout", ["<b>weighing</b>"]], ["fail", "out of cheese"]]
    wants = {"call": {"provider": provider, "tool_name": "perform", "parameters": {"steps": json.dumps(steps)}}}
    file = traced(tmp_path, {"out": "before the call\n"}, wants, tools=[ODDMENTS])
    html = render_page(read_trace(file))
    words = " ".join(page_of(file).text.split())
    given = html.partition("<summary>Parameters of the node</summary>")[2].partition("</table>")[0]
    assert '<th scope="row">model</th>' in given
    assert '<th scope="row">query</th>' not in given, "the question is the page's heading"
    assert "Printed: 2 lines" in words
    assert "s puppet | before the call" in words
    assert "s oddments | <b>weighing</b>" in words
    assert words.count("ValueError: out of cheese, tools/perform.py:41") == 1
    assert "TracebackTraceback (most recent call last):" in words


# --- files ------------------------------------------------------------------------------------------------------------

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def blob(data: bytes, mime_type: str, name: str) -> JsonObject:
    message = {"blob": base64.b64encode(data).decode()}
    return {"emit": {"type": "blob", "message": message, "meta": {"mime_type": mime_type, "filename": name}}}


def test_pictures_are_embedded_others_linked_and_nothing_can_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [
        blob(PNG, "image/png", "chart one"),
        blob(b"a,b", "text/csv", "sales.csv"),
        blob(SVG, "image/svg+xml", "logo.svg"),
        blob(SVG, "image/png", "fake.png"),
        blob(b"<script>alert(1)</script>", "text/html", "<b>page.html"),
    ]
    script = tmp_path / "script.yaml"
    trace = tmp_path / "run.jsonl"
    (tmp_path / "letter.txt").write_text("Dear all")
    written = {"query": json.dumps(steps), "files": ["letter.txt"], "turns": [{"text": "unused"}]}
    script.write_text(yaml.safe_dump(written))
    assert main(["run", "--plugin", str(PUPPET), "--script", str(script), "--trace", str(trace)]) == 0
    assert main(["report", str(trace)]) == 0
    capsys.readouterr()

    page = harmless((tmp_path / "run.html").read_text(), pictures=1)

    assert base64.b64encode(PNG).decode() in page.fetched[1]
    assert page.links == ["run.files/chart%20one.png", "run.files/sales.csv", "run.files/fake.png"]
    for words in ("letter.txt", "chart one.png", "image/svg+xml · 71 bytes", "<b>page.html"):
        assert words in page.text, words


def shown(path: Path, folder: Path | None = None) -> ShownFile:
    return shown_file({"filename": "f", "mime_type": "image/png", "size": 1, "path": str(path)}, folder)


def test_a_path_in_a_trace_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(b"-----BEGIN PRIVATE KEY")
    assert shown(picture).picture == ""
    for path in ("gone.png", "a\0b", ".", 7):
        found = shown_file({"filename": "f", "size": 1, "path": path})
        assert (found.path, found.link, found.picture) == ("", "", "")
    picture.write_bytes(PNG)
    assert shown(picture).picture.startswith("data:image/png;base64,")
    monkeypatch.setattr(contents, "LARGEST", len(PNG) - 1)
    assert not shown(picture).picture
