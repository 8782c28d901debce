"""The scripted model: pieces of its stream, the placeholders, which turn answers, and its errors."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from devhost.cli.commands import main
from devhost.models.backend import ModelCallError, ModelRequest, decode_model_request
from devhost.models.scripted.model import ScriptedModel
from devhost.protocol.wire import JsonObject
from devhost.script import Script
from support.plugins import PUPPET

CALLS = [
    {"name": "search", "id": "c1", "arguments": {"q": "äö"}},
    {"name": "sum", "arguments": '{"broken'},
]
TEXTS = ['{"q": "äö"}', '{"broken']


def request(*messages: JsonObject) -> ModelRequest:
    return decode_model_request(
        {
            "provider": "p",
            "model": "m",
            "model_type": "llm",
            "mode": "chat",
            "completion_params": {},
            "prompt_messages": list(messages) or [{"role": "user", "content": "Hi"}],
        },
        "keep",
    )


def answer(turn: JsonObject, *messages: JsonObject, query: str = "") -> list[JsonObject]:
    chunks = list(ScriptedModel.of([turn], query=query).invoke(request(*messages)))
    return [chunk["delta"] for chunk in chunks]


def texts(deltas: Iterable[JsonObject]) -> list[str]:
    return [delta["message"]["content"] for delta in deltas if delta["message"]["content"]]


def calls(delta: JsonObject) -> list[tuple[str, str, str]]:
    return [
        (call["id"], call["function"]["name"], call["function"]["arguments"]) for call in delta["message"]["tool_calls"]
    ]


def test_text_in_pieces() -> None:
    deltas = answer({"text": "Hello world", "chunk_size": 5})
    assert texts(deltas) == ["Hello", " worl", "d"]
    assert texts(answer({"text": ["<thi", "nk>a", "</think>b"]})) == ["<thi", "nk>a", "</think>b"]
    assert "".join(texts(answer({"thought": "hm", "text": "Yes"}))) == "<think>\nhm\n</think>\n\nYes"
    assert deltas[-1]["finish_reason"] == "stop"
    assert all(delta["usage"] is None for delta in deltas[:-1])


def test_whole_calls_come_with_the_last_chunk() -> None:
    deltas = answer({"text": "x", "tool_calls": CALLS})
    assert [calls(delta) for delta in deltas[:-1]] == [[]]
    assert calls(deltas[-1]) == [("c1", "search", TEXTS[0]), ("", "sum", TEXTS[1])]
    assert deltas[-1]["finish_reason"] == "tool_calls"


def test_usage_is_estimated_given_or_missing() -> None:
    (estimated,) = answer({"text": []})
    assert estimated["usage"]["prompt_tokens"] > 0
    assert estimated["usage"]["completion_tokens"] == 1
    (given,) = answer({"text": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_price": "0.5"}})
    assert (given["usage"]["total_tokens"], given["usage"]["total_price"]) == (10, "0.5")
    (missing,) = answer({"text": [], "usage": None})
    assert missing["usage"] is None


@pytest.mark.parametrize(("after", "shown"), [(0, []), (2, ["ab", "cd"])])
def test_an_error_after_some_chunks(after: int, shown: list[str]) -> None:
    error = {"type": "InvokeRateLimitError", "message": "slow down", "after_chunks": after}
    chunks = ScriptedModel.of([{"text": "abcdef", "chunk_size": 2, "error": error}]).invoke(request())
    seen = [next(chunks)["delta"] for _ in shown]
    with pytest.raises(ModelCallError) as failure:
        next(chunks)
    assert texts(seen) == shown
    said = json.loads(failure.value.as_dify_words_it().removeprefix("PluginInvokeError: "))
    assert said["error_type"] == "PluginInvokeError"
    assert json.loads(said["message"]) == {
        "error_type": "InvokeRateLimitError",
        "message": "slow down",
        "args": {},
    }


def test_placeholders_in_every_string() -> None:
    turn = {
        "text": "{{query}}: {{tool_results}}",
        "tool_calls": [{"name": "s", "arguments": {"terms": ["{{query}}"]}}],
    }
    history: list[JsonObject] = [
        {"role": "assistant", "content": "", "tool_calls": []},
        {"role": "tool", "content": "old", "tool_call_id": "0"},
        {"role": "assistant", "content": "", "tool_calls": []},
        {"role": "tool", "content": "one {{query}}", "tool_call_id": "1"},
        {"role": "tool", "content": "two", "tool_call_id": "2"},
    ]
    deltas = answer(turn, *history, query="Why?")
    assert "".join(texts(deltas)) == "Why?: one {{query}}\n\ntwo"
    assert calls(deltas[-1])[0][2] == '{"terms": ["Why?"]}'


def test_a_turn_waits_for_its_prompt() -> None:
    model = ScriptedModel.of([{"text": "b", "when": "second"}, {"text": "a"}, {"text": "c", "when": "third"}])

    def ask(text: str) -> str:
        return "".join(
            chunk["delta"]["message"]["content"] for chunk in model.invoke(request({"role": "user", "content": text}))
        )

    assert [ask("first"), ask("the second")] == ["a", "b"]
    with pytest.raises(ModelCallError, match=r"no turn for model call 3; its next turn waits for when: third"):
        ask("fourth")
    assert model.remaining == 1
    assert [message.prompt_messages[0].text for message in model.requests] == ["first", "the second", "fourth"]


def model_of(file: Path, query: str | None = None) -> ScriptedModel:
    return Script.read(file).as_model(query)


def script(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "script.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_another_question_has_other_turns(tmp_path: Path) -> None:
    file = script(
        tmp_path, "query: mine\nturns: [{text: own}]\notherwise: [{text: other}]\nmodel: {features: [vision]}"
    )
    own = model_of(file)
    other = model_of(file, query="yours")
    said = [next(model.invoke(request()))["delta"]["message"]["content"] for model in (own, other)]
    assert said == ["own", "other"]
    assert own.description.selector([])["entity"]["features"] == ["vision"]


def test_a_question_is_known_without_its_capitals_and_last_full_stop(tmp_path: Path) -> None:
    file = script(tmp_path, "query: Confirm  it.\nturns: [{text: own}]\notherwise: [{text: other}]")

    def answer(query: str) -> str:
        return str(next(model_of(file, query=query).invoke(request()))["delta"]["message"]["content"])

    assert [answer(query) for query in ("confirm it", " Confirm it! ", "Confirm")] == ["own", "own", "other"]


def test_an_unknown_question_is_answered_with_the_known_ones_in_every_call(tmp_path: Path) -> None:
    file = script(tmp_path, "query: mine\nturns: [{text: own}]\nthen: [{query: more, turns: [{}]}]")
    model = model_of(file, query="yours")
    said = ["".join(texts(chunk["delta"] for chunk in model.invoke(request()))) for _ in range(2)]
    assert said[0] == said[1]
    assert f"I only say what is written in {file}. There I have answers to:\n\n- mine\n- more\n" in said[0]
    assert model.afterwards == ""


@pytest.mark.parametrize(("instruction", "said"), [("Be kind. Cite sources.", "with [1]"), ("Be kind.", "without")])
def test_a_turn_for_an_instruction(instruction: str, said: str) -> None:
    model = ScriptedModel.of([{"when_system": "Cite sources", "text": "with [1]"}, {"text": "without"}])
    asked = request({"role": "system", "content": instruction}, {"role": "user", "content": "Cite sources?"})
    deltas = [chunk["delta"] for chunk in model.invoke(asked)]
    assert "".join(texts(deltas)) == said


def test_a_prompt_that_no_provider_would_take_is_told_after_the_run() -> None:
    model = ScriptedModel.of([{"text": "Hi"}])
    list(model.invoke(request({"role": "user", "content": "word " * 400_000})))
    assert model.afterwards.endswith("is longer than the context of 400,000: a provider refuses it.")


def test_a_script_for_any_question_needs_none_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = script(tmp_path, "otherwise: [{text: other}]")
    given = ["run", "--plugin", str(PUPPET), "--scripted", "--script", str(file)]

    assert main([*given, "--query", '[{"ask": "hello"}]']) == 0
    assert "other" in capsys.readouterr().out
    assert main(given) == 2
    assert "there is no question: give --query TEXT, or a script that has a query" in capsys.readouterr().err
