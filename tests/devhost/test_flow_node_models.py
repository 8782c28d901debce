"""The models of a flow's nodes, chosen by options and environment. tests/flows asks them."""

import json
from pathlib import Path
from typing import Any

import pytest

from devhost.case_options import CaseOptions
from devhost.errors import ParameterError, SetupError
from devhost.hosting import ModelOptions, ModelsBehindAnApi, models_behind_an_api
from devhost.limits import HostLimits
from devhost.models.catalog import DEFAULT_MODEL
from devhost.trace.flow import FlowNode
from fake_openai import KEY as FAKE_KEY
from fake_openai import FakeOpenAI
from support.plugins import GATEWAY
from tests.devhost import ROOT

KEY = {"OPENAI_API_KEY": "sk-test"}
SELECTED = {"type": "model-selector", "model": "gpt-5-mini", "completion_params": {"reasoning_effort": "low"}}
AGENT = FlowNode("agent", "agent", "Agent", {"agent_parameters": {"model": {"type": "constant", "value": SELECTED}}})
LLM = FlowNode("ask", "llm", "Ask", {"model": {"name": "gpt-4.1", "completion_params": {"temperature": 0.5}}})


def models(**options: Any) -> ModelsBehindAnApi:  # noqa: ANN401 - as given
    chosen = models_behind_an_api(ModelOptions(**options), KEY)
    assert chosen is not None
    return chosen


def test_without_a_key_or_where_it_is_asked_for_the_script_answers() -> None:
    assert models_behind_an_api(ModelOptions(), {}) is None
    assert models_behind_an_api(ModelOptions(scripted=True), KEY) is None
    with pytest.raises(ParameterError, match="--model is for a model behind an API"):
        models_behind_an_api(ModelOptions(name="gpt-5"), {})


def test_each_node_has_a_model_of_the_name_that_it_selects() -> None:
    chosen = models()

    agent = chosen(AGENT)
    llm = chosen(LLM)

    assert (agent.description.name, llm.description.name) == ("gpt-5-mini", "gpt-4.1")
    assert chosen(AGENT) is agent
    assert "with the names in the file" in chosen.notice


def test_the_name_of_the_command_line_goes_before_the_files() -> None:
    chosen = models(name="gpt-5")

    assert chosen(AGENT).description.name == chosen(LLM).description.name == "gpt-5"
    assert "with the name gpt-5" in chosen.notice


def test_a_node_that_selects_no_model_gets_the_models_default() -> None:
    unfinished = FlowNode(
        "agent", "agent", "Agent", {"agent_parameters": {"model": {"type": "constant", "value": None}}}
    )

    assert models()(unfinished).description.name == DEFAULT_MODEL


def test_a_model_plugin_answers_all_nodes(server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_API_KEY", FAKE_KEY)
    monkeypatch.setenv("GATEWAY_ENDPOINT_URL", server.base_url)
    options = ModelOptions(model_plugin=GATEWAY, unvalidated=True)
    with options.start(GATEWAY):
        chosen = models_behind_an_api(options, {})
        assert chosen is not None
        described = [chosen(node).description for node in (AGENT, LLM)]
    assert [each.name for each in described] == ["gpt-5-mini", "gpt-4.1"]
    assert {each.provider for each in described} == {"devhost-tests/gateway/gateway"}
    assert "through gateway, with the names in the file" in chosen.notice


def test_a_model_plugin_is_asked_about_its_credentials_before_the_flow_begins(
    server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Here the script names the plugin."""
    monkeypatch.chdir(ROOT)
    script = tmp_path / "script.yaml"
    flow_file = str(ROOT / "examples" / "workflows" / "approval.yml")
    script.write_text(json.dumps({"flow": flow_file, "model": {"plugin": str(GATEWAY), "name": "gpt-4.1"}}))
    given = ("api_key=sk-wrong-key", f"endpoint_url={server.base_url}")
    models = ModelOptions(model_credentials=given)
    flow = CaseOptions(script=script, example="injection")
    try:
        with pytest.raises(SetupError, match=r"gateway refuses its credentials: .* 401"):
            flow.read(limits=HostLimits(), models=models, environment={}, starts=True)
    finally:
        models.plugins.end()
