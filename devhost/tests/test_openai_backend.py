"""The backends against the fake API: chunks as Dify's plugins stream them, failures as Dify words them."""

import json
from dataclasses import replace

import pytest

from devhost.models.backend import ModelCallError
from devhost.models.openai_api.backend import Connection, OpenAIModel
from devhost.models.openai_api.provider import Api
from devhost.protocol.wire import JsonObject
from fake_openai import (
    KEY,
    Call,
    FakeOpenAI,
    Refusal,
    Tokens,
    Turn,
    context_too_long,
    rate_limited,
    server_error,
)
from support.openai_requests import SEARCH, model_request

APIS: list[Api] = ["responses", "chat"]
TWO_CALLS = Turn(
    text="Ich schaue nach: Größe, 大きさ 🗺️.",
    calls=(Call("search", {"q": "größe"}, id="call_a"), Call("search", {"q": "大きさ"}, id="call_b")),
    tokens=Tokens(prompt=1000, cached=400, completion=50, reasoning=30),
)


def model(fake: FakeOpenAI, api: Api, key: str = KEY) -> OpenAIModel:
    return OpenAIModel(Connection(key, fake.base_url), api, "gpt-5")


def messages(chunks: list[JsonObject]) -> list[JsonObject]:
    return [chunk["delta"]["message"] for chunk in chunks]


def text(chunks: list[JsonObject]) -> str:
    return "".join(message["content"] for message in messages(chunks))


def calls(chunks: list[JsonObject]) -> list[JsonObject]:
    return [call for message in messages(chunks) for call in message["tool_calls"]]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("interleaved", [False, True])
def test_text_as_it_comes_and_whole_calls_at_the_end(fake: FakeOpenAI, api: Api, *, interleaved: bool) -> None:
    fake.will(replace(TWO_CALLS, interleaved=interleaved))
    *streamed, last = model(fake, api).invoke(model_request(tools=[SEARCH]))

    assert text(streamed) == TWO_CALLS.text
    assert len(streamed) > 3
    assert calls(streamed) == []
    assert calls([last]) == [
        {"id": "call_a", "type": "function", "function": {"name": "search", "arguments": '{"q": "größe"}'}},
        {"id": "call_b", "type": "function", "function": {"name": "search", "arguments": '{"q": "大きさ"}'}},
    ]
    assert last["delta"]["finish_reason"] == "tool_calls"
    body = {"responses_output": fake.issued[0]} if api == "responses" else None
    assert last["delta"]["message"]["opaque_body"] == body
    assert last["delta"]["usage"]["prompt_price"] == "0.0008000"  # 600 at 1.25, 400 at 0.125
    assert last["delta"]["usage"]["completion_tokens"] == 50


def test_calls_of_one_index_are_told_apart_by_their_ids(fake: FakeOpenAI) -> None:
    function = {"name": "search", "arguments": "{}"}
    called = [{"index": 0, "id": id_, "type": "function", "function": function} for id_ in ("a", "b")]
    fake.will(Turn(events=(*(chat_event({"tool_calls": [call]}) for call in called), chat_event({}))))
    chunks = list(model(fake, "chat").invoke(model_request(tools=[SEARCH])))
    assert [(call["id"], call["function"]) for call in calls(chunks)] == [("a", function), ("b", function)]


@pytest.mark.parametrize("api", APIS)
def test_thoughts_are_a_closed_block_before_the_text(fake: FakeOpenAI, api: Api) -> None:
    calls = (Call("search", {"q": "x"}),)
    fake.will(Turn(summary="First this.\n\nThen that.", text="So."), Turn(summary="Look it up.", calls=calls))
    params = {"reasoning_summary": "auto"} if api == "responses" else {}
    backend = model(fake, api)
    said, called = (list(backend.invoke(model_request(tools=[SEARCH], **params))) for _ in range(2))
    assert text(said) == "<think>\nFirst this.\n\nThen that.\n</think>\nSo."
    assert text(called) == "<think>\nLook it up.\n</think>\n"
    assert [bool(message["tool_calls"]) for message in messages(called)].index(True) > 1


