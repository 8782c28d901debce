"""What kind of failure a message of the host means."""

import json

import pytest

from internal.host.failures import FailureKind, HostFailure, classify, is_transient
from tests.support.recordings import DAEMON, recorded


def as_dify_words_it(error_type: str, message: str) -> str:
    return f"PluginInvokeError: {json.dumps({'args': {}, 'error_type': error_type, 'message': message})}"


@pytest.mark.parametrize(
    ("error_type", "message", "kind"),
    [
        ("InvokeRateLimitError", "reduce the length: too many tokens per minute", FailureKind.RATE_LIMITED),
        ("InvokeServerUnavailableError", "try again", FailureKind.UNAVAILABLE),
        ("InvokeConnectionError", "reset by peer", FailureKind.CONNECTION),
        ("InvokeConnectionError", "Connection refused", FailureKind.CONNECTION),
        ("InvokeAuthorizationError", "quota of this key", FailureKind.UNAUTHORIZED),
        ("InvokeBadRequestError", "rate of sampling not found", FailureKind.INVALID_REQUEST),
        ("InvokeBadRequestError", "maximum context length is 8192 tokens", FailureKind.CONTEXT_LENGTH),
        ("InvokeBadRequestError", "prompt is too long: 9 > 8", FailureKind.CONTEXT_LENGTH),
        ("InvokeBadRequestError", "exceeds the maximum number of 8192 tokens", FailureKind.CONTEXT_LENGTH),
        ("ToolProviderCredentialValidationError", "invalid", FailureKind.UNAUTHORIZED),
        ("ToolParameterValidationError", "city not found", FailureKind.INVALID_REQUEST),
        ("ToolProviderNotFoundError", "x", FailureKind.NOT_FOUND),
        ("ToolNotFoundError", "x", FailureKind.NOT_FOUND),
    ],
)
def test_a_named_error_type_counts_before_the_words_around_it(error_type: str, message: str, kind: FailureKind) -> None:
    assert classify(as_dify_words_it(error_type, message)) is kind


def test_the_type_is_that_of_the_innermost_error_not_of_a_traceback_before_it() -> None:
    args = {"traceback": "raise InvokeServerUnavailableError"}
    inner = json.dumps({"args": args, "error_type": "InvokeBadRequestError", "message": "bad"})
    outer = json.dumps({"message": inner, "args": args, "error_type": "InvokeConnectionError"})

    assert classify(f"PluginInvokeError: {inner}") is FailureKind.INVALID_REQUEST
    assert classify(f"PluginInvokeError: {outer}") is FailureKind.INVALID_REQUEST


@pytest.mark.parametrize("kind", ["output", "completion"])
def test_an_answer_that_is_too_long_is_not_a_context_length_error(kind: str) -> None:
    message = f"max_tokens (9) exceeds the maximum number of {kind} tokens (8)"

    assert classify(as_dify_words_it("InvokeBadRequestError", message)) is FailureKind.INVALID_REQUEST


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Rate limit reached for gpt-5", FailureKind.RATE_LIMITED),
        ("HTTP 429", FailureKind.RATE_LIMITED),
        ("[Errno 111] Connection refused", FailureKind.CONNECTION),
        ("invocation exited without response after 250 seconds", FailureKind.TIMEOUT),
        ("read timed out", FailureKind.TIMEOUT),
        ("504 Gateway Time-out", FailureKind.TIMEOUT),
        ("failed to read response body", FailureKind.CUT_STREAM),
        ("unexpected EOF", FailureKind.CUT_STREAM),
        ("403 Forbidden", FailureKind.UNAUTHORIZED),
        ("page does not exist", FailureKind.NOT_FOUND),
        ("502 Bad Gateway", FailureKind.UNAVAILABLE),
        ("invoke llm model failed: dial tcp: lookup api on 127.0.0.11:53: no such host", FailureKind.CONNECTION),
        ("invoke llm model failed: dial tcp 10.0.0.7:5001: i/o timeout", FailureKind.TIMEOUT),
        ("Server disconnected without sending a response.", FailureKind.CONNECTION),
        ("Overloaded", FailureKind.UNAVAILABLE),
        ("Temporary failure in name resolution", FailureKind.CONNECTION),
        ("1 validation error for Request", FailureKind.INVALID_REQUEST),
        ("This model's context window is exceeded", FailureKind.CONTEXT_LENGTH),
        ("killed by a cosmic ray", FailureKind.UNKNOWN),
        ("", FailureKind.UNKNOWN),
    ],
)
def test_without_a_type_the_words_decide(message: str, kind: FailureKind) -> None:
    assert classify(message) is kind


