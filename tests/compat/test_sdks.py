"""Plugins on older versions of the SDK, each in an environment of its own, as a person has them in a `.venv`."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from devhost import Host, HostLimits, Run, ScriptedModel, ToolSetup, Watcher
from devhost.errors import SetupError
from devhost.text import Secrets
from devhost.tools.setup import Texts, start_tool_plugin
from devhost.tools.tool import PluginTool, Tool
from tests.compat.conftest import ROOT
from tests.compat.environments import python_of, version_in

pytestmark = pytest.mark.e2e

COURIER = ROOT / "tests" / "compat" / "fixtures" / "courier"
TOOLBOX = ROOT / "devhost" / "tests" / "fixtures" / "toolbox"
CHARTS = ROOT / "devhost" / "tests" / "fixtures" / "charts"
NO_PYTHON = "/nonexistent/python"
"""In place of devhost's own, which a plugin with a .venv must not use."""
KEY: Texts = {"charts": {"api_key": "ck_live_1234567890"}}


@contextmanager
def tools_of(
    plugin: Path, environment: Path, folder: Path, *, credentials: Texts | None = None, fixed: Texts | None = None
) -> Iterator[list[Tool]]:
    """The tools of a copy of the plugin that runs in the environment."""
    directory = folder / plugin.name
    shutil.copytree(plugin, directory)
    (directory / ".venv").symlink_to(environment)
    setup = ToolSetup.read(directory, credentials=credentials, fixed=fixed)
    started = start_tool_plugin(
        setup, limits=HostLimits(), python=NO_PYTHON, watcher=Watcher(), secrets=Secrets(setup.secrets)
    )
    with started as process:
        yield [PluginTool(process, setup, offered) for offered in setup.tools]


def called(agent: Host, tools: list[Tool], name: str, arguments: Mapping[str, object]) -> tuple[Run, str]:
    """The run, and what the model read as the tool's result."""
    call = {"name": name, "id": "call_1", "arguments": dict(arguments)}
    model = ScriptedModel.of([{"tool_calls": [call]}, {"text": "Done."}])
    run = agent.run("gpt5_function_calling", {"query": "Go."}, model=model, tools=tools)
    assert run.error is None, run.error
    assert run.findings == []
    (result,) = [message.text for message in model.requests[1].prompt_messages if message.role == "tool"]
    return run, result


def test_each_environment_has_its_own_sdk(sdk: str, environment: Path) -> None:
    assert version_in(environment) == sdk


def test_a_plugin_without_credentials(agent: Host, environment: Path, tmp_path: Path) -> None:
    """Every call fails on 0.4.5 if the credential type is not the one that Dify sends."""
    with tools_of(TOOLBOX, environment, tmp_path) as tools:
        _, said = called(agent, tools, "repeat", {"word": "east", "times": 3})
        run, _ = called(agent, tools, "draw", {"size": 9000})
        _, failed = called(agent, tools, "repeat", {"word": "east", "times": 2.5})
    assert said == "east-east-east"
    (picture,) = run.outputs.files
    assert (picture["filename"], picture["mime_type"], picture["size"]) == ("picture.png", "image/png", 9000)
    assert run.outputs.variables["sources"][0]["title"] == "Drawing for all"
    assert "times came as float" in failed


def test_a_plugin_with_credentials(agent: Host, environment: Path, tmp_path: Path) -> None:
    fixed = {"draw_chart": {"signature": "signed by me"}}
    with tools_of(CHARTS, environment, tmp_path, credentials=KEY, fixed=fixed) as tools:
        run, said = called(agent, tools, "draw_chart", {"title": "Sales", "values": "3,1,2", "height": 20})
    assert "Drew 3 values, 20 pixels high." in said
    assert "https://eu.charts.example/draw?key=[secret]" in said
    assert '"signed_with": null' not in said
    assert [file["filename"] for file in run.outputs.files] == ["Sales.png"]


def test_wrong_credentials_are_refused_in_the_plugins_words(environment: Path, tmp_path: Path) -> None:
    wrong = {"charts": {"api_key": "wrong_key_123"}}
    with (
        pytest.raises(SetupError, match="charts refuses its credentials: 401 Unauthorized: invalid API key"),
        tools_of(CHARTS, environment, tmp_path, credentials=wrong),
    ):
        pass


def test_a_dynamic_select(agent: Host, sdk: str, environment: Path, tmp_path: Path) -> None:
    """0.7.4 looks for a trigger of that name first, and fails without one: in Dify too, the picker stays empty."""
    fixed = {"draw_chart": {"palette": "nordic"}}
    if sdk == "0.7.4":
        with (
            pytest.raises(SetupError, match=r"the options of draw_chart\.palette cannot be read: Trigger provider"),
            tools_of(CHARTS, environment, tmp_path, credentials=KEY, fixed=fixed),
        ):
            pass
        return
    with tools_of(CHARTS, environment, tmp_path, credentials=KEY, fixed=fixed) as tools:
        _, said = called(agent, tools, "draw_chart", {"title": "Sales", "values": "3,1,2"})
    assert '"palette": "nordic"' in said


def test_a_strategy(environment: Path) -> None:
    with Host.start(COURIER, tools=[TOOLBOX], python=str(python_of(environment))) as host:
        run = host.run("courier", {"query": "east"}, model=ScriptedModel.of([{"text": "Going"}]))
    assert (run.error, run.findings) == (None, [])
    assert run.outputs.text == "Going east-east"
    assert [(entry.label, entry.status) for entry in run.outputs.logs] == [("CALL repeat", "success")]
    assert run.asked == {"llm": 1, "tool": 1}
