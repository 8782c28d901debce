"""`devhost record`: a traced run as a case that runs again without its tools and without a model."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from devhost import Host, ScriptedModel
from devhost.cli.commands import main
from devhost.recording.turns import settings
from devhost.trace.lines import read_trace
from devhost.trace.runs import Call, traced_runs, written_calls
from fake_openai import KEY, FakeOpenAI, Tokens
from fake_openai import Call as ModelsCall
from fake_openai import Turn as ModelsTurn
from support.charts import API_KEY
from support.plugins import CHARTS, PUPPET, TOOLBOX
from support.tracing import tracing

pytestmark = pytest.mark.usefixtures("without_pauses", "lent_plugins")

DRAW = {"provider": "devhost-tests/toolbox/toolbox", "tool_name": "draw", "parameters": {"size": 9000}}
type Play = Callable[..., dict[str, Any]]


@pytest.fixture
def play(capsys: pytest.CaptureFixture[str]) -> Play:
    """A command's `--json`."""

    def play(*arguments: str | Path, code: int = 0) -> dict[str, Any]:
        assert main(["run", *map(str, arguments), "--json", "--no-color"]) == code, capsys.readouterr().err
        told: dict[str, Any] = json.loads(capsys.readouterr().out)
        return told

    return play


def script(file: Path, **keys: object) -> Path:
    file.write_text(yaml.safe_dump(keys, allow_unicode=True))
    return file


def case_of(trace: Path, capsys: pytest.CaptureFixture[str]) -> tuple[Path, str]:
    """The case of a trace, in a folder of its own, and what was said not to be in it."""
    folder = trace.parent / "cases"
    folder.mkdir(exist_ok=True)
    case = folder / "case.yaml"
    assert main(["record", str(trace), "-o", str(case), "--force"]) == 0, capsys.readouterr().err
    said = capsys.readouterr()
    assert said.out == f"{case}\n"
    return case, said.err


def outcome(told: dict[str, Any]) -> dict[str, Any]:
    """What has to be the same in both runs: all but times, and ids that each run makes up."""
    variables = {name: value for name, value in told["variables"].items() if name != "state"}
    for calls in (variables.get("tool_runs"), variables.get("subtasks")):
        for call in calls if isinstance(calls, list) else []:
            call.pop("elapsed_seconds", None)
    if "tool_runs" in variables:  # which of the subtasks side by side ends first depends on how busy the machine is
        variables["tool_runs"] = sorted(variables["tool_runs"], key=lambda call: str(call.get("subtask")))
    files = [{key: file[key] for key in ("filename", "mime_type", "size", "type")} for file in told["files"]]
    return {
        **{
            name: told[name]
            for name in ("text", "usage", "findings", "error", "strategy", "dropped_retriever_resources")
        },
        "variables": variables,
        "files": files,
        "earlier": [outcome(earlier) for earlier in told.get("earlier_turns", [])],
    }


def calls_of(trace: Path) -> list[list[Any]]:
    """By run: what the model wrote, what the tools were given and what the strategy got of them."""
    return [
        sorted(
            (_call(call) for call in run.calls if not call.parent), key=lambda call: json.dumps(call, sort_keys=True)
        )
        for run in traced_runs(read_trace(trace))
    ]


def _call(call: Call) -> list[Any]:
    if call.kind == "llm":
        return ["llm", call.error, [[each.name, each.id, each.values] for each in written_calls(call)]]
    said = [piece.data["message"] for piece in call.pieces if piece.data["type"] not in {"image_link", "binary_link"}]
    return [call.name, call.error, call.request["tool_parameters"], len(call.pieces), said]


HELP = ["--example", "helpdesk"]
EXAMPLES = {
    "parallel calls": HELP,
    "subtasks side by side": [*HELP, "--scenario", "two-topics", "--strategy", "gpt5_plan_and_reflect"],
    "answer in a schema": [*HELP, "--scenario", "as-data"],
    "approval": ["--example", "injection", "--scenario", "mail"],
}