def test_a_thought_that_is_cut_off_is_a_closed_block_too(fake: FakeOpenAI) -> None:
    deltas = ({"reasoning": {"not": "a text"}}, {"reasoning_content": "Half a"})
    fake.will(Turn(events=tuple(chat_event(None, choices=[{"index": 0, "delta": delta}]) for delta in deltas)))
    chunks = list[JsonObject]()
    with pytest.raises(ModelCallError, match="stream cut off"):
        chunks.extend(model(fake, "chat").invoke(model_request()))
    assert text(chunks) == "<think>\nHalf a\n</think>\n"


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter")])
def test_a_turn_that_was_cut_says_why(fake: FakeOpenAI, api: Api, reason: str, finish: str) -> None:
    fake.will(Turn(text="Half an ans", incomplete=reason))
    chunks = list(model(fake, api).invoke(model_request()))
    assert chunks[-1]["delta"]["finish_reason"] == finish
    assert text(chunks) == "Half an ans"


def test_calls_of_an_incomplete_response_are_not_passed_on_but_its_items_are(fake: FakeOpenAI) -> None:
    fake.will(Turn(calls=(Call("search", '{"q": "unfin'),), incomplete="max_output_tokens"))
    chunks = list(model(fake, "responses").invoke(model_request(tools=[SEARCH])))
    assert calls(chunks) == []
    (item,) = messages(chunks)[-1]["opaque_body"]["responses_output"]
    assert (item["type"], item["status"]) == ("function_call", "incomplete")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("step", "error_type", "words"),
    [
        (rate_limited(), "InvokeRateLimitError", "[models] Rate Limit Error, Error code: 429 - Rate limit reached"),
        (server_error(), "InvokeServerUnavailableError", "[models] Server Unavailable Error, Error code: 500 - "),
        (context_too_long(), "InvokeBadRequestError", "[models] Bad Request Error, Error code: 400 - "),
        (Refusal("No.", status=403), "InvokeAuthorizationError", "[models] Incorrect model credentials provided"),
        (Refusal("Gone.", status=404), "InvokeBadRequestError", "Error code: 404 - Gone. (server: http://"),
        (Turn(text="abcdefgh", cut_after=3), "InvokeConnectionError", "[models] Connection Error, "),
        (Turn(text="abcdefgh", ends_after=3), "InvokeConnectionError", "stream cut off"),
        (Turn(text="abc", error=("server_error", "Boom")), "InvokeServerUnavailableError", "server_error: Boom"),
        (Turn(text="abc", error=("rate_limit_exceeded", "Slow")), "InvokeRateLimitError", "rate_limit_exceeded: Slow"),
        (Turn(text="abc", error=("invalid_prompt", "Bad")), "InvokeBadRequestError", "invalid_prompt: Bad"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_failures_in_difys_words(fake: FakeOpenAI, api: Api, step: Turn | Refusal, error_type: str, words: str) -> None:
    fake.will(step)
    with pytest.raises(ModelCallError) as raised:
        list(model(fake, api).invoke(model_request()))
    assert raised.value.error_type == error_type
    assert words in raised.value.message
    assert len(fake.requests) == 1  # the client itself tries once


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "step", [Refusal(f"{KEY} may not do this"), Turn(error=("invalid_prompt", f"{KEY} may not do this"))], ids=type
)
def test_the_key_is_in_no_error(fake: FakeOpenAI, api: Api, step: Turn | Refusal) -> None:
    fake.will(step)
    with pytest.raises(ModelCallError, match=r"\[secret\] may not do this") as raised:
        list(model(fake, api).invoke(model_request()))
    assert KEY not in raised.value.as_dify_words_it()
    assert KEY not in repr(Connection(KEY, fake.base_url))


@pytest.mark.parametrize("api", APIS)
def test_a_refused_key_and_a_refused_connection_say_where_and_what_would_help(api: Api) -> None:
    def failure() -> str:
        with pytest.raises(ModelCallError) as raised:
            list(model(server, api, key="sk-1234567890").invoke(model_request()))
        return raised.value.message

    with FakeOpenAI() as server:
        refused = failure()
    gone = failure()
    assert refused.endswith(f"please check and try again. (server: {server.base_url}; check OPENAI_API_KEY)")
    assert gone.endswith(f"refused (server: {server.base_url}; check that a server runs there, or set OPENAI_BASE_URL)")


def chat_event(delta: object, **more: object) -> JsonObject:
    choice = {"index": 0, "delta": delta, "finish_reason": "stop"}
    return {"id": "1", "object": "chat.completion.chunk", "model": "qwen3", "choices": [choice], **more}


@pytest.mark.parametrize("end", [chat_event(None), {"id": "1", "choices": [{"index": 0, "finish_reason": "stop"}]}])
def test_a_last_choice_without_a_delta_ends_a_chat(fake: FakeOpenAI, end: JsonObject) -> None:
    fake.will(Turn(events=(chat_event({"content": "Hi"}), end)))
    chunks = list(model(fake, "chat").invoke(model_request()))
    assert (text(chunks), chunks[-1]["delta"]["finish_reason"]) == ("Hi", "stop")


@pytest.mark.parametrize(
    ("api", "event"),
    [
        ("chat", chat_event({"content": 5})),
        ("responses", {"type": "response.completed", "response": {"output": None}}),
        ("responses", None),
    ],
)
def test_an_event_of_another_form_fails_the_model_call(fake: FakeOpenAI, api: Api, event: object) -> None:
    fake.will(Turn(events=(event,)))
    with pytest.raises(ModelCallError, match=r"\[models\] Error: \w+Error: .* \(server: ") as raised:
        list(model(fake, api).invoke(model_request()))
    assert raised.value.error_type == "InvokeError"


@pytest.mark.parametrize("api", APIS)
def test_a_server_that_does_not_count(fake: FakeOpenAI, api: Api) -> None:
    fake.will(Turn(text="Hi", tokens=None), Turn(text="Hi"))
    backend = model(fake, api)
    used = [list(backend.invoke(model_request()))[-1]["delta"]["usage"] for _ in range(2)]
    assert [each is None for each in used] == [True, False]
    assert backend.afterwards.startswith("Model calls answered: 2. Prompt tokens: 100")


# Servers that answer a request for a stream with something else.

LOGIN = "<html><head><title>Sign in</title><style>p {}</style></head><body><p>Please sign in.</p></body></html>"


@pytest.mark.parametrize("api", APIS)
def test_a_page_in_place_of_a_stream_is_quoted_and_the_address_is_asked_for(fake: FakeOpenAI, api: Api) -> None:
    fake.will(Turn(body=("text/html; charset=utf-8", LOGIN)))
    with pytest.raises(ModelCallError) as raised:
        list(model(fake, api).invoke(model_request()))
    assert raised.value.error_type == "InvokeBadRequestError"  # which is not tried again
    said = 'the server sent text/html in place of a model\'s answer, "Sign in Please sign in."; is the address right?'
    assert said in raised.value.message


def test_a_whole_chat_is_an_answer(fake: FakeOpenAI) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": '{"q": "x"}'}}
    message = {"role": "assistant", "content": "Looking.", "reasoning_content": "Hm.", "tool_calls": [call]}
    whole = {
        "id": "1",
        "object": "chat.completion",
        "model": "llama3.2",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }
    fake.will(Turn(body=("application/json", json.dumps(whole))))
    chunks = list(model(fake, "chat").invoke(model_request()))
    assert text(chunks) == "<think>\nHm.\n</think>\nLooking."
    assert [each["function"] for each in calls(chunks)] == [call["function"]]
    assert chunks[-1]["delta"]["finish_reason"] == "tool_calls"
    assert chunks[-1]["delta"]["usage"]["total_tokens"] == 10


def test_a_whole_response_is_an_answer(fake: FakeOpenAI) -> None:
    said = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]}
    whole = {"id": "r", "object": "response", "status": "completed", "output": [said]}
    fake.will(Turn(body=("application/json", json.dumps(whole))))
    chunks = list(model(fake, "responses").invoke(model_request()))
    assert text(chunks) == "Hi."
    assert chunks[-1]["delta"]["finish_reason"] == "stop"


STREAM = "text/event-stream"


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("body", "error_type", "words"),
    [
        (
            (STREAM, 'event: error\ndata: {"message": "Overloaded", "code": 503}\n\n'),
            "InvokeServerUnavailableError",
            "503: Overloaded",
        ),
        ((STREAM, 'event: error\ndata: {"error": "no such model"}\n\n'), "InvokeBadRequestError", "no such model"),
        ((STREAM, "event: error\ndata: no such model\n\n"), "InvokeBadRequestError", "not JSON: no such model"),
        (("application/json", '{"detail": "Not Found"}'), "InvokeBadRequestError", "Not Found"),
        (("application/json", "{}"), "InvokeBadRequestError", "application/json in place of a model's answer"),
    ],
    ids=str,
)
def test_an_error_of_another_form_is_told(
    fake: FakeOpenAI, api: Api, body: tuple[str, str], error_type: str, words: str
) -> None:
    fake.will(Turn(body=body))
    with pytest.raises(ModelCallError) as raised:
        list(model(fake, api).invoke(model_request()))
    assert raised.value.error_type == error_type
    assert words in raised.value.message
