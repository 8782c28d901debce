"""`devhost tool`: one tool, without an agent."""

import json
import re
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from devhost import ParameterError, call_one_tool, start_tools
from devhost.cli.commands import main
from devhost.direct import schema_findings
from devhost.files import LocalFile
from devhost.plugin.declaration import PluginDeclaration
from support.breaches import RETURNS, YIELDS, written
from support.charts import API_KEY
from support.plugins import CHARTS, ODDMENTS, PUPPET, TOOLBOX

PROVIDER = "devhost-tests/oddments/oddments"

pytestmark = pytest.mark.usefixtures("lent_plugins")


def called(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[dict[str, Any], str]:
    """The object of --json, and what people read."""
    assert main(["tool", "--json", "--no-color", *arguments]) == code
    said = capsys.readouterr()
    report = json.loads(said.out)
    for file in report["files"]:
        Path(file["path"]).unlink()
        Path(file["path"]).parent.rmdir()
    return report, said.err


def steps(*pairs: tuple[str, object]) -> list[str]:
    return ["--tools", str(ODDMENTS), "perform", "--arg", f"steps={json.dumps(pairs)}"]


def rules(report: dict[str, Any]) -> list[str]:
    return [finding["rule"] for finding in report["findings"]]


def test_without_a_name_the_tools_are_listed_with_their_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tool", "--tools", str(TOOLBOX), "--tools", str(ODDMENTS), "--no-color"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "tool toolbox/repeat  Says a word several times"
    assert [line.split()[0] for line in lines[1:4]] == ["word", "times", "separator"]
    assert "number, at least 1, default 2" in lines[2]
    assert "set in the panel" in lines[3]
    (weigh,) = [line for line in lines if line.startswith("tool oddments/weigh")]
    assert "Dify does not offer it to agents, because it needs a file: thing" in weigh
    assert main(["tool", "--tools", str(CHARTS), "--no-color"]) == 0
    provider, key, *_ = capsys.readouterr().out.splitlines()
    assert (provider, key) == ("provider charts  Charts", "    api_key  secret-input, required  CHARTS_API_KEY")


def test_the_nearest_plugin_is_the_default(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(TOOLBOX / "tools")
    assert main(["tool", "--no-color"]) == 0
    assert capsys.readouterr().out.startswith("tool toolbox/repeat ")
    monkeypatch.setenv("DEVHOST_PLUGIN", str(PUPPET))
    assert main(["tool"]) == 2
    assert f"no tools: {PUPPET} has none; give --tools DIR" in capsys.readouterr().err


def test_every_message_is_shown_as_it_comes(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["draw_chart", "--arg", "title=Sales", "--arg", "values=3,1", "--arg", "with_grid=true"]
    report, read = called(capsys, "--tools", str(CHARTS), "--credential", f"charts.api_key={API_KEY}", *given)
    assert [message["type"] for message in report["messages"]] == ["text", "json", "image_link"]
    assert (report["sent"]["with_grid"], report["sent"]["height"], report["error"]) == (True, 40, None)
    (file,) = report["files"]
    assert (file["filename"], file["mime_type"]) == ("Sales.png", "image/png")
    assert "text  Drew 2 values, 40 pixels high." in read
    assert "Sales.png  image, image/png, " in read
    assert API_KEY not in read + json.dumps(report)


def test_of_sources_one_reads_their_titles_and_how_their_passages_begin(capsys: pytest.CaptureFixture[str]) -> None:
    _, read = called(capsys, "--tools", str(TOOLBOX), "draw", "--arg", "size=3")
    assert "retriever_resources  1 source\n" in read
    assert "[1] Drawing for all\n" in read
    assert "retriever_from" not in read


def test_a_tool_that_no_agent_can_have_gets_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    picture = tmp_path / "a=b.png"
    table.write_text("a,b")
    picture.write_bytes(b"12345")
    files = ["--file", f"thing={table}", "--file", f"others={picture}"]
    report, read = called(capsys, "--tools", str(ODDMENTS), "weigh", *files)
    assert report["sent"]["others"] == ["a=b.png"]
    assert report["variables"] == {"weight": 8, "label": "document .csv image .png", "mood": "heavy"}
    assert "oddments | weighing table.csv a=b.png" in read
    assert "weight = 8" in read


def test_variables_are_compared_with_the_output_schema(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    thing = tmp_path / "table.csv"
    thing.write_text("a,b")
    given = ["--tools", str(ODDMENTS), "weigh", "--file", f"thing={thing}"]
    report, read = called(capsys, *given)
    assert rules(report) == ["output-schema-misfit", "output-schema-misfit", "variable-missing"]
    assert 'label, by the output_schema: "document .csv" is longer than 3 characters' in read
    assert "the variables, by the output_schema: Additional properties are not allowed ('mood'" in read
    assert "what Dify does not check" in read
    assert "violations of Dify's rules" not in read
    called(capsys, *given, "--strict", code=1)


def test_a_schema_may_refer_to_its_own_definitions() -> None:
    """As the schemas of Python's MCP servers with nested results do."""
    time = {"type": "object", "properties": {"hour": {"type": "integer"}}}
    schema = {"$defs": {"Time": time}, "properties": {"source": {"$ref": "#/$defs/Time"}}, "required": ["source"]}
    (finding,) = schema_findings(schema, {"source": {"hour": "nine"}})

    assert list(schema_findings(schema, {"source": {"hour": 9}})) == []
    assert finding.sentence == 'source.hour, by the output_schema: "nine" is not of type "integer"'
    assert list(schema_findings({"type": "object", "additionalProperties": {"type": "integer"}}, {"n": 1})) == []
    assert list(schema_findings({"$defs": {"Time": time}, "$ref": "#/$defs/Time"}, {"hour": 1})) == []


def test_a_schema_that_refers_elsewhere_is_not_fetched() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        elsewhere = {"$ref": f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"}
        difys = {"$ref": "https://dify.ai/schemas/v1/general_structure.json"}
        (finding,) = schema_findings({"properties": {"chunks": difys, "n": elsewhere}}, {"chunks": [1], "n": 1})

        assert "is another document; devhost fetches none" in finding.sentence
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_failure_is_shown_and_its_traceback_if_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    failing = steps(("say", "so far"), ("fail", "no such thing."))
    report, read = called(capsys, *failing, code=1)
    assert "raise ValueError(text)" in report["error"]["traceback"]
    assert "raise ValueError(text)" not in read
    assert re.search(r"^ValueError: no such thing\. \(tools/perform\.py:\d+\)$", read, re.MULTILINE)
    report, read = called(capsys, *failing, "--traceback", code=1)
    assert (report["error"]["kind"], report["error"]["message"]) == ("ValueError", "no such thing.")
    assert [message["message"]["text"] for message in report["messages"]] == ["so far"]
    assert "raise ValueError(text)" in read
    _, read = called(capsys, *steps(("fail", "at once")), code=1)
    assert "(no message)" not in read


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (RETURNS, "tools/perform.py: line 5: _invoke has no yield, so its messages are lost: "),
        (YIELDS, "tools/perform.py: line 6: _invoke yields what is not a message, and fails: "),
        (YIELDS.replace("'a'", "str(1)"), "_invoke yields what is not a message: "),
    ],
)
def test_a_tool_that_yields_no_message_is_told_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str, words: str
) -> None:
    file = shutil.copytree(ODDMENTS, tmp_path / "oddments") / "tools" / "perform.py"
    written(f"tools/{file.name}", f"from dify_plugin import Tool\n\n\n{code}")(file.parents[1])
    _, read = called(capsys, "--tools", str(file.parents[1]), "perform", "--arg", "steps=[]", code=1)
    assert f"oddments | devhost: {words}write yield self.create_text_message(…)" in read


def test_a_tool_that_sends_nothing_breaks_a_rule(capsys: pytest.CaptureFixture[str]) -> None:
    report, _ = called(capsys, "--strict", *steps(), code=1)
    assert rules(report) == ["tool-says-nothing"]


def test_a_plugin_with_a_login_alone_takes_a_token_that_need_not_be_validated(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Its form is what Dify keeps after the login."""
    plugin = tmp_path / "charts"
    shutil.copytree(CHARTS, plugin)
    file = plugin / "provider" / "charts.yaml"
    provider = yaml.safe_load(file.read_text())
    del provider["credentials_for_provider"]
    names = {"api_key": "secret-input", "region": "text-input"}
    kept = [{"name": name, "type": kind, "label": {"en_US": name}} for name, kind in names.items()]
    login = {"client_schema": [], "credentials_schema": kept}
    file.write_text(yaml.safe_dump({**provider, "oauth_schema": login}))
    credentials = [f"--credential=charts.api_key={API_KEY}", "--credential=charts.region=eu"]
    given = ["--tools", str(plugin), *credentials, "--no-validate"]

    report, _ = called(capsys, *given, "draw_chart", "--arg", "title=T", "--arg", "values=3")

    assert PluginDeclaration.read(plugin).tool_providers[0].credential_type == "oauth2"
    assert report["notices"] == ["provider charts: its credentials are not validated"]
    assert report["error"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--tools", str(TOOLBOX), "repeat"], "tool repeat needs --arg word=VALUE"),
        (["--tools", str(ODDMENTS), "weigh"], "tool weigh needs --file thing=PATH"),
        (["--tools", str(TOOLBOX), "repeal"], "there is no tool 'repeal'; there are: repeat, draw"),
        (["--tools", str(ODDMENTS), "weigh", "--file", "pyproject.toml"], "parameters for files are: thing, others"),
        (["--tools", str(TOOLBOX), "repeat", "--arg", "word=a", "--arg", "times=x"], "times must be a number"),
        (["--tools", str(TOOLBOX), "repeat", "--model", "m"], "--model is for a model behind an API"),
    ],
)
def test_a_mistake_is_said_before_anything_starts(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tool", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_without_a_model_a_call_for_one_is_refused_with_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    report, _ = called(capsys, *steps(("llm", "think")), code=1)
    assert "model m is not configured: set OPENAI_API_KEY" in report["error"]["message"]


def test_from_python_one_host_calls_tools_with_values_and_files(tmp_path: Path) -> None:
    thing = tmp_path / "table.csv"
    thing.write_text("a,b")
    with start_tools([ODDMENTS]) as host:
        uploaded = call_one_tool(host, "perform", {"steps": json.dumps([("upload", ["kept.csv", "1,2"])])})
        weighed = call_one_tool(host, "oddments/weigh", {}, files={"thing": [LocalFile.read(thing, host.limits)]})
        with pytest.raises(ParameterError, match=r"tool weigh has no parameter 'thong'; there are: thing, others"):
            call_one_tool(host, "weigh", {"thong": 1})
    assert ([file["filename"] for file in uploaded.files], weighed.files) == (["kept.csv"], [])
    assert (weighed.error, weighed.variables["weight"]) == (None, 3)
