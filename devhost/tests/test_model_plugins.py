"""A model plugin between strategy and provider, and `devhost model`, which calls one alone."""

import json
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from devhost.cli.commands import main
from devhost.errors import HostError, ParameterError, SetupError
from devhost.model_plugin import NO_VOCABULARY, NOT_VALIDATED, ModelPlugin, ModelPlugins, PluginModelError
from devhost.models.backend import ModelCallError
from devhost.node.outputs.run import RunError
from devhost.process.session import Watcher
from fake_openai import KEY, Call, FakeOpenAI, Turn, rate_limited
from support.lending import Lender
from support.openai_requests import PICTURE, SEARCH, call, model_request, result
from support.plugins import FIXTURES, GATEWAY, PUPPET, TOOLBOX

PONG = Turn(text="pong")
"""Answers the question by which the plugin tries its credentials."""


@pytest.fixture(scope="module")
def plugin(server: FakeOpenAI, lender: Lender) -> ModelPlugin:
    server.will(PONG)
    with lender.lends():
        plugin = ModelPlugin(GATEWAY, {"api_key": KEY, "endpoint_url": server.base_url})
        plugin.model("gpt-4.1")
    return plugin


@pytest.fixture
def configured(fake: FakeOpenAI, monkeypatch: pytest.MonkeyPatch, lent_plugins: None) -> FakeOpenAI:
    """The credentials are in the environment."""
    del lent_plugins  # for all tests that start a command
    monkeypatch.setenv("GATEWAY_API_KEY", KEY)
    monkeypatch.setenv("GATEWAY_ENDPOINT_URL", fake.base_url)
    return fake


