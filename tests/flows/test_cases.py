"""A script that names its flow is a case, for `devhost flow` and `devhost eval`, with a sentence for each failure."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from devhost.cli.commands import main
from devhost.flow.cases import failed_expectations
from devhost.host.host import Host
from devhost.trace.lines import read_trace
from fake_openai import KEY, FakeOpenAI, Turn
from support.flow_documents import START, answer, chain, chatflow, llm
from tests.flows.playing import WORKFLOWS

type Write = Callable[..., Path]
SAYS = {"ask": [{"text": "Two."}]}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a case beside a chatflow that asks a model."""
    chatflow(tmp_path, [START, llm("ask"), answer("{{#ask.text#}}")], chain("start", "ask", "answer"))

    def written(**script: Any) -> Path:  # noqa: ANN401 - plain data
        file = tmp_path / "case.yaml"
        file.write_text(yaml.safe_dump({"flow": "flow.yml", "query": "How many?", "models": SAYS, **script}), "utf-8")
        return file

    return written


def test_a_case_needs_no_file(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    case = write(expect={"answer": "Two."}, then=[{"query": "And?", "models": SAYS, "expect": {"ran": "Ask"}}])

    assert main(["flow", "--script", str(case)]) == 0
    said = capsys.readouterr().out
    assert said.count("every expectation fits") == 2
    assert said.endswith("\nall 2 turns passed\n")


def test_an_expectation_that_fails_is_told_and_ends_the_command_with_1(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace.jsonl"
    expect = {"answer": "Three.", "nodes": {"ask": {"outputs": {"text": {"lacks": "Two"}}}}}
    case = write(expect={}, then=[{"query": "And?", "models": SAYS, "expect": expect}])
    sentences = [
        "turn 2 (And?): answer equals: expected Three.; found Two.",
        "turn 2 (And?): node 'Ask' (ask): output text lacks: expected Two; found Two.",
    ]

    assert main(["flow", "--script", str(case), "--trace", str(trace)]) == 1
    told = ["expectations that failed: 2", *sentences]
    assert "\n".join([*told, "1 of 2 turns failed"]) in capsys.readouterr().out
    assert main(["replay", str(trace)]) == 0
    assert capsys.readouterr().out.endswith("\n".join([*told, ""]))
    assert read_trace(trace).header.model.notice.startswith("scripted model: ")
    assert main(["flow", "--script", str(case), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["failed_expectations"] == sentences
    assert report["earlier_turns"][0]["failed_expectations"] == []
    assert failed_expectations(case) == sentences


def test_a_turn_has_to_succeed_unless_something_else_is_expected(write: Write) -> None:
    failing = {"ask": [{"error": {"type": "InvokeAuthorizationError", "message": "no such key"}}]}

    assert main(["flow", "--script", str(write(models=failing))]) == 1
    (sentence,) = failed_expectations(write(models=failing))
    assert sentence.startswith("turn 1 (How many?): status: expected succeeded or partial-succeeded; found failed (")
    expect = {"status": "failed", "error": {"contains": "no such key"}, "not_run": "answer"}
    assert main(["flow", "--script", str(write(models=failing, expect=expect))]) == 0


def test_several_cases_share_a_host(office: Host) -> None:
    for _ in range(2):
        assert failed_expectations(WORKFLOWS / "cases" / "approval.yaml", office) == []


GOOD = {"name": "good", "script": "good.yaml"}


@pytest.fixture
def suite(write: Write, tmp_path: Path) -> Write:
    """Writes a file of cases, beside two scripts of the chatflow: one that fits and one that does not."""
    good = write(expect={"answer": "Two."}).rename(tmp_path / "good.yaml")
    then = [{"query": "And?", "models": SAYS, "expect": {"answer": "Three."}}]
    write(**yaml.safe_load(good.read_text("utf-8")), then=then).rename(tmp_path / "bad.yaml")

    def written(*cases: object, **keys: object) -> Path:
        file = tmp_path / "cases.yaml"
        file.write_text(yaml.safe_dump({"cases": list(cases), **keys}), "utf-8")
        return file

    return written


def evaluated(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int) -> dict[str, Any]:
    assert main(["eval", *map(str, arguments), "--json"]) == code
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


def test_a_row_says_what_the_user_of_a_flow_says_and_what_its_start_node_gets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What follows in the script was written for its own words, and is left out."""
    field = {"variable": "city", "label": "city", "type": "text-input", "required": True}
    start = {**START, "data": {**START["data"], "variables": [field]}}
    said = answer("{{#start.city#}}: {{#sys.query#}}")
    chatflow(tmp_path, [start, said], chain("start", "answer"))
    script = {"flow": "flow.yml", "query": "Own?", "inputs": {"city": "Nara"}, "then": [{"query": "And?"}]}
    (tmp_path / "talk.yaml").write_text(yaml.safe_dump(script), "utf-8")
    rows = "query,inputs.city,expect.text.equals\nWhy?,Kyoto,Kyoto: Why?\n,Osaka,Osaka: Own?\n,,Nara: And?\n"
    (tmp_path / "rows.csv").write_text(rows, "utf-8")
    file = tmp_path / "cases.yaml"
    file.write_text(yaml.safe_dump({"cases": [{"rows": "rows.csv", "script": "talk.yaml"}]}), "utf-8")

    report = evaluated(capsys, file, code=0)

    assert [cell["passed"] for cell in report["cells"]] == [True] * 3


def test_flows_are_cases(suite: Write, capsys: pytest.CaptureFixture[str]) -> None:
    brief = {"name": "brief", "script": "good.yaml", "expect": {"text": {"contains": "Two"}, "tokens": 1}}
    file = suite("good.yaml", "bad.yaml", brief, repeats=2)

    report = evaluated(capsys, file, code=1)

    cells = {cell["name"]: cell for cell in report["cells"]}
    assert {name: cell["passed"] for name, cell in cells.items()} == {"good": True, "bad": False, "brief": False}
    failed = {
        name: [f"{check['name']}: {check['found']}" for check in cell["results"][0]["checks"] if check["found"]]
        for name, cell in cells.items()
    }
    assert failed["bad"] == ["turn 2 (And?): answer equals: Two."]
    assert failed["brief"] == ["tokens: 22"]
    observed = cells["bad"]["results"][0]["observed"]
    assert (observed["text"], observed["tokens"], observed["error"]) == ("Two.", 42, None)


def test_a_script_alone_is_a_case(suite: Write, capsys: pytest.CaptureFixture[str]) -> None:
    script = suite(GOOD).with_name("good.yaml")

    assert [cell["name"] for cell in evaluated(capsys, script, code=0)["cells"]] == ["good"]


def test_columns_name_models_behind_an_api(
    suite: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = suite(GOOD, columns=[{"name": name, "model": name} for name in ("gpt-4.1", "gpt-4.1-mini")])
    with FakeOpenAI() as fake:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
        fake.will(Turn(text="Two."), Turn(text="Many."))
        report = evaluated(capsys, file, "--jobs", "1", code=1)

    assert [(cell["column"], cell["passed"]) for cell in report["cells"]] == [
        ("gpt-4.1", True),
        ("gpt-4.1-mini", False),
    ]
    assert [sent["model"] for _, sent in fake.requests] == ["gpt-4.1", "gpt-4.1-mini"]


@pytest.mark.parametrize(
    ("cases", "keys", "sentence"),
    [
        (
            [GOOD, {"name": "x", "query": "?", "expect": {}}],
            {},
            "good play flows, and x a strategy: write them into files",
        ),
        ([GOOD], {"params": {"a": 1}}, "case 'good', column 'default': params: a flow has none"),
        ([{**GOOD, "inputs": {"city": "Kyoto"}}], {}, "--input city: the Start node has no such field"),
        ([{"name": "gone", "script": "gone.yaml"}], {}, "gone.yaml cannot be read"),
    ],
)
def test_a_mistake_is_one_sentence(
    cases: list[object], keys: dict[str, Any], sentence: str, suite: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", str(suite(*cases, **keys))]) == 2
    assert sentence in capsys.readouterr().err
