"""`devhost eval` with flows: scripts that name their flow are cases, each with what its turns expect."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from devhost.cli.commands import main
from fake_openai import KEY, FakeOpenAI, Turn
from support.flow_documents import START, answer, chain, chatflow, llm

type Write = Callable[..., Path]
SAYS = {"ask": [{"text": "Two."}]}
GOOD = {"name": "good", "script": "good.yaml"}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file of cases, beside a chatflow and two scripts of it: one that fits and one that does not."""
    chatflow(tmp_path, [START, llm("ask"), answer("{{#ask.text#}}")], chain("start", "ask", "answer"))
    script = {"flow": "flow.yml", "query": "How many?", "models": SAYS, "expect": {"answer": "Two."}}
    then = [{"query": "And?", "models": SAYS, "expect": {"answer": "Three."}}]
    (tmp_path / "good.yaml").write_text(yaml.safe_dump(script), "utf-8")
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump({**script, "then": then}), "utf-8")

    def written(*cases: object, **keys: object) -> Path:
        file = tmp_path / "cases.yaml"
        file.write_text(yaml.safe_dump({"cases": list(cases), **keys}), "utf-8")
        return file

    return written


def evaluated(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int) -> dict[str, Any]:
    assert main(["eval", *map(str, arguments), "--json"]) == code
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


def test_flows_are_cases(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    brief = {"name": "brief", "script": "good.yaml", "expect": {"text": {"contains": "Two"}, "tokens": 1}}
    file = write("good.yaml", "bad.yaml", brief, repeats=2)

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


def test_a_script_alone_is_a_case(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    script = write(GOOD).with_name("good.yaml")

    assert [cell["name"] for cell in evaluated(capsys, script, code=0)["cells"]] == ["good"]


def test_columns_name_models_behind_an_api(
    write: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(GOOD, columns=[{"name": name, "model": name} for name in ("gpt-4.1", "gpt-4.1-mini")])
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
        ([{**GOOD, "query": "?"}], {}, "query: a flow has none: its file and its script say what is played"),
        ([{"name": "gone", "script": "gone.yaml"}], {}, "gone.yaml cannot be read"),
    ],
)
def test_a_mistake_is_one_sentence(
    cases: list[object], keys: dict[str, Any], sentence: str, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", str(write(*cases, **keys))]) == 2
    assert sentence in capsys.readouterr().err
