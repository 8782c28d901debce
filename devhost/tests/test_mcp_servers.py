"""MCP servers beside a strategy: how they are named, reached and started, and what is said when that fails."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from devhost.cli.commands import main
from devhost.errors import InvocationError, ParameterError, SetupError
from devhost.tools.mcp import McpServer, read_servers
from support.evaluating import case, evaluate, write
from support.mcp_servers import COMMAND, SCRIPT, everything, no_calls
from support.plugins import PUPPET

pytestmark = pytest.mark.processes


def test_a_server_that_has_ended_fails_the_call_in_difys_words() -> None:
    with everything() as (tools, _):
        pass

    with pytest.raises(InvocationError, match="Failed to invoke tool: "):
        list(tools["repeat"].invoke({"text": "a"}, no_calls, ""))


def test_a_server_is_reached_at_an_address() -> None:
    with subprocess.Popen([sys.executable, str(SCRIPT), "mcp"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
            with everything(url, {"Authorization": "Bearer 42"}) as (tools, told):
                ((message),) = tools["repeat"].invoke({"text": "hi"}, no_calls, "")
        finally:
            process.kill()

    assert message["message"] == {"text": "hi"}
    assert not [line for line in told.lines if "Dify needs an address" in line]
    assert "everything | repeat: Dify does not hand on times (default); unit (default, enum)" in told.lines


def test_of_a_server_that_raises_while_it_starts_the_error_and_the_command_are_told(tmp_path: Path) -> None:
    """As an older package of `mcp` that cannot be imported beside today's pydantic."""
    server = tmp_path / "server.py"
    server.write_text("def start():\n    raise ImportError('cannot import name Url')\n\nstart()\n")
    command = shlex.join([sys.executable, str(server), "--key", "sk-proj-1234567890123456789012345"])
    with pytest.raises(SetupError) as raised, everything(command):
        pass
    said = str(raised.value)

    assert f"ImportError: cannot import name Url, {tmp_path.name}/server.py:2\n" in said
    assert f"Its command: {sys.executable} {server} --key [secret]" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("no-such-program", "there is no program 'no-such-program'"),
        ("false", "false ended before it answered"),
        (
            shlex.join([sys.executable, "-c", "import sys; sys.exit('key sk-1234567890 is missing')"]),
            "key [secret] is missing",
        ),
        ("http://127.0.0.1:1/mcp", "did not start"),
    ],
)
def test_a_server_that_does_not_start_says_why(target: str, words: str) -> None:
    with pytest.raises(SetupError) as raised, everything(target, {"KEY": "sk-1234567890"}):
        pass
    assert "the MCP server everything did not start" in str(raised.value)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("text", "name", "target"),
    [
        ("npx -y @modelcontextprotocol/server-everything", "mcp", None),
        ("https://tools.example.com/mcp?key=a=b", "mcp", None),
        ("time=uvx mcp-server-time", "time", "uvx mcp-server-time"),
    ],
)
def test_a_server_has_a_name(text: str, name: str, target: str | None) -> None:
    server = McpServer.read(text)

    assert (server.name, server.target) == (name, target or text)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ([" "], "is not [NAME=]COMMAND or [NAME=]URL"),
        (["a 'b"], "--mcp: the command has a quote that is not closed"),
        (["one", "two"], "two servers are called 'mcp'; name them: --mcp NAME=COMMAND"),
    ],
)
def test_what_is_no_server_is_refused(texts: list[str], words: str) -> None:
    with pytest.raises(ParameterError) as raised:
        read_servers(texts)
    assert words in str(raised.value)


def test_a_credential_of_a_server_is_kept_from_the_plugins() -> None:
    (server,), others = read_servers(["time=t"], ["time.KEY=sk", "charts.api_key=ck", "odd"])

    assert others == ("charts.api_key=ck", "odd")
    assert server.secrets == {"KEY": "sk"}
    assert "sk" not in repr(server)


def test_a_strategy_calls_a_server_that_its_script_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [{"call": {"provider": "everything", "tool_name": "repeat", "parameters": {"text": "ha", "times": 2}}}]
    script = tmp_path / "script.yaml"
    script.write_text(
        yaml.safe_dump({"query": json.dumps(steps), "mcp": f"everything={COMMAND}", "turns": [{"text": "unused"}]})
    )

    assert main(["run", "--plugin", str(PUPPET), "--script", str(script), "--json"]) == 0

    printed = json.loads(capsys.readouterr().out)
    (message,) = printed["variables"]["tool_messages"]
    assert message["message"] == {"text": "ha\nha"}


def test_one_tool_of_a_server_is_listed_and_called_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    credential = "everything.SERVER_KEY=sk-42-secret"
    where = ["tool", "--no-color", "--mcp", f"everything={COMMAND}", "--credential", credential]
    assert main(where) == 0
    listed = capsys.readouterr().out
    assert "everything/repeat  Repeats a text." in listed
    assert "times  number" in listed
    assert "repeat: Dify does not hand on times (default); unit (default, enum)" in listed

    assert main([*where, "repeat", "--arg", "text=ha", "--arg", "times=2", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["tool"] == "everything/repeat"
    assert [message["message"] for message in report["messages"]] == [{"text": "ha\nha"}]

    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", "our-proxy.pem")
    assert main([*where, "complain", "--arg", "is_error=false"]) == 0
    told = capsys.readouterr().out
    assert ("sk-42-secret" in told, "[secret], our-proxy.pem" in told) == (False, True)

    assert main([*where, "weather", "--arg", "city= ", "--json", "--strict"]) == 1
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert (report["error"], report["told_an_error"], report["findings"]) == (None, True, [])
    assert "; the server says that its result is an error" in said.err

    assert main([*where, "repeat"]) == 2
    assert "tool repeat needs --arg text=VALUE" in capsys.readouterr().err


def test_cases_expect_calls_of_a_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = {"call": {"provider": "everything", "tool_name": "repeat", "parameters": {"text": "ha"}}}

    def cases(name: str, **keys: Any) -> Path:  # noqa: ANN401 - as in YAML
        expected = case("repeats", step, expect={"calls": {"exactly": [name]}}, **keys)
        return write(tmp_path, expected, example=None, mcp=f"everything={COMMAND}")

    assert evaluate(cases("repeat")) == 0
    assert "everything | repeat: Dify does not hand on times" in capsys.readouterr().out

    assert evaluate(cases("repeet")) == 2
    assert "there is no tool 'repeet'; there are: repeat, sort" in capsys.readouterr().err

    of_its_own = {"turns": None, "script": {"turns": [{"text": "unused"}], "mcp": ["other-server"]}}
    assert evaluate(cases("repeat", **of_its_own)) == 2
    assert "names MCP servers, but one host runs all cases: name them in the file's mcp" in capsys.readouterr().err


def test_the_drop_is_told_when_the_tool_is_called() -> None:
    with everything() as (tools, told):
        list(tools["show"].invoke({}, no_calls, ""))
    assert "everything | show: Dify does not hand on its content of the type resource_link" in told.lines


def test_a_server_that_prints_between_its_messages_is_told_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """And not with a traceback of the client library."""
    talkative = (
        f"print('server is ready', flush=True); import runpy; runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    )
    with everything(shlex.join([sys.executable, "-c", talkative])) as (tools, told):
        assert tools
    said = "everything | prints what is not a message of MCP on its standard output: server is ready"

    assert said in told.lines
    assert "Traceback" not in capsys.readouterr().err