# As dify_plugin (AIModel._transform_invoke_error), its OpenAI-compatible model and raise_for_status word them; Dify
# passes on the message alone.
PROVIDERS_WORDS = {
    "[OpenAI] Incorrect model credentials provided, please check and try again. ": FailureKind.UNAUTHORIZED,
    "[openai] Rate Limit Error, Error code: 429 - {'error': {'message': 'Limit: 3 invalid tokens'}}": (
        FailureKind.RATE_LIMITED
    ),
    "[openai] Connection Error, Connection error.": FailureKind.CONNECTION,
    "[openai] Server Unavailable Error, Error code: 500 - {'error': {'message': 'invalid'}}": FailureKind.UNAVAILABLE,
    "[openai] Bad Request Error, Error code: 400 - {'error': {'message': 'not found: x'}}": FailureKind.INVALID_REQUEST,
    "[openai] Bad Request Error, Error code: 404 - {'error': {'message': 'no access'}}": FailureKind.NOT_FOUND,
    "[compatible] Bad Request Error, 503 Server Error: Service Unavailable for url: http://a.example/v1": (
        FailureKind.UNAVAILABLE
    ),
    "[compatible] Error: You exceeded your current quota, please check your plan": FailureKind.RATE_LIMITED,
    "[compatible] Error: API key not valid. Please pass a valid API key.": FailureKind.UNAUTHORIZED,
    "Credentials validation failed with status code 401 and response body x": FailureKind.UNAUTHORIZED,
    **{
        f"[compatible] Error: API request failed with status code {status}: {body}": kind
        for status, kind in (
            (401, FailureKind.UNAUTHORIZED),
            (403, FailureKind.UNAUTHORIZED),
            (404, FailureKind.NOT_FOUND),
            (429, FailureKind.RATE_LIMITED),
            (500, FailureKind.UNAVAILABLE),
            (502, FailureKind.UNAVAILABLE),
            (503, FailureKind.UNAVAILABLE),
            (504, FailureKind.TIMEOUT),
        )
        for body in ('{"error": {"message": "It said no"}}', '{"message": "It said no"}', "<html>no</html>", "")
    },
}


@pytest.mark.parametrize(("message", "kind"), PROVIDERS_WORDS.items())
def test_what_providers_say_has_its_kind_without_the_name_of_an_error(message: str, kind: FailureKind) -> None:
    assert classify(message) is kind
    assert classify(f"request failed: {as_dify_words_it('Exception', message)}") is kind


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("HTTP 429", "HTTP 429"),
        (as_dify_words_it("InvokeBadRequestError", "no such model"), "no such model"),
        (f"req_id: 1 {as_dify_words_it('X', as_dify_words_it('Y', 'inside'))}", "inside"),
        (as_dify_words_it("X", ""), "X"),
        ("read tool response failed: request failed: tool invoke error: failed to execute tool search: boom", "boom"),
        (f"read llm model failed: request failed: {as_dify_words_it('X', 'inside')}", "inside"),
        ('broken {"message": "x"', 'broken {"message": "x"'),
        ('a {"code": 5}', 'a {"code": 5}'),
        ("{" * 5, "{" * 5),
        ('{"a":' * 4_000, '{"a":' * 4_000),
    ],
    ids=[
        "bare",
        "wrapped",
        "wrapped twice",
        "only its type inside",
        "a tool's",
        "a model's",
        "broken",
        "no message",
        "only braces",
        "too deep",
    ],
)
def test_a_host_failure_has_the_innermost_message_and_keeps_the_whole(message: str, reason: str) -> None:
    failure = HostFailure(message)

    assert failure.kind is classify(message)
    assert failure.reason == reason
    assert str(failure) == message


