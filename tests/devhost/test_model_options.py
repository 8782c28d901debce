"""Who answers: the environment and the command line together choose a real model or the script."""

import subprocess
import sys
from typing import Any

import pytest

from devhost.conversation import CountingModel
from devhost.errors import ParameterError
from devhost.hosting import ModelOptions
from devhost.models.scripted.model import ScriptedModel
from devhost.script import Script
from support.waiting import PATIENCE
from tests.devhost import ROOT

SCRIPT = Script.of({"query": "?", "turns": [{"text": "Hello"}]})
KEY = {"OPENAI_API_KEY": "sk-proj-0123456789"}
SERVER = {"OPENAI_BASE_URL": "http://user:secret@localhost:11434/v1"}


def choose(environment: dict[str, str], **options: Any) -> CountingModel:  # noqa: ANN401 - as given
    return ModelOptions(**options).choose(SCRIPT, "?", environment)


@pytest.mark.parametrize("environment", [{}, {"OPENAI_API_KEY": " ", "OPENAI_BASE_URL": ""}])
def test_without_key_and_server_the_script_answers(environment: dict[str, str]) -> None:
    model = choose(environment)
    assert isinstance(model, ScriptedModel)
    assert model.description.notice.startswith("scripted model: the answers are written in the code that runs it")
    assert (model.spent(), model.afterwards) == (None, "The script has turns that no model call asked for: 1.")
    assert isinstance(choose(KEY, scripted=True), ScriptedModel)


def test_a_key_chooses_openai() -> None:
    description = choose(KEY).description
    assert description.notice == "Responses API at https://api.openai.com/v1; OpenAI's prices of November 2026"
    assert description.scripted is False
    assert description.provider == "devhost/openai/responses"
    assert description.context_size == 1_050_000
    assert "vision" in description.features


def test_another_server() -> None:
    options = {"api": "chat", "name": "qwen3", "features": "tool-call, vision"}
    description = choose(SERVER, **options, completion=("temperature=0",)).description
    assert (
        description.notice
        == "Chat Completions at http://localhost:11434/v1; devhost has no price for qwen3 and counts 0"
    )
    assert description.features == ("tool-call", "vision")
    assert dict(description.completion_params) == {"temperature": 0}
    selector = description.selector([])
    assert selector["completion_params"] == {"temperature": 0}
    assert selector["entity"]["model_properties"] == {"mode": "chat"}


@pytest.mark.parametrize(
    ("environment", "options", "words"),
    [
        ({}, {"name": "gpt-5"}, "--model is for a model behind an API, but neither OPENAI_API_KEY nor OPENAI_BASE_URL"),
        (KEY, {"api": "chat", "scripted": True}, "--api is for a model behind an API, but --scripted asks"),
        ({}, {"model_plugin": ROOT, "scripted": True}, "--model-plugin is for a model behind an API, but --scripted"),
        ({}, {"model_plugin": ROOT, "api": "chat"}, "--api is for a model behind an API, but --model-plugin is given"),
        ({"OPENAI_API_KEY": "sk-proj-\x01a"}, {}, "OPENAI_API_KEY has a line break or another character"),
        (KEY, {"completion": ("max_tokens",)}, "--completion 'max_tokens' is not KEY=VALUE"),
        (KEY, {"features": "flying"}, "unknown feature 'flying'"),
        (SERVER, {}, "which model\\? --model NAME says what the server at http://localhost:11434/v1 calls it"),
        ({"OPENAI_BASE_URL": "localhost:11434"}, {"name": "x"}, "OPENAI_BASE_URL must be an http"),
        ({"OPENAI_BASE_URL": "http://user:sec/secret@host/v1"}, {"name": "x"}, "OPENAI_BASE_URL must be an http"),
    ],
)
def test_mistakes_in_the_options_of_a_model(environment: dict[str, str], options: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words) as raised:
        choose(environment, **options)
    assert "sk-proj" not in str(raised.value)
    assert "secret" not in str(raised.value)


def test_without_a_script_and_a_key_no_model_is_configured() -> None:
    with pytest.raises(ParameterError, match="no model is configured"):
        ModelOptions().choose(None, "?", {})


def python(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.mark.processes
@pytest.mark.parametrize(
    ("module", "unneeded"),
    [("devhost.cli.commands", ["pydantic", "httpx", "rich"]), ("devhost.cli.run", ["openai", "jinja2"])],
)
def test_a_command_imports_only_what_it_needs(module: str, unneeded: list[str]) -> None:
    ended = python(f"import sys, {module}; print([name for name in {unneeded} if name in sys.modules])")
    assert ended.stdout == "[]\n", ended.stderr


@pytest.mark.processes
def test_the_error_for_a_missing_openai_package_says_what_to_do() -> None:
    program = (
        "import sys; sys.modules['openai'] = None; from devhost.cli.commands import main; sys.exit(main(sys.argv[1:]))"
    )
    ended = python(program, "run", "--example", "helpdesk", **KEY)
    assert ended.returncode == 2
    assert "needs the package openai: pip install 'dify-devhost[openai]'" in ended.stderr
