"""Cards of the report page: sources with their passages, and what the node gave."""

import json
from pathlib import Path

import pytest

from devhost import Host, ScriptedModel
from devhost.page.page import LONGEST_PASSAGE, render_page
from devhost.protocol.wire import JsonObject
from devhost.trace.lines import read_trace
from support.plugins import PUPPET
from support.tracing import tracing

pytestmark = pytest.mark.usefixtures("lent_plugins")
LONG = "The long passage. " * LONGEST_PASSAGE


def resource(position: int, document: str, content: str, **more: object) -> JsonObject:
    return {"position": position, "document_id": document, "content": content, **more}


def variable(name: str, value: object) -> JsonObject:
    return {"emit": {"type": "variable", "message": {"variable_name": name, "variable_value": value}}}


def sent(*resources: JsonObject) -> JsonObject:
    message = {"retriever_resources": list(resources), "context": ""}
    return {"emit": {"type": "retriever_resources", "message": message}}


def page_of(folder: Path, *steps: JsonObject, **parameters: object) -> str:
    file = folder / "run.jsonl"
    with tracing(file) as writer, Host.start(PUPPET, watcher=writer) as host:
        given = {"query": json.dumps(steps), **parameters}
        host.run("puppet", given, model=ScriptedModel.of([{"text": "unused"}]))
    return render_page(read_trace(file))


def card(html: str, title: str) -> str:
    return html.partition(f'<section class="card"><h2>{title}</h2>')[2].partition("</section>")[0]


def test_a_source_shows_its_passage_and_whether_it_was_cited(tmp_path: Path) -> None:
    sources = [
        {"number": 1, "title": "Guide", "document_id": "guide.md", "score": 0.5, "cited": True},
        {"number": 2, "title": "Manual", "document_id": "manual.md", "score": 0.4, "cited": False},
        {"number": 3, "title": "Lost", "document_id": "lost.md", "cited": False},
    ]
    resources = [
        resource(1, "guide.md", "Press the <b>button."),
        resource(7, "manual.md", LONG, score=0.4),
        resource(3, "other.md", "Of another document."),
    ]
    shown = card(page_of(tmp_path, variable("sources", sources), sent(*resources)), "Sources")
    first, second, third = shown.split("<li ")[1:]
    assert 'class="is-cited"' in first
    assert "<blockquote>Press the &lt;b&gt;button.</blockquote>" in first
    assert "is-cited" not in second
    assert f"<summary>Passage, {len(LONG):,} characters</summary><blockquote>The long" in second
    assert "blockquote" not in third


def test_what_a_strategy_without_a_variable_retrieved_are_its_sources(tmp_path: Path) -> None:
    shown = card(page_of(tmp_path, sent(resource(1, "a.md", "Words.", dataset_name="Shelf"))), "Sources")
    assert "<b>a.md</b>" in shown
    assert "<small>Shelf</small>" in shown
    assert "<blockquote>Words.</blockquote>" in shown


def test_what_the_node_gave_the_strategy_is_on_the_page(tmp_path: Path) -> None:
    html = page_of(tmp_path, variable("a", 1))
    shown = html.partition("<summary>Parameters of the node</summary>")[2].partition("</table>")[0]
    assert '<th scope="row">model</th>' in shown
    assert "scripted-gpt-5" in shown
    assert '<th scope="row">query</th>' not in shown, "the question is the page's heading"