@pytest.mark.parametrize(
    "kind",
    [
        FailureKind.RATE_LIMITED,
        FailureKind.UNAVAILABLE,
        FailureKind.CONNECTION,
        FailureKind.CUT_STREAM,
    ],
)
def test_a_failure_that_may_pass_is_transient(kind: FailureKind) -> None:
    assert is_transient(kind)


@pytest.mark.parametrize(
    "kind",
    [
        FailureKind.CONTEXT_LENGTH,
        FailureKind.INVALID_REQUEST,
        FailureKind.UNAUTHORIZED,
        FailureKind.NOT_FOUND,
        FailureKind.UNKNOWN,
    ],
)
def test_a_failure_that_would_come_again_is_not(kind: FailureKind) -> None:
    assert not is_transient(kind)


DAEMONS_WORDS = {
    "the API's stream holds an error of the model plugin (a rate limit)": (FailureKind.RATE_LIMITED, False),
    "the API's stream holds data null and an empty error": (FailureKind.UNAVAILABLE, True),
    "the API answers HTTP 500 with a page": (FailureKind.UNAVAILABLE, True),
    "the API answers HTTP 404 with JSON": (FailureKind.NOT_FOUND, True),
    "the API answers HTTP 502 of a proxy, empty": (FailureKind.UNAVAILABLE, True),
    "the API closes before it answers": (FailureKind.CONNECTION, True),
    "the API resets the connection before it answers": (FailureKind.CONNECTION, True),
    "the API closes in the middle of a chunk": (FailureKind.CUT_STREAM, True),
    "the API closes between two chunks, without the end of the HTTP body": (FailureKind.CUT_STREAM, True),
    "the API resets the connection after one chunk": (FailureKind.CUT_STREAM, True),
    "the API's stream has a wrong magic number": (FailureKind.UNAVAILABLE, True),
    "the API stalls after one chunk until the daemon's read timeout (6 s here, 240 s by default)": (
        FailureKind.TIMEOUT,
        True,
    ),
    "a tool: the API's stream holds an error": (FailureKind.UNKNOWN, False),
    "a tool: the API answers HTTP 500": (FailureKind.UNAVAILABLE, True),
    "a tool: the API closes before it answers": (FailureKind.CONNECTION, True),
    "a tool: a chunk above 30 MiB": (FailureKind.TOO_LARGE, True),
    "the plugin asks for a kind of invocation that does not exist": (FailureKind.INVALID_REQUEST, True),
    "the plugin asks for an app without the permission": (FailureKind.UNAUTHORIZED, True),
    "the plugin asks for storage without the permission": (FailureKind.UNAUTHORIZED, True),
    "the plugin asks for a model without a name": (FailureKind.INVALID_REQUEST, True),
    "the plugin asks for a tool of a type that does not exist": (FailureKind.INVALID_REQUEST, True),
    "opaque_body is an object": (FailureKind.INVALID_REQUEST, True),
}


def test_each_error_of_the_daemon_has_its_kind_and_its_origin() -> None:
    heard = {
        row["fault"]: HostFailure(said["message"])
        for row in recorded(DAEMON, "backwards_failure")
        for said in row["plugin_reads"]
        if said["event"] == "error"
    }

    assert {fault: (failure.kind, failure.is_hosts_own) for fault, failure in heard.items()} == DAEMONS_WORDS


