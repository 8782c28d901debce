"""`devhost init` writes a plugin that passes `devhost check`, runs, and has a test that passes and can fail."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from devhost.cli.commands import main
from devhost.flow.document import FlowFile
from devhost.flow.tools import agent_nodes
from devhost.plugin.check import check_plugin
from devhost.plugin.contents import Contents
from devhost.plugin.declaration import PluginDeclaration
from devhost.script import Script
from support.plugins import CHARTS, PUPPET
from support.waiting import PATIENCE

KINDS = ("strategy", "tool")
OF_CHARTS = ("--plugin", str(PUPPET), "--tools", str(CHARTS))
EACH = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a plugin of each kind, and the command `devhost`."""
    home = tmp_path_factory.mktemp("new plugins")
    for kind in KINDS:
        assert main(["init", kind, f"my_{kind}", "--folder", str(home / kind)]) == 0
    command = home / "devhost"
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -P -m devhost \"$@\"\n", encoding="utf-8")
    command.chmod(0o755)
    return home


@EACH
def test_the_daemon_would_take_a_new_plugin(home: Path, kind: str) -> None:
    assert [problem.key for problem in check_plugin(home / kind).problems] == ["repo", "contact"]


def test_a_new_strategy_has_the_parameters_of_its_class(home: Path) -> None:
    _, strategy = PluginDeclaration.read(home / "strategy").strategies["my_strategy"]
    source = (home / "strategy" / "strategies" / "my_strategy.py").read_text(encoding="utf-8")
    fields = re.search(r"class Parameters\(BaseModel\):(.*?)\n\n\n", source, re.DOTALL)

    assert fields is not None
    read = set(re.findall(r"^    (\w+):", fields[1], re.MULTILINE))
    assert {parameter.name for parameter in strategy.parameters} == read


@EACH
def test_a_readme_names_nothing_of_this_machine(home: Path, kind: str) -> None:
    readme = (home / kind / "README.md").read_text(encoding="utf-8")
    commands = [
        shlex.split(line)[0] for line in "".join(re.findall(r"```sh\n(.*?)```", readme, re.DOTALL)).splitlines()
    ]
    assert set(commands) == {"devhost", "python"}
    assert not any(str(place) in readme for place in (home, Path(sys.prefix)))


