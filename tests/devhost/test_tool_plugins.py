"""`--tools`: a tool plugin in its own process, for the real strategies."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from devhost import Host, Run, ScriptedModel
from devhost.errors import SetupError
from devhost.process.session import Side, Watcher
from devhost.protocol.wire import JsonObject
from devhost.tools.setup import ToolSetup
from support.charts import API_KEY, charts
from support.lending import Lender
from support.plugins import CHARTS, PUPPET, TOOLBOX
from tests.devhost import ROOT

pytestmark = pytest.mark.usefixtures("lent_plugins")

CALL = {"name": "draw_chart", "id": "call_1", "arguments": {"title": "Sales", "values": "3,1,2"}}


@pytest.fixture(scope="module")
def host(lender: Lender) -> Iterator[Host]:
    setup = charts("draw_chart.signature=signed by me", "draw_chart.palette=nordic")
    with lender.lends(), Host.start(ROOT, tools=[setup]) as host:
        yield host


def drawn(host: Host, *calls: JsonObject, strategy: str = "gpt5_function_calling") -> tuple[Run, ScriptedModel]:
    model = ScriptedModel.of([{"tool_calls": list(calls)}, {"text": "Done: {{tool_results}}"}])
    run = host.run(strategy, {"query": "Draw."}, model=model)
    assert run.error is None, run.error
    return run, model


def answer_of(model: ScriptedModel, position: int = 0) -> str:
    results = [message.text for message in model.requests[1].prompt_messages if message.role == "tool"]
    return results[position]


def test_what_the_panel_fixes_reaches_the_tool(host: Host) -> None:
    _, model = drawn(host, CALL)
    assert '"palette": "nordic"' in answer_of(model)
    assert '"signed_with": null' not in answer_of(model)


def test_a_secret_credential_reaches_only_the_tool(host: Host) -> None:
    """The tool itself is careless: what it says quotes the key."""
    run, model = drawn(host, CALL)
    assert "draw?key=[secret]" in answer_of(model)
    seen = f"{run} {[request.model_dump() for request in model.requests]} {[tool.entity for tool in host.tools]}"
    assert API_KEY not in seen


def test_the_error_of_a_plugin_that_crashes_on_its_credentials_does_not_contain_them(tmp_path: Path) -> None:
    directory = tmp_path / "charts"
    shutil.copytree(CHARTS, directory)
    (directory / "provider" / "charts.py").write_text(
        "import os, sys\n"
        "from dify_plugin import ToolProvider\n"
        "class ChartsProvider(ToolProvider):\n"
        "    def _validate_credentials(self, credentials):\n"
        "        print('cannot use', credentials, file=sys.stderr, flush=True)\n"
        "        os._exit(7)\n"
    )
    setup = ToolSetup.read(directory, credentials={"charts": {"api_key": API_KEY}})
    with pytest.raises(SetupError) as refused, Host.start(PUPPET, tools=[setup]):
        pass
    assert "exited with code 7" in str(refused.value)
    assert "cannot use {'api_key': '[secret]'" in str(refused.value)


def test_a_dynamic_select_takes_only_what_the_plugin_offers() -> None:
    with (
        pytest.raises(SetupError, match=r"draw_chart.palette has no such option; there are: plain, nordic"),
        Host.start(PUPPET, tools=[charts("draw_chart.palette=prairie")]),
    ):
        pass


def test_a_tool_without_credentials_is_called_as_from_dify(lender: Lender) -> None:
    """Not `unauthorized`: SDKs from 0.4.4 to 0.5.1 refuse it."""
    crossed: list[JsonObject] = []

    class Listener(Watcher):
        def crossed(self, side: Side, plugin: str, message: JsonObject) -> None:
            if (side, plugin) == ("host", "toolbox"):
                crossed.append(message["data"])

    with lender.lends(), Host.start(PUPPET, tools=[TOOLBOX], watcher=Listener()) as host:
        call = {"provider": "devhost-tests/toolbox/toolbox", "tool_name": "repeat", "parameters": {"word": "a"}}
        host.run("puppet", {"query": json.dumps([{"call": call}])}, model=ScriptedModel.of([{"text": ""}]))
    (request,) = crossed
    assert (request["credentials"], request["credential_type"]) == ({}, "api-key")
