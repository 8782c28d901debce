"""The page that `report` makes: what is on it, and that it can do no harm."""

import json
import re
from collections.abc import Sequence
from html import unescape
from pathlib import Path

import pytest

from devhost import FunctionTool, Host, ScriptedModel
from devhost.cli.commands import main
from devhost.console.listing import NEEDED
from devhost.models.backend import chunk, tool_call
from devhost.node.outputs.run import ANSWERED, STOPPED
from devhost.page.calls import retrieved
from devhost.page.contents import passages, written
from devhost.page.page import LONGEST, clip, render_page
from devhost.protocol.wire import JsonObject
from devhost.trace.lines import read_trace
from devhost.trace.runs import AnswerPiece, Call, run_of, traced_runs, written_calls
from internal.errors import StopReason
from support.page_reading import VILE, harmless, page_of
from support.plugins import FIXTURES, PUPPET, TOOLBOX
from support.tracing import remove_files, tracing
from tests.devhost import ROOT

pytestmark = pytest.mark.usefixtures("lent_plugins")


def test_the_page_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "run.jsonl"
    arguments = ["--example", "toolbox", "--plugin", str(PUPPET), "--examples", str(FIXTURES)]
    assert main(["run", *arguments, "--no-color", "--trace", str(trace)]) == 0
    remove_files(capsys.readouterr().out)
    assert main(["report", str(trace), "-o", str(tmp_path / "page.html")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'page.html'}\n"
    page = harmless((tmp_path / "page.html").read_text())
    for words in (
        "scripted model: the answers are written in ",
        "toolbox/script.yaml, no provider is called",
        "ROUND 1",
        "CALL draw",
        "it broke",
        '"size": 9000',
        "Result: image link",
        "hmm, let me think",
        "The answer is 42.",
        "picture.png",
        "image/png · 9,000 bytes",
        "→ 5 tokens",
        "finished with stop",
        "Dify's Agent node drops retriever resources (seen up to 1.17.0); this run sent 1.",
    ):
        assert words in page.text, words


LOOK = FunctionTool("look", {"number": "number"}, lambda given: f"found {given['number']}")


def wants(call_id: str, number: str) -> JsonObject:
    return {"name": "look", "id": call_id, "arguments": {"number": number}}


def run_of_the_agent(file: Path, turns: Sequence[JsonObject], tool: FunctionTool = LOOK, **parameters: object) -> str:
    with tracing(file) as writer, Host.start(ROOT, watcher=writer) as host:
        given = {"query": "Look.", **parameters}
        host.run("gpt5_function_calling", given, model=ScriptedModel.of(list(turns)), tools=[tool])
    return render_page(read_trace(file))


def row_of(html: str, label: str, position: int = 0) -> str:
    """What a row holds, without the rows after it."""
    rows = [row for row in html.split('<details class="span ')[1:] if f"<b>{label}</b>" in row]
    return rows[position].partition("</details>\n\n")[0]


def test_a_refused_call_and_a_good_one_of_the_same_turn_are_told_apart(tmp_path: Path) -> None:
    turns: list[JsonObject] = [{"tool_calls": [wants("call_a", "one"), wants("call_b", "2")]}, {"text": "Done."}]
    html = run_of_the_agent(tmp_path / "run.jsonl", turns)
    refused = row_of(html, "CALL look", 0)
    good = row_of(html, "CALL look", 1)

    for words in (
        '<small class="why">not run: parameter &#39;number&#39; must be a number, got a string</small>',
        "<h3>Arguments, not sent</h3>",
        "&#34;number&#34;: &#34;one&#34;",
        "<h3>What the model read</h3>",
    ):
        assert words in refused
    for words in (
        "&#34;number&#34;: &#34;2&#34;",
        "<h3>Added or changed on the way to the tool</h3>",
        "&#34;number&#34;: 2",
        "found 2",
    ):
        assert words in good
    assert '<dt>Tool calls</dt><dd>2 <small class="bad">1 refused</small></dd>' in html
    assert "2 tool calls (1 refused)</small>" in html, "beside the round"
    assert "found 2" not in refused
    (schema,) = re.findall(r"<summary>look</summary>.*?<pre[^>]*>(.*?)</pre>", html, re.DOTALL)
    assert json.loads(unescape(schema))["properties"] == {"number": {"type": "number"}}


def test_a_run_that_ended_at_a_limit_is_not_shown_as_good(tmp_path: Path) -> None:
    turns: list[JsonObject] = [{"tool_calls": [wants("call_a", "1")]}, {"text": "No more."}]
    html = run_of_the_agent(tmp_path / "run.jsonl", turns, maximum_iterations=1)
    assert '<dd class="limited">stopped at the limit of rounds <small>iteration_limit</small></dd>' in html


def test_a_run_whose_calls_all_failed_is_not_shown_as_good_nor_in_the_list_of_runs(tmp_path: Path) -> None:
    turns: list[JsonObject] = [{"tool_calls": [wants("call_a", "one"), wants("call_b", "2")]}, {"text": "Done."}]
    broken = FunctionTool("look", {"number": "number"}, lambda given: str({}[given["number"]]))
    html = run_of_the_agent(tmp_path / "run.jsonl", turns, broken)
    assert '<dd class="limited">finished without a successful tool call</dd>' in html
    assert '<dt>Tool calls</dt><dd>2 <small class="bad">1 failed, 1 refused</small></dd>' in html
    assert '<small class="why">KeyError: 2</small>' in html
    (run,) = traced_runs(read_trace(tmp_path / "run.jsonl", NEEDED))
    assert run_of(run, "").ending.words == "finished without a successful tool call"


def test_every_stop_reason_of_this_repository_has_words() -> None:
    reasons = {reason.value for reason in StopReason} - {ANSWERED}
    assert STOPPED.keys() == reasons, "STOPPED in devhost/src/devhost/node/outputs/run.py has to name these reasons"


CALLS = [tool_call("c1", "look", '{"word": "www"}'), tool_call("c2", "look", '{"word": "ww"}')]
FRAGMENTS = [
    *([tool_call("c1", "look", '{"wo')], [tool_call("", "", 'rd": "www"}')]),
    *([tool_call("c2", "look", "")], [tool_call("", "", '{"word": "ww"}')]),
]
SNAPSHOTS = [[tool_call("c1", "look", '{"wo')], [CALLS[0]], [CALLS[0], tool_call("c2", "look", '{"w')], CALLS, CALLS]


@pytest.mark.parametrize("pieces", [[CALLS], [[call] for call in CALLS], FRAGMENTS, SNAPSHOTS])
def test_the_calls_that_a_model_wrote_are_put_together(pieces: list[list[JsonObject]]) -> None:
    call = Call("p", "llm", {}, 0.0, pieces=[AnswerPiece(0.0, chunk("m", tool_calls=calls)) for calls in pieces])
    assert [(each.name, each.id, each.values) for each in written_calls(call)] == [
        ("look", "c1", {"word": "www"}),
        ("look", "c2", {"word": "ww"}),
    ]


def test_nothing_that_comes_from_outside_becomes_markup(tmp_path: Path) -> None:
    trace = tmp_path / "run.jsonl"
    source = {"number": 1, "title": VILE, "document_id": "javascript:alert(1)", "cited": True}
    steps: list[dict[str, object]] = [
        {"emit": {"type": "log", "message": {"id": "1", "label": VILE, "status": "start", "data": {VILE: VILE}}}},
        {"emit": {"type": "variable", "message": {"variable_name": "sources", "variable_value": [source]}}},
        {"emit": {"type": "variable", "message": {"variable_name": VILE, "variable_value": VILE}}},
        {"emit": {"type": "variable", "message": {"variable_name": "usage", "variable_value": {"total_tokens": VILE}}}},
        {"ask": VILE},
        {
            "say": f"<think>{VILE}</think>![p](https://evil.example/p.png) [l](javascript:alert(1)) [1] [ok](https://e.example)"
        },
        {"call": {"provider": "devhost-tests/toolbox/toolbox", "tool_name": "repeat", "parameters": {"word": VILE}}},
        {"fail": VILE},
    ]
    with tracing(trace, example=VILE) as writer, Host.start(PUPPET, tools=[TOOLBOX], watcher=writer) as host:
        host.run("puppet", {"query": json.dumps(steps)}, model=ScriptedModel.of([{"text": VILE}]))
    page = page_of(trace)
    assert "ValueError" in page.text
    assert page.text.count("<script>alert(1)</script>") >= 8
    assert page.links == ["https://evil.example/p.png", "#source-1-1", "https://e.example"]


def test_the_answer_is_markdown() -> None:
    sources = retrieved([{"position": 1}, {"position": 2}, {"position": 2}])
    thought, speech = passages("<think>a *b*</think>**c** [1], [2] and `[1]`\n\n|x|y|\n|-|-|\n|1|2|", sources, "s-")
    assert (thought.is_thought, thought.html) == (True, "<p>a <em>b</em></p>\n")
    assert '<p><strong>c</strong> <a class="cite" href="#s-1">1</a>, [2] and <code>[1]</code></p>' in speech.html
    assert "<td>2</td>" in speech.html


def test_an_answer_in_json_is_code() -> None:
    (speech,) = passages('{"a": [1, 2]}', [], "s-")
    assert speech.html.startswith("<pre><code>{\n  &quot;a&quot;: [")


def test_long_texts_and_control_characters_are_cut() -> None:
    assert clip("a\x1b[2J\tb\n") == "a�[2J\tb\n"
    assert clip("x" * (LONGEST + 5)).endswith("x\n… 5 more characters in the trace")


def test_durations() -> None:
    shown = [written(seconds) for seconds in (0, 0.0002, 0.006, 0.9996, 1.84, 12.34, 59.97, 125)]
    assert shown == ["0 ms", "<1 ms", "6 ms", "1 s", "1.84 s", "12.3 s", "1 min", "2 min 5 s"]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "run.jsonl"
    with tracing(file):
        pass
    return file


def test_only_a_page_of_devhosts_is_overwritten(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = trace.with_suffix(".html")
    arguments = ["report", str(trace)]
    page.write_text("<!doctype html><title>my own · devhost</title>")

    assert main(arguments) == 2
    assert "run.html exists and is not a page that devhost made" in capsys.readouterr().err
    assert "my own" in page.read_text()

    assert main([*arguments, "--force"]) == 0
    assert "my own" not in page.read_text()
    assert main(arguments) == 0
    assert main([*arguments, "-o", str(trace)]) == 2
    assert f"{trace} is the trace itself" in capsys.readouterr().err


def test_the_page_can_go_to_standard_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trace = tmp_path / "run.jsonl"
    with tracing(trace) as writer:
        writer.remark("half a character: \ud83d")
    assert main(["report", str(trace), "-o", "-"]) == 0
    assert "</html>" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == [trace]