@pytest.mark.parametrize("arguments", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_a_case_runs_as_its_trace(
    arguments: list[str],
    tmp_path: Path,
    play: Play,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OFFICE_DIRECTORY", str(tmp_path))
    first = tmp_path / "first.jsonl"
    again = tmp_path / "again.jsonl"
    told = play(*arguments, "--trace", first)
    case, lacks = case_of(first, capsys)
    assert lacks == ""

    told_again = play("--script", case, "--trace", again)

    assert outcome(told_again) == outcome(told)
    assert calls_of(again) == calls_of(first)
    assert any("tools that answer from a recording" in notice for notice in told_again["notices"])


def test_what_a_case_expects_is_checked(tmp_path: Path, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    """Not where another question is asked, or only the first one."""
    play(*EXAMPLES["approval"], "--trace", tmp_path / "run.jsonl")
    case, _ = case_of(tmp_path / "run.jsonl", capsys)
    written = yaml.safe_load(case.read_text())
    assert written["expect"].keys() == {"text", "calls", "stop_reason"}
    assert play("--script", case)["failed_expectations"] == []

    script(case, **{**written, "expect": {**written["expect"], "stop_reason": "empty"}})

    (sentence,) = play("--script", case, code=1)["failed_expectations"]
    assert sentence == "stop_reason: expected empty; found answered"
    assert "failed_expectations" not in play("--script", case, "--alone")
    script(case, **{**written, "expect": {"txt": "x"}})
    assert "case.yaml: expect: unknown key 'txt'" in refusal(["run", "--script", case], capsys)


@pytest.mark.parametrize(
    "turn",
    [
        {"error": {"type": "InvokeRateLimitError", "message": "slow", "after_chunks": 1}},
        {"api_fails": "closes_mid_chunk"},
    ],
)
def test_failures_are_recorded_in_the_words_that_the_strategy_read(
    turn: dict[str, object], tmp_path: Path, play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [{"call": DRAW}, {"ask": "?"}]
    turns = [{"text": ["I ", "wait"], **turn}]
    fails = {"draw": "http_500"}
    given = script(tmp_path / "s.yaml", query=json.dumps(steps), turns=turns, api_fails=fails)
    first = tmp_path / "first.jsonl"
    again = tmp_path / "again.jsonl"
    puppet = ("--plugin", PUPPET, "--tools", TOOLBOX)
    told = play(*puppet, "--script", given, "--trace", first, code=1)
    case, _ = case_of(first, capsys)

    told_again = play("--plugin", PUPPET, "--script", case, "--trace", again)  # as it is expected to fail

    assert [told_again["text"], told_again["error"]["message"]] == [told["text"], told["error"]["message"]]
    assert calls_of(again) == calls_of(first)


def test_files_go_in_and_come_out_as_in_the_trace(
    tmp_path: Path, play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "letter.txt").write_text("Dear all")
    steps = [{"show_parameters": None}, {"call": DRAW}, {"ask": "and?"}, {"ask": "again?"}]
    turns = [{"text": "It shows {{query}}"}, {"text": "No more."}]
    given = script(tmp_path / "s.yaml", query=json.dumps(steps), files=["letter.txt"], turns=turns)
    first = tmp_path / "first.jsonl"
    again = tmp_path / "again.jsonl"
    puppet = ("--plugin", PUPPET)
    told = play(*puppet, "--tools", TOOLBOX, "--script", given, "--trace", first)
    (tmp_path / "letter.txt").unlink()
    case, lacks = case_of(first, capsys)
    assert lacks == ""
    for file in (tmp_path / "first.files").rglob("*.*"):
        file.unlink()

    told_again = play(*puppet, "--script", case, "--trace", again)

    (file,) = told_again["files"]
    assert Path(file["path"]).read_bytes() == b"P" * 9000
    (sent,) = told_again["variables"]["parameters"]["files"]
    assert (sent["filename"], sent["size"]) == ("letter.txt", len("Dear all"))
    assert [told_again[key] for key in ("text", "usage", "dropped_retriever_resources")] == [
        told[key] for key in ("text", "usage", "dropped_retriever_resources")
    ]
    assert calls_of(again) == calls_of(first)


def test_what_is_not_in_the_recording_is_said(tmp_path: Path, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "letter.txt").write_text("Dear all")
    steps = [{"call": DRAW}, {"ask": "and?"}]
    given = script(tmp_path / "s.yaml", query=json.dumps(steps), files=["letter.txt"], turns=[{"text": "Yes."}])
    trace = tmp_path / "run.jsonl"
    play("--plugin", PUPPET, "--tools", TOOLBOX, "--script", given, "--trace", trace)
    for file in (tmp_path / "run.files").rglob("*.*"):
        file.unlink()

    case, lacks = case_of(trace, capsys)

    names = [line.split()[4].rstrip(":") for line in lacks.splitlines()]
    assert sorted(names) == ["letter.txt", "picture.png"]
    assert case.read_text().count("# Not recorded: the file") == 2
    told = play("--plugin", PUPPET, "--script", case)
    assert told["error"] is None
    (message,) = [each for each in told["variables"]["tool_messages"] if each["type"] == "text"]
    assert message["message"]["text"] == "[The file picture.png is not in the recording.]"


def test_the_same_call_has_the_recorded_answers_in_their_order_and_then_the_last_one(
    tmp_path: Path, play: Play
) -> None:
    tool = {"identity": {"name": "count", "provider": "a/b/c"}, "parameters": [], "runtime_parameters": {}}
    answers: list[dict[str, object]] = [{"answer": [{"text": "one"}]}, {"answer": [{"json": {"count": 2}}]}]
    calls = [{"tool": "count", "provider": "a/b/c", "arguments": {"by": 1.0}, **answer} for answer in answers]
    step = {"call": {"provider": "a/b/c", "tool_name": "count", "parameters": {"by": 1}}}
    recorded = {"calls": calls, "tools": [tool]}
    query = json.dumps([step, {"emit": {"type": "text", "message": {"text": ""}}}])
    steps = [query, json.dumps([step]), json.dumps([step])]
    then = [{"query": query, "turns": [{"text": "unused"}]} for query in steps[1:]]
    given = script(tmp_path / "s.yaml", query=query, turns=[{"text": "-"}], then=then, recorded=recorded)

    told = play("--plugin", PUPPET, "--script", given)

    runs = [*told["earlier_turns"], told]
    said = [message["message"] for run in runs for message in run["variables"]["tool_messages"]]
    assert said == [{"text": "one"}, {"json_object": {"count": 2}}, {"json_object": {"count": 2}}]


def test_values_that_look_like_references_are_variables_of_the_case() -> None:
    context = [{"content": "{{#sys.query#}} is a template"}]

    known = settings({"query": "?", "instruction": "Say {{#sys.query#}}", "context": context, "plain": "{{query}}"})

    variables = {name: {"variable": f"recorded.{name}"} for name in ("instruction", "context")}
    assert known["params"] == {**variables, "plain": "{{query}}"}
    assert known["variables"] == {"recorded.instruction": "Say {{#sys.query#}}", "recorded.context": context}


def test_secrets_stay_hidden(tmp_path: Path, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "run.jsonl"
    call = {"name": "draw_chart", "id": "c", "arguments": {"title": "Sales", "values": "1,2"}}
    turns = [{"tool_calls": [call]}, {"text": f"The key is {API_KEY}."}]
    given = script(tmp_path / "s.yaml", query="draw", turns=turns)
    key = ["--credential", f"charts.api_key={API_KEY}", "--set", "draw_chart.signature=signed by me"]
    told = play("--tools", CHARTS, *key, "--script", given, "--trace", trace)

    case, _ = case_of(trace, capsys)

    assert "signed by me" not in case.read_text()
    assert API_KEY not in case.read_text()
    again = play("--script", case)
    assert outcome(again)["files"] == outcome(told)["files"]
    assert "The key is [secret]." in case.read_text()


# --- what cannot be recorded -----------------------------------------------------------------------------------------


def refusal(arguments: list[str | Path], capsys: pytest.CaptureFixture[str]) -> str:
    assert main([*map(str, arguments)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("Error: ")
    assert said.err.count("\n") == 1
    return said.err


def test_a_trace_without_a_run_that_ended_and_asked_a_model_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "run.jsonl"
    with tracing(trace) as writer, Host.start(PUPPET, watcher=writer) as host:
        host.run("puppet", {"query": json.dumps([{"say": "Hi"}])}, model=ScriptedModel.of([{"text": "-"}]))
    assert "a case needs a run that ended, and that asked its model" in refusal(["record", trace], capsys)

    with tracing(trace) as writer:
        writer.notice("not started: the plugin has no manifest")
    assert "has no run: not started: the plugin has no manifest" in refusal(["record", trace], capsys)


def test_a_file_that_exists_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "run.jsonl"
    mine = tmp_path / "mine.yaml"
    mine.write_text("query: mine")
    with tracing(trace):
        pass
    assert f"{mine} exists: name another file with -o, or give --force" in refusal(
        ["record", trace, "-o", mine], capsys
    )
    assert mine.read_text() == "query: mine"


# --- models behind an API, and conversations -------------------------------------------------------------------------


def test_a_run_of_a_real_model_needs_none_again(
    tmp_path: Path, play: Play, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tmp_path / "first.jsonl"
    again = tmp_path / "again.jsonl"
    calls = (
        ModelsCall("search_manual", {"terms": "備份 größe"}, id="call_a"),
        ModelsCall("search_qa", {}, id="call_b"),
    )
    tokens = Tokens(prompt=1_000, completion=100, reasoning=64)
    with FakeOpenAI() as fake, monkeypatch.context() as environment:
        environment.setenv("OPENAI_API_KEY", KEY)
        environment.setenv("OPENAI_BASE_URL", fake.base_url)
        fake.will(ModelsTurn(text="I look both up.", calls=calls, tokens=tokens), ModelsTurn(text="Both found."))
        told = play(*HELP, "--model", "gpt-5", "--trace", first)
    case, lacks = case_of(first, capsys)
    assert lacks == ""

    told_again = play("--script", case, "--trace", again)

    assert outcome(told_again) == outcome(told)
    assert calls_of(again) == calls_of(first)
    assert told["usage"]["total_price"] != "0"
    assert told_again["model"]["name"] == "gpt-5"


def test_of_a_chat_the_last_conversation_is_recorded(
    tmp_path: Path, play: Play, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "run.jsonl"
    typed = ["What is a space?", "/reset", "And backups?", "And backups?", ""]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(typed)))
    assert main(["chat", *HELP, "--no-color", "--trace", str(trace)]) == 0
    capsys.readouterr()

    case, lacks = case_of(trace, capsys)

    assert lacks.startswith("not recorded: 1 run of earlier conversations, or without an end")
    told = play("--script", case)
    assert len(told["earlier_turns"]) == 1
