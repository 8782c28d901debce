"""The backends against the fake API: chunks as Dify's plugins stream them, failures as Dify words them."""

import json

import pytest
from openai.types.responses import ResponseErrorEvent

from devhost.models.backend import ModelCallError
from devhost.models.openai_api.backend import Connection, OpenAIModel
from devhost.models.openai_api.provider import Api, reading_the_stream
from devhost.models.openai_api.responses import responses_turn
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
from support.openai_requests import SEARCH, model_request, result

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


def test_responses_text_as_it_comes_and_calls_whole_at_the_end(fake: FakeOpenAI) -> None:
    fake.will(TWO_CALLS)
    *streamed, last = model(fake, "responses").invoke(model_request(tools=[SEARCH]))

    assert text(streamed) == TWO_CALLS.text
    assert len(streamed) > 3
    assert calls(streamed) == []
    assert calls([last]) == [
        {"id": "call_a", "type": "function", "function": {"name": "search", "arguments": '{"q": "größe"}'}},
        {"id": "call_b", "type": "function", "function": {"name": "search", "arguments": '{"q": "大きさ"}'}},
    ]
    assert last["delta"]["message"]["content"] == ""
    assert last["delta"]["finish_reason"] == "tool_calls"
    assert last["delta"]["message"]["opaque_body"] == {"responses_output": fake.issued[0]}
    assert last["delta"]["usage"]["prompt_price"] == "0.0008000"  # 600 at 1.25, 400 at 0.125
    assert last["delta"]["usage"]["completion_tokens"] == 50


def test_chat_fragments_are_passed_on_as_they_come(fake: FakeOpenAI) -> None:
    fake.will(TWO_CALLS)
    chunks = list(model(fake, "chat").invoke(model_request(tools=[SEARCH])))

    fragments = [(call["id"], call["function"]["name"]) for call in calls(chunks)]
    assert fragments == [("call_a", "search"), ("", ""), ("", ""), ("call_b", "search"), ("", ""), ("", "")]
    assert "".join(call["function"]["arguments"] for call in calls(chunks)) == '{"q": "größe"}{"q": "大きさ"}'
    assert text(chunks) == TWO_CALLS.text
    assert [chunk["delta"]["usage"] is None for chunk in chunks] == [True] * (len(chunks) - 1) + [False]
    assert chunks[-1]["delta"]["finish_reason"] == "tool_calls"
    assert all(message["opaque_body"] is None for message in messages(chunks))


def test_chat_fragments_that_jump_between_calls_say_which(fake: FakeOpenAI) -> None:
    fake.will(Turn(calls=(Call("search", '{"q":"a"}', id="a"), Call("search", '{"q":"b"}', id="b")), interleaved=True))
    chunks = list(model(fake, "chat").invoke(model_request(tools=[SEARCH])))

    assembled = {"a": "", "b": ""}
    for fragment in calls(chunks):
        assembled[fragment["id"]] += fragment["function"]["arguments"]
    assert assembled == {"a": '{"q":"a"}', "b": '{"q":"b"}'}


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
        (
            context_too_long(),
            "InvokeBadRequestError",
            "[models] Bad Request Error, Error code: 400 - Your input exceeds",
        ),
        (Refusal("No.", status=403), "InvokeAuthorizationError", "[models] Incorrect model credentials provided"),
        (Refusal("Gone.", status=404), "InvokeBadRequestError", "Error code: 404 - Gone."),
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


def test_a_round_trip_replays_the_items_verbatim(fake: FakeOpenAI) -> None:
    fake.will(Turn(summary="Look.", text="One moment.", calls=TWO_CALLS.calls), Turn(text="Done."))
    backend = model(fake, "responses")
    first = list(backend.invoke(model_request(tools=[SEARCH], reasoning_summary="auto")))
    body = messages(first)[-1]["opaque_body"]
    history = [
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": "One moment.",
            "tool_calls": calls(first),
            "opaque_body": json.loads(json.dumps(body)),
        },
        result("call_a", "a"),
        result("call_b", "b"),
    ]
    assert text(list(backend.invoke(model_request(history, tools=[SEARCH])))) == "Done."
    sent = fake.requests[1][1]["input"]
    assert sent[1:5] == fake.issued[0]
    assert [item["type"] for item in sent[1:5]] == ["reasoning", "message", "function_call", "function_call"]
    assert backend.spending.calls == 2