def test_the_message_of_provider_or_tool_is_taken_out_of_the_wrapping() -> None:
    rows = {row["fault"]: row for row in recorded(DAEMON, "backwards_failure")}

    def reason(fault: str) -> str:
        return HostFailure(rows[fault]["plugin_reads"][-2]["message"]).reason

    assert reason("a tool: the API's stream holds an error") == "boom"
    assert reason("the API's stream holds an error of the model plugin (a rate limit)") == (
        "[models] Rate Limit Error, Error code: 429 - {'error': {'message': 'Rate limit reached for gpt-5'}}"
    )
    assert reason("opaque_body is an object") == "prompt_messages[0].opaque_body was refused"


@pytest.mark.parametrize(
    "message",
    [
        "connect http://search.internal:8080/mcp?timeout=32s: connection refused",
        "Max retries exceeded with url: /mcp?timeout=32s (Caused by: Connection refused)",
        "dial tcp: lookup timeout.example.com on 127.0.0.11:53: connection refused",
        "rate-limit.internal.example:443: connection refused",
    ],
)
def test_a_kind_is_not_read_out_of_an_address(message: str) -> None:
    assert classify(message) is FailureKind.CONNECTION


def test_a_kind_is_not_read_out_of_a_traceback_beside_the_message() -> None:
    wrapped = {"args": {"traceback": "self.timeout = timeout  # rate limit"}, "error_type": "ValueError"}

    assert classify(f"PluginInvokeError: {json.dumps({**wrapped, 'message': 'boom'})}") is FailureKind.UNKNOWN
    assert classify(f"PluginInvokeError: {json.dumps({**wrapped, 'message': 'no route: 503'})}") is FailureKind.UNKNOWN


def test_the_name_of_an_error_counts_when_its_message_is_empty() -> None:
    assert classify(as_dify_words_it("ReadTimeout", "")) is FailureKind.TIMEOUT


@pytest.mark.parametrize("said", ["network", "timed out", "rate limit", "connection refused"])
def test_a_refused_opaque_body_is_recognised_by_its_field_whatever_value_is_quoted(said: str) -> None:
    message = (
        "unmarshal backwards invoke request failed: error decoding map: 1 error(s) decoding:\n\n"
        "* 'prompt_messages[0].opaque_body[0]' expected type 'uint8', got unconvertible type "
        f"'map[string]interface {{}}', value: 'map[summary:{said}]'"
    )

    failure = HostFailure(message)

    assert failure.names_opaque_body
    assert failure.kind is FailureKind.INVALID_REQUEST
    assert said not in failure.reason


def test_a_tool_may_speak_of_something_called_opaque_body() -> None:
    failure = HostFailure(as_dify_words_it("Exception", 'column "opaque_body" does not exist'))

    assert not failure.names_opaque_body
    assert not failure.is_hosts_own
    assert failure.reason == 'column "opaque_body" does not exist'


HUGE = {
    "letters": "a" * 6_000_000,
    "braces": "{" * 6_000_000,
    "quotes": '\\"' * 3_000_000,
    "paths": "/a?" * 2_000_000,
    "addresses": "a://" * 1_500_000,
    "prefixes": "request failed: " * 400_000,
    "wrapped": as_dify_words_it("ValueError", "a" * 6_000_000),
}


@pytest.mark.parametrize("message", HUGE.values(), ids=HUGE)
def test_of_a_huge_message_its_beginning_and_end_are_read(message: str) -> None:
    failure = HostFailure(message)

    assert failure.kind is FailureKind.UNKNOWN
    assert len(failure.reason) < 50_000


def test_words_count_near_the_ends_of_a_long_message_only() -> None:
    padding = "x" * 100_000

    assert classify(f"timed out {padding}") is FailureKind.TIMEOUT
    assert classify(f"{padding} timed out") is FailureKind.TIMEOUT
    assert classify(f"{padding} timed out {padding}") is FailureKind.UNKNOWN