@EACH
def test_the_check_of_a_readme_is_of_its_own_folder_whatever_the_environment_names(
    home: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DEVHOST_PLUGIN", str(PUPPET))
    monkeypatch.chdir(home / kind)
    readme = Path("README.md").read_text(encoding="utf-8")
    (checks,) = re.findall(r"^devhost (check.*)", readme, re.MULTILINE)

    assert main(checks.split()) == 0
    assert str(PUPPET) not in capsys.readouterr().out


def test_a_flow_has_the_strategy_at_hand_for_its_agent(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "flow"
    strategy = home / "strategy"
    monkeypatch.setenv("DEVHOST_PLUGIN", str(strategy))
    monkeypatch.setenv("PATH", "")
    assert main(["init", "flow", "my_flow", "--folder", str(folder)]) == 0
    assert f'export PATH="{Path(sys.executable).parent}:$PATH"' in capsys.readouterr().out
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert f"flow --plugin '{os.path.relpath(strategy, folder)}' --script case.yaml\n" in readme
    assert main(["check", str(folder / "my_flow.yml")]) == 0
    monkeypatch.setenv("DEVHOST_PLUGIN", str(tmp_path))
    assert main(["check", str(folder / "my_flow.yml"), "--plugin", str(strategy)]) == 0
    assert main(["check", str(folder / "tools")]) == 0


def test_an_agent_gets_the_tools_of_a_plugin_that_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tools = tmp_path / "charts"
    shutil.copytree(CHARTS, tools)
    chart = tools / "tools" / "draw_chart.yaml"
    declared = chart.read_text(encoding="utf-8")
    needed = declared.replace("type: dynamic-select\n    required: false", "type: dynamic-select\n    required: true")
    chart.write_text(needed, encoding="utf-8")
    table = tools / "tools" / "export_table.yaml"
    table.write_text(table.read_text(encoding="utf-8").replace("type: string", "type: file"), encoding="utf-8")
    flow = tmp_path / "flow"
    given = ["--plugin", str(PUPPET), "--tools", str(tools), "--approval", "none"]

    assert main(["init", "flow", "desk", "--folder", str(flow), *given]) == 0

    notices = capsys.readouterr().err.splitlines()
    assert notices == [
        "notice: left out: export_table, which requires a file, so that Dify does not offer it to an agent",
        "notice: set draw_chart.palette in the Agent node: Dify's editor wants a value before it publishes",
    ]
    (agent,) = agent_nodes(FlowFile.read(flow / "desk.yml"))
    (entry,) = agent.data["agent_parameters"]["tools"]["value"]
    assert entry["provider_name"] == "chartmakers/charts/charts"
    assert entry["settings"] == {
        "color": {"value": {"type": "constant", "value": "blue"}},
        "signature": {"value": {"type": "mixed", "value": ""}},
    }
    assert set(entry["parameters"]) == {"title", "values", "kind", "height", "caption", "with_grid"}
    script = Script.of_flow(flow / "script.yaml")
    assert script.tools == (flow / "../charts",)
    (call,) = script.models["agent"][0].tool_calls
    assert (call.name, call.arguments) == ("draw_chart", {"title": "example", "values": "example"})
    assert main(["check", str(flow / "desk.yml"), "--plugin", str(PUPPET)]) == 0


def test_the_tests_of_new_plugins_have_strict_types(home: Path) -> None:
    """`make test` checks a plugin that was begun in the root of the repository, too."""
    files = [str(home / kind / "tests" / f"test_my_{kind}.py") for kind in KINDS]
    mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, *files]
    checked = subprocess.run(mypy, check=False, capture_output=True, text=True)  # in-process it raises Python's limits

    assert checked.returncode == 0, checked.stdout


@pytest.mark.processes
@EACH
def test_the_test_of_a_new_plugin_passes_and_fails_with_the_plugin(home: Path, kind: str, tmp_path: Path) -> None:
    def passes() -> bool:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(home / kind / "tests")]
        environment = {**os.environ, "DEVHOST": str(home / "devhost")}
        ran = subprocess.run(
            command, env=environment, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=PATIENCE
        )
        return ran.returncode == 0

    assert passes()
    (source,) = (home / kind).glob("strategies/*.py" if kind == "strategy" else "tools/*.py")
    source.write_text(source.read_text(encoding="utf-8").replace("def _invoke", "def _other"), encoding="utf-8")
    assert not passes()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["strategy", "My-Strategy"], "the name 'My-Strategy' must be small letters, digits and _, a letter first"),
        (["tool", "a", "--folder", "."], ". exists and is not empty: name another folder"),
        (["tool", "a", "--plugin", "."], "--plugin is for a flow, whose agent is a strategy of that plugin"),
        (["flow", "a"], "no strategy plugin was found"),
        (["tool", "a", "--tools", "."], "--tools is for a flow, whose agent gets the tools of that plugin"),
        (["flow", "a", "--ask", "b"], "--approval and --ask need the tools that they are about: give --tools DIR"),
        (["flow", "a", "--plugin", str(CHARTS)], "has no strategies: name the folder of a strategy plugin"),
        (["flow", "a", *OF_CHARTS], "--approval chat needs a strategy that can ask: puppet of "),
        (["flow", "a", *OF_CHARTS, "--approval", "form"], "lacks approval_required, the output stop_reason"),
        (["flow", "a", *OF_CHARTS, "--ask", "draw_charts"], "'draw_charts' (did you mean 'draw_chart'?)"),
        (["flow", "a", *OF_CHARTS, "--approval", "none", "--ask", "draw_chart"], "with --approval none no tool waits"),
        (["flow", "a", *OF_CHARTS, "--tools", str(PUPPET)], "puppet is not a tool plugin: its manifest names no tools"),
    ],
)
def test_what_cannot_be_written_is_refused(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "kept").touch()
    monkeypatch.chdir(tmp_path)

    assert main(["init", *arguments]) == 2
    assert sentence in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@EACH
def test_a_new_plugin_packs_no_data_of_this_machine(kind: str, tmp_path: Path) -> None:
    assert main(["init", kind, "shop", "--folder", str(tmp_path / "shop")]) == 0
    before = Contents.of(tmp_path / "shop").paths
    for name in ("customers.db", "orders.sqlite3", "orders.sqlite3-wal", "run.log", "all.dump", "own.pem", "own.key"):
        (tmp_path / "shop" / name).write_text("x")

    assert Contents.of(tmp_path / "shop").paths == before