def asked(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[dict[str, Any], str]:
    """The object of `devhost model --json`, if there is one, and what people read."""
    assert main(["model", str(GATEWAY), "--json", "--no-color", *arguments]) == code
    said = capsys.readouterr()
    assert KEY not in said.out + said.err
    return json.loads(said.out or "{}"), said.err


# The plugin as a model.


def test_a_conversation_with_tools_goes_through_the_plugin_and_comes_back(
    plugin: ModelPlugin, fake: FakeOpenAI
) -> None:
    fake.will(Turn(text="I look it up.", calls=(Call("search", {"q": "größe"}, id="call_a"),)))
    model = plugin.model("gpt-4.1", {"temperature": 0.5})
    messages = (
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": [{"type": "text", "data": "What is it?"}, PICTURE]},
        {"role": "assistant", "content": "", "tool_calls": [call("call_0", "a")]},
        result("call_0", "found"),
    )
    request = model_request(messages, model="gpt-4.1", tools=[SEARCH], temperature=0.5)
    chunks = list(model.invoke(request))

    assert "".join(chunk["delta"]["message"]["content"] for chunk in chunks) == "I look it up."
    assert len(chunks) > 2
    (found,) = [made for chunk in chunks for made in chunk["delta"]["message"]["tool_calls"]]
    assert (found["id"], json.loads(found["function"]["arguments"])) == ("call_a", {"q": "größe"})
    last = chunks[-1]["delta"]
    assert (last["finish_reason"], last["usage"]["total_price"]) == ("tool_calls", "0.00036")
    (_, sent) = fake.requests[-1]
    assert (sent["temperature"], sent["tools"][0]["function"]["name"], sent["stream"]) == (0.5, "search", True)
    assert [message["role"] for message in sent["messages"]] == ["system", "user", "assistant", "tool"]
    assert sent["messages"][1]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
    assert model.afterwards == "Model calls answered: 1. Prompt tokens: 100. Completion tokens: 20."
    assert (model.spent()["total_price"], model.spent()["currency"]) == ("0.00036", "EUR")


def test_the_node_gets_the_plugins_entity_with_the_features_that_dify_lets_through(plugin: ModelPlugin) -> None:
    selector = plugin.model("gpt-4.1").description.selector([])
    assert selector["provider"] == "devhost-tests/gateway/gateway"
    entity = selector["entity"]
    assert entity["features"] == ["multi-tool-call", "stream-tool-call", "vision"]
    assert entity["model_properties"] == {"mode": "chat", "context_size": 1_000_000}
    assert [rule["name"] for rule in entity["parameter_rules"]] == ["temperature", "max_tokens"]
    assert entity["pricing"]["output"] == "8"


def test_a_model_that_is_not_predefined_has_its_own_credentials_and_is_asked_about_them(
    plugin: ModelPlugin, fake: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SetupError, match="Unsupported parameter: 'max_tokens' is not supported with this model"):
        plugin.model("gpt-5")
    monkeypatch.setattr("fake_openai.rules._MODELS", {"qwen3"})
    fake.will(PONG)
    assert plugin.model("qwen3").description.context_size == 8_000
    assert [body["model"] for _, body in fake.requests] == ["gpt-5", "qwen3"]
    with pytest.raises(ParameterError, match=r"^which model\? --model NAME; gateway has gpt-4.1, llama3.2; and takes"):
        plugin.model()


def test_a_failure_of_the_provider_has_the_plugins_words(plugin: ModelPlugin, fake: FakeOpenAI) -> None:
    fake.will(rate_limited())
    with pytest.raises(ModelCallError, match=r"status code 429: .*Rate limit reached") as raised:
        list(plugin.model("gpt-4.1").invoke(model_request(model="gpt-4.1")))
    assert raised.value.error_type == "InvokeError"
    assert raised.value.as_dify_words_it().startswith("req_id: 0123456789 PluginInvokeError: ")
    known = PluginModelError(RunError("InvokeRateLimitError", "[models] Rate Limit Error, wait"))
    assert known.as_dify_words_it() == "[models] Rate Limit Error, wait"


def test_a_plugin_that_has_ended_is_started_again(fake: FakeOpenAI) -> None:
    fake.will(PONG, PONG)
    credentials = {"api_key": KEY, "endpoint_url": fake.base_url}
    with ModelPlugin(GATEWAY, credentials, validated=False) as plugin:
        model = plugin.model("gpt-4.1")
        first = list(model.invoke(model_request(model="gpt-4.1")))
        plugin.__exit__()
        assert len(list(model.invoke(model_request(model="gpt-4.1")))) == len(first)


# Credentials.


@pytest.mark.usefixtures("lent_plugins")
def test_a_credential_is_taken_out_of_the_environment_or_asked_for_at_a_terminal(
    fake: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts: list[tuple[str, object]] = []

    def prompt(label: str, **options: object) -> str:
        prompts.append((label, options["hide_input"]))
        return KEY

    monkeypatch.setattr(click, "prompt", prompt)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    fake.will(PONG)
    plugins = ModelPlugins()
    try:
        environment = {"GATEWAY_ENDPOINT_URL": fake.base_url, "HOME": "/home"}
        plugins.start(GATEWAY, {}, environment).model("gpt-4.1")
    finally:
        plugins.end()
    assert prompts == [("gateway: api_key", True)]
    assert environment == {"HOME": "/home"}


@pytest.mark.parametrize(
    ("directory", "credentials", "words"),
    [
        (TOOLBOX, {}, "is not a model plugin: its manifest names no models"),
        (GATEWAY, {"key": "x"}, "provider gateway has no credential 'key'; there are: api_key"),
        (GATEWAY, {}, "--model-credential api_key=VALUE, or GATEWAY_API_KEY in the environment"),
        (GATEWAY, {"api_key": "sk-wrong-key", "endpoint_url": "http://127.0.0.1:9"}, "gateway refuses its credentials"),
    ],
)
@pytest.mark.usefixtures("lent_plugins")
def test_wrong_plugins_and_credentials(directory: Path, credentials: dict[str, str], words: str) -> None:
    with pytest.raises(HostError, match=words), ModelPlugin(directory, credentials) as plugin:
        plugin.model("gpt-4.1")


def test_without_a_validation_the_notice_says_what_is_missing(lender: Lender) -> None:
    credentials = {"api_key": KEY, "endpoint_url": "http://127.0.0.1:9"}
    with lender.lends(), ModelPlugin(GATEWAY, credentials, validated=False) as plugin:
        assert plugin.model("gpt-4.1").description.notice.endswith(f"; {NOT_VALIDATED}")


def test_a_vocabulary_that_the_plugin_cannot_download_is_named(
    fake: FakeOpenAI, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A server that counts no tokens; the SDK counts them then."""
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    printed: list[str] = []

    class Kept(Watcher):
        def printed(self, plugin: str, text: str) -> None:
            printed.append(f"{plugin} | {text}")

    fake.will(Turn(text="pong", tokens=None))
    credentials = {"api_key": KEY, "endpoint_url": fake.base_url}
    with ModelPlugin(GATEWAY, credentials, validated=False, watcher=Kept()) as plugin:
        model = plugin.model("gpt-4.1")
        with pytest.raises(PluginModelError, match=r"openaipublic\.blob\.core\.windows\.net"):
            list(model.invoke(model_request(model="gpt-4.1")))
    assert printed.count(f"gateway | {NO_VOCABULARY}") == 1


# The command.


def test_without_a_prompt_the_models_and_credentials_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    _ = main(["model", str(GATEWAY), "--no-color"])
    _ = main(["list", str(GATEWAY), "--no-color"])
    model, plugin = capsys.readouterr().out.split("plugin devhost-tests/gateway")
    *lines, sent = model.splitlines()
    assert "\n".join(lines) in plugin
    assert lines[1] == "    api_key  secret-input, required  GATEWAY_API_KEY"
    assert lines[-2:] == ["model llama3.2  tool-call, 8,000 tokens", "any other model, by its name"]
    assert sent == "sends tools  yes, as tried with gpt-4.1"
    assert main(["model", str(TOOLBOX)]) == 2
    assert "is not a model plugin" in capsys.readouterr().err


def test_one_call_shows_text_usage_and_what_the_plugin_prints(
    configured: FakeOpenAI, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    picture = tmp_path / "chart.png"
    picture.write_bytes(b"picture")
    configured.will(PONG, Turn(text="A chart."))
    given = ["--model", "gpt-4.1", "--completion", "temperature=0.2", "--file", str(picture)]
    report, read = asked(capsys, "What is it?", *given)

    assert (report["text"], report["finish_reason"], report["error"]) == ("A chart.", "stop", None)
    assert report["usage"]["total_tokens"] == 120
    assert 0 < report["first_seconds"] <= report["seconds"]
    for words in ("gateway | asks gpt-4.1 with [secret]", "A chart.", "120 tokens = 100 prompt"):
        assert words in read
    (user,) = configured.requests[-1][1]["messages"]
    assert [part["type"] for part in user["content"]] == ["text", "image_url"]


def test_failures_of_the_command(configured: FakeOpenAI, capsys: pytest.CaptureFixture[str]) -> None:
    configured.will(PONG, rate_limited(), PONG)
    report, read = asked(capsys, "Hi", "--model", "gpt-4.1", code=1)
    assert report["error"]["kind"] == "InvokeError"
    assert "Dify's node" not in read
    assert "InvokeError: [models] Error: API request failed with status code 429" in read
    given = ("--model-credential", f"api_key={KEY}", "--model-credential", f"endpoint_url={configured.base_url}")
    asked(capsys, "Hi", "--model", "gpt-4.1", *given, "--blocking", code=1)  # the server has streams alone
    assert configured.requests[-1][1]["stream"] is False


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model-credential", "sk-wrong-key-0123"], "--model-credential is not KEY=VALUE"),
        (["--model-credential", "sk-wrong-key-0123=="], "--model-credential is not KEY=VALUE"),
        (["--completion", "top_k=7"], "takes no such parameter; there are: temperature, max_tokens"),
        (["--file", "nothing.png"], "'nothing.png' cannot be read: No such file"),
    ],
)
def test_mistakes_in_the_command(
    configured: FakeOpenAI, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    configured.will(PONG)
    _, read = asked(capsys, "Hi", "--model", "gpt-4.1", *options, code=2)
    assert words in read
    assert "sk-wrong-key" not in read


# Runs of a strategy.


def test_a_script_can_name_the_plugin_and_needs_no_turns(
    configured: FakeOpenAI, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    script = tmp_path / "script.yaml"
    script.write_text(
        json.dumps({"query": '[{"ask": "Hi"}]', "model": {"plugin": str(GATEWAY), "name": "llama3.2"}}),
        encoding="utf-8",
    )
    configured.will(PONG, Turn(text="The plugin answers."))
    trace = tmp_path / "trace.jsonl"
    assert main(["run", "--plugin", str(PUPPET), "--script", str(script), "--json", "--trace", str(trace)]) == 0
    assert KEY not in trace.read_text(encoding="utf-8")
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert report["text"] == "The plugin answers."
    assert (report["model"]["name"], report["spent"]["total_tokens"]) == ("llama3.2", 120)
    assert "gateway | asks llama3.2 with [secret]" in said.err
    assert [body["model"] for _, body in configured.requests] == ["gpt-4.1", "llama3.2"]


def test_an_evaluation_asks_one_process_for_all_columns(
    configured: FakeOpenAI, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    case = {"name": "asks", "query": json.dumps([{"ask": "Hi"}]), "expect": {"text": {"contains": "Yes"}}}
    columns = [{"name": name, "model": name} for name in ("gpt-4.1", "llama3.2")]
    file = tmp_path / "cases.yaml"
    file.write_text(json.dumps({"columns": columns, "cases": [case]}), encoding="utf-8")
    configured.will(PONG, Turn(text="Yes"), Turn(text="Yes"))
    where = ["--plugin", str(PUPPET), "--examples", str(FIXTURES), "--jobs", "1"]
    assert main(["eval", str(file), *where, "--model-plugin", str(GATEWAY), "--model", "gpt-4.1"]) == 0
    assert capsys.readouterr().err.count("starting gateway") == 1