def test_an_error_event_and_an_event_that_is_not_valid_json() -> None:
    event = ResponseErrorEvent(type="error", code="server_error", message="Boom", sequence_number=0)
    with pytest.raises(ModelCallError, match="server_error: Boom"):
        list(responses_turn([event]))
    with pytest.raises(ModelCallError, match="stream cannot be read") as raised, reading_the_stream():
        json.loads("{no")
    assert raised.value.error_type == "InvokeError"


def chat_event(delta: object, **more: object) -> JsonObject:
    choice = {"index": 0, "delta": delta, "finish_reason": "stop"}
    return {"id": "1", "object": "chat.completion.chunk", "model": "qwen3", "choices": [choice], **more}


@pytest.mark.parametrize(
    "odd",
    [
        chat_event(None),
        {"id": "1", "choices": [{"index": 0, "finish_reason": "stop"}]},
        chat_event({"content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": ""}]}),
    ],
)
def test_differences_of_compatible_servers_streams(fake: FakeOpenAI, odd: JsonObject) -> None:
    parts = [{"type": "text", "text": "H"}, {"type": "text", "text": "i"}]
    fake.will(Turn(events=(chat_event({"content": parts}), odd)))
    chunks = list(model(fake, "chat").invoke(model_request()))
    assert (text(chunks), chunks[-1]["delta"]["finish_reason"]) == ("Hi", "stop")


UNREADABLE_CHAT: list[object] = [
    chat_event({"content": 5}),
    chat_event({"content": [{"text": "Hi"}]}),
    chat_event({"tool_calls": "x"}),
    chat_event({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "search", "arguments": {"q": 1}}}]}),
    chat_event({}, usage=[]),
    None,
]
UNREADABLE_RESPONSES: list[object] = [
    {"type": "response.output_text.delta", "delta": 5},
    {"type": "response.completed", "response": {"output": None}},
    {"type": "response.completed", "response": {"status": "completed", "output": [], "usage": []}},
    {
        "type": "response.completed",
        "response": {"output": [{"type": "function_call", "call_id": "c", "name": "search", "arguments": {"q": 1}}]},
    },
    None,
]


@pytest.mark.parametrize(
    ("api", "event"),
    [*(("chat", event) for event in UNREADABLE_CHAT), *(("responses", event) for event in UNREADABLE_RESPONSES)],
)
def test_an_event_of_another_form_fails_the_model_call(fake: FakeOpenAI, api: Api, event: object) -> None:
    fake.will(Turn(events=(event,)))
    with pytest.raises(ModelCallError, match=r"\[models\] Error: the server's stream cannot be read: ") as raised:
        list(model(fake, api).invoke(model_request()))
    assert raised.value.error_type == "InvokeError"


def test_a_request_that_cannot_be_sent_is_not_the_servers_fault(fake: FakeOpenAI) -> None:
    with pytest.raises(ModelCallError, match="the request cannot be sent: 'utf-8' codec"):
        list(model(fake, "chat").invoke(model_request([{"role": "user", "content": "half \ud83d"}])))


@pytest.mark.parametrize("api", APIS)
def test_a_server_that_does_not_count(fake: FakeOpenAI, api: Api) -> None:
    fake.will(Turn(text="Hi", tokens=None), Turn(text="Hi", tokens=None), Turn(text="Hi"))
    backend = model(fake, api)
    for _ in range(2):
        *_, last = backend.invoke(model_request())
        assert last["delta"]["usage"] is None
    assert backend.afterwards == "Model calls answered: 2. The server did not count their tokens."
    list(backend.invoke(model_request()))
    assert "Model calls answered: 3. Prompt tokens: 100" in backend.afterwards
    assert backend.afterwards.endswith(" The server did not count the tokens of 2 calls.")
    assert (backend.spent()["calls"], backend.spent()["uncounted_calls"]) == (3, 2)
