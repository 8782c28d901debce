"""Each mistake in a script.yaml is reported once, with its place, before anything is started."""

from pathlib import Path

import pytest

from devhost.cli.commands import main
from devhost.errors import HostError
from devhost.protocol.failures import KNOWN
from devhost.script import Script
from devhost.text import QUOTES as HINT
from support.plugins import CHARTS

TURNS = "turns: [{text: hi}]"
QUOTES = "should be a text: put yes, no and numbers in quotes"


def sentence(tmp_path: Path, text: str | bytes) -> str:
    file = tmp_path / "script.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(HostError) as raised:
        Script.read(file)
    return str(raised.value).removeprefix(f"{file}").removeprefix(": ")


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        (
            "[{text: hi}, {tool_calls: [{nmae: x, name: x}]}]",
            "turns[1].tool_calls[0]: unknown key 'nmae' (did you mean 'name'?); there are: name, id, arguments",
        ),
        ("[{api_fails: explodes}]", f"turns[0].api_fails: must be one of {KNOWN}"),
        ("[{text: [a, 3]}]", "turns[0].text: should be a text, with quotes, or a list of texts"),
        ("[{tool_calls: [{name: x, id: no}]}]", f"turns[0].tool_calls[0].id: {QUOTES}"),
        ("[{usage: {total_price: [1]}}]", "turns[0].usage.total_price: should be a number, or a text"),
    ],
)
def test_each_mistake_is_reported_once(tmp_path: Path, turns: str, said: str) -> None:
    assert sentence(tmp_path, f"query: a\nturns: {turns}") == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("{d: [1, 2020-01-01]}", "d[1] is 2020-01-01, which JSON does not have: put a text in quotes"),
        ("{a: {1: b}}", "a[1] is 1, which JSON does not have: put a text in quotes"),
    ],
)
def test_yaml_values_that_json_does_not_have(tmp_path: Path, value: str, said: str) -> None:
    assert sentence(tmp_path, f"query: a\nparams: {value}\n{TURNS}") == f"params: {said}"
    call = f"[{{tool_calls: [{{name: x, arguments: {value}}}]}}]"
    assert sentence(tmp_path, f"query: a\nturns: {call}") == f"turns[0].tool_calls[0].arguments: {said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "query: q\nturn: []",
            "unknown key 'turn' (did you mean 'turns'?); there are: strategy, params, turns, then, ",
        ),
        ("query: q", "turns: Field required"),
        ("turns: [{text: a}]", "query: Field required"),
        (f"query: q\n{TURNS}\nstrategy: [1]", "strategy: should be a name, or a list of names"),
        (f"query: q\n{TURNS}\nvariants: [{{turns: [{{txt: b}}]}}]", "variants[0].turns[0]: unknown key 'txt'"),
        (f"query: q\n{TURNS}\nthen: [{{query: yes, {TURNS}}}]", f"then[0].query: {QUOTES}"),
        (f"extends: script.yaml\nquery: q\n{TURNS}", "extends: "),
    ],
)
def test_each_mistake_of_a_whole_script(tmp_path: Path, text: str, said: str) -> None:
    assert sentence(tmp_path, text).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"query: \xff\n", " is not UTF-8, as its byte 8 shows: save it as UTF-8"),
        (
            "query: ]",
            " is not valid YAML: line 1, column 8: while parsing a block node did not find expected node content",
        ),
        (
            "query: a: b",
            f" is not valid YAML: line 1, column 9: mapping values are not allowed in this context{HINT}",
        ),
        ("query: 2020-13-45", " contains a value that YAML cannot convert: month must be in 1..12"),
    ],
)
def test_files_that_are_not_valid_yaml(
    tmp_path: Path, text: str | bytes, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence(tmp_path, text).startswith(said)
    assert main(["run", "--script", str(tmp_path / "script.yaml")]) == 2
    assert " ".join(said.split()) in " ".join(capsys.readouterr().err.split())


def test_a_tool_that_cannot_fail_because_it_is_not_offered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "script.yaml"
    file.write_text(f"query: a\napi_fails: {{serch: http_500}}\n{TURNS}")
    assert main(["run", "--tools", str(CHARTS), "--credential", "charts.api_key=ck_1", "--script", str(file)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "there is no tool for api_fails 'serch'; there are: draw_chart, export_table" in said
