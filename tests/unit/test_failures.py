"""What a failure message of the host means: its kind, and what the model reads of a tool's."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.call import CallStatus, ToolCall, ValidCall
from internal.calls.output import MAX_REASON_LENGTH, ToolOutput, plain_reason
from internal.host.failures import FailureKind, HostFailure
from internal.text.secrets import KnownSecrets, Redactor
from prompt import tool_errors
from support.recordings import DAEMON, recorded
from tests.support.builders import tool_of
from tests.support.generators import joined, text_from_the_host


def kind_of(message: str) -> FailureKind:
    return HostFailure(message).kind


def as_dify_words_it(error_type: str, message: str) -> str:
    return f"PluginInvokeError: {json.dumps({'args': {}, 'error_type': error_type, 'message': message})}"


@pytest.mark.parametrize(
    ("error_type", "message", "kind"),
    [
        ("InvokeRateLimitError", "reduce the length: too many tokens per minute", FailureKind.RATE_LIMITED),
        ("InvokeAuthorizationError", "quota of this key", FailureKind.UNAUTHORIZED),
        ("InvokeBadRequestError", "rate of sampling not found", FailureKind.INVALID_REQUEST),
        ("InvokeBadRequestError", "maximum context length is 8192 tokens", FailureKind.CONTEXT_LENGTH),
        ("InvokeBadRequestError", "prompt is too long: 9 > 8", FailureKind.CONTEXT_LENGTH),
        ("InvokeBadRequestError", "exceeds the maximum number of output tokens (8)", FailureKind.INVALID_REQUEST),
        ("ToolProviderCredentialValidationError", "invalid", FailureKind.UNAUTHORIZED),
        ("ToolNotFoundError", "x", FailureKind.NOT_FOUND),
        ("ReadTimeout", "", FailureKind.TIMEOUT),
    ],
)
def test_a_named_error_type_counts_before_the_words_around_it(error_type: str, message: str, kind: FailureKind) -> None:
    assert kind_of(as_dify_words_it(error_type, message)) is kind


def test_the_type_is_that_of_the_innermost_error_not_of_a_traceback_before_it() -> None:
    args = {"traceback": "raise InvokeServerUnavailableError  # timeout"}
    inner = json.dumps({"args": args, "error_type": "InvokeBadRequestError", "message": "bad"})
    outer = json.dumps({"message": inner, "args": args, "error_type": "InvokeConnectionError"})

    assert kind_of(f"PluginInvokeError: {inner}") is FailureKind.INVALID_REQUEST
    assert kind_of(f"PluginInvokeError: {outer}") is FailureKind.INVALID_REQUEST


# Bare words; then as dify_plugin (AIModel._transform_invoke_error), its OpenAI-compatible model and raise_for_status
# word them. Dify passes on the message alone.
WORDS = {
    "Rate limit reached for gpt-5": FailureKind.RATE_LIMITED,
    "invocation exited without response after 250 seconds": FailureKind.TIMEOUT,
    "failed to read response body": FailureKind.CUT_STREAM,
    "403 Forbidden": FailureKind.UNAUTHORIZED,
    "502 Bad Gateway": FailureKind.UNAVAILABLE,
    "invoke llm model failed: dial tcp 10.0.0.7:5001: i/o timeout": FailureKind.TIMEOUT,
    "connect http://search.internal:8080/mcp?timeout=32s: connection refused": FailureKind.CONNECTION,
    "Server disconnected without sending a response.": FailureKind.CONNECTION,
    "This model's context window is exceeded": FailureKind.CONTEXT_LENGTH,
    "no route: 503": FailureKind.UNKNOWN,
    "killed by a cosmic ray": FailureKind.UNKNOWN,
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
            (403, FailureKind.UNAUTHORIZED),
            (404, FailureKind.NOT_FOUND),
            (429, FailureKind.RATE_LIMITED),
            (500, FailureKind.UNAVAILABLE),
            (504, FailureKind.TIMEOUT),
        )
        for body in ('{"error": {"message": "It said no"}}', '{"message": "It said no"}', "<html>no</html>", "")
    },
}


@pytest.mark.parametrize(("message", "kind"), WORDS.items())
def test_without_a_type_the_words_decide(message: str, kind: FailureKind) -> None:
    assert kind_of(message) is kind
    assert kind_of(f"request failed: {as_dify_words_it('Exception', message)}") is kind


# What a plugin says of its provider's answer, as AIModel._transform_invoke_error words it.
BEDROCK = "[bedrock] Error: "
IN_BEDROCKS_STREAM = "[bedrock] Error: An error occurred ({}) when calling the ConverseStream operation: {}"
COMPATIBLE = "[openai_api_compatible] Error: API request failed with status code "
IN_ANTHROPICS_STREAM = (
    "[anthropic] Bad Request Error, {'type': 'error', 'error': {'details': None, 'type': %r, 'message': 'x'}}"
)
PROVIDERS = {
    BEDROCK + "Failed to invoke inference profile p1: ThrottlingException: Too many tokens, please wait": (
        FailureKind.RATE_LIMITED
    ),
    IN_BEDROCKS_STREAM.format("throttlingException", "Too many tokens, please wait before trying again."): (
        FailureKind.RATE_LIMITED
    ),
    "[compatible] Bad Request Error, Too many tokens, please wait before trying again.": FailureKind.RATE_LIMITED,
    "[cohere] Error: too many tokens: total number of tokens cannot exceed 4081": FailureKind.CONTEXT_LENGTH,
    IN_BEDROCKS_STREAM.format("internalServerException", "An error."): FailureKind.UNAVAILABLE,
    BEDROCK + "ModelErrorException: The model said no.": FailureKind.UNAVAILABLE,
    BEDROCK + "ValidationException: Malformed input request: #: extraneous key": FailureKind.INVALID_REQUEST,
    COMPATIBLE
    + '400: {"object": "error", "message": "This model\'s maximum context length is 4096 tokens.", "code": 400}': (
        FailureKind.CONTEXT_LENGTH
    ),
    COMPATIBLE + '422: {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096.", '
    '"error_type": "validation"}': FailureKind.CONTEXT_LENGTH,
    COMPATIBLE + '529: {"error": {"message": "try later"}}': FailureKind.UNAVAILABLE,
    COMPATIBLE + '402: {"error": {"message": "Payment Required"}}': FailureKind.QUOTA_SPENT,
    COMPATIBLE + '403: {"code": 30001, "message": "Sorry, your account balance is insufficient", "data": null}': (
        FailureKind.QUOTA_SPENT
    ),
    COMPATIBLE + '400: {"code": "Arrearage", "message": "Access denied, please make sure your account is in good"}': (
        FailureKind.QUOTA_SPENT
    ),
    IN_ANTHROPICS_STREAM % "overloaded_error": FailureKind.UNAVAILABLE,
    IN_ANTHROPICS_STREAM % "api_error": FailureKind.UNAVAILABLE,
    IN_ANTHROPICS_STREAM % "rate_limit_error": FailureKind.RATE_LIMITED,
    "[ollama] Bad Request Error, Error code: 400 - {'error': {'message': 'no', 'type': 'api_error'}}": (
        FailureKind.INVALID_REQUEST
    ),
    "[openrouter] Error: {'error': {'code': 429, 'message': 'Provider returned error'}}": FailureKind.RATE_LIMITED,
}


@pytest.mark.parametrize(("message", "kind"), PROVIDERS.items())
def test_a_provider_is_understood_in_the_wrapping_of_its_plugin_and_of_dify(message: str, kind: FailureKind) -> None:
    assert kind_of(message) is kind
    assert kind_of(f"read llm model failed: request failed: {as_dify_words_it('InvokeError', message)}") is kind
    assert kind_of(f"req_id: 1 {as_dify_words_it('X', as_dify_words_it('InvokeError', message))}") is kind


MISSES_THINKING = (
    "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is "
    "enabled, a final `assistant` message must start with a thinking block."
)


# Moonshot's and DeepSeek's, in tests and logs of public clients of 2026-11; the last from memory.
MISSES_REASONING = [
    "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
    "The `reasoning_content` in the thinking mode must be passed back to the API.",
    "The content[].thinking in the thinking mode must be passed back to the API.",
    "Missing `reasoning_content` field in the assistant message at message index 1.",
]


@pytest.mark.parametrize(
    "message",
    [
        "[anthropic] Bad Request Error, Error code: 400 - "
        + repr({"type": "error", "error": {"type": "invalid_request_error", "message": MISSES_THINKING}}),
        f"{BEDROCK}ValidationException: The model returned the following errors: {MISSES_THINKING}",
        COMPATIBLE + "400: " + json.dumps({"error": {"message": MISSES_THINKING.replace("tool_use", "text")}}),
        *(
            f"{COMPATIBLE}400: {json.dumps({'error': {'message': said, 'type': 'invalid_request_error'}})}"
            for said in MISSES_REASONING
        ),
    ],
)
def test_a_refusal_for_missing_thinking_is_recognised_in_each_wrapping(message: str) -> None:
    failure = HostFailure(f"request failed: {as_dify_words_it('InvokeError', message)}")

    assert failure.misses_thinking
    assert failure.kind is FailureKind.INVALID_REQUEST
    assert failure.remedy == "switch thinking off in the model's settings"


def test_a_model_that_speaks_of_thinking_misses_none() -> None:
    assert not HostFailure("[anthropic] Bad Request Error, `thinking` is not supported by this model").misses_thinking
    assert not HostFailure("Error: `reasoning_content` is no parameter of this model").misses_thinking


def test_a_validation_error_of_tgi_has_its_own_words_as_reason() -> None:
    said = json.dumps({"error": "`inputs` must have less than 9 tokens", "error_type": "validation"})

    assert HostFailure(f"{COMPATIBLE}422: {said}").reason == "`inputs` must have less than 9 tokens"


REASONS = {
    "bare": ("HTTP 429", "HTTP 429"),
    "wrapped twice": (f"req_id: 1 {as_dify_words_it('X', as_dify_words_it('Y', 'inside'))}", "inside"),
    "only its type": (as_dify_words_it("X", ""), "X"),
    "a tool's": (
        "read tool response failed: request failed: tool invoke error: failed to execute tool search: boom",
        "boom",
    ),
    "a model's": (f"read llm model failed: request failed: {as_dify_words_it('X', 'inside')}", "inside"),
    "broken": ('broken {"message": "x"', 'broken {"message": "x"'),
    "no message": ('a {"code": 5}', 'a {"code": 5}'),
    "too deep": ('{"a":' * 4_000, '{"a":' * 4_000),
}


@pytest.mark.parametrize(("message", "reason"), REASONS.values(), ids=REASONS)
def test_a_host_failure_has_the_innermost_message_and_keeps_the_whole(message: str, reason: str) -> None:
    assert (HostFailure(message).reason, str(HostFailure(message))) == (reason, message)


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
    assert heard["a tool: the API's stream holds an error"].reason == "boom"
    assert heard["the API's stream holds an error of the model plugin (a rate limit)"].reason == (
        "[models] Rate Limit Error, Error code: 429 - {'error': {'message': 'Rate limit reached for gpt-5'}}"
    )
    assert heard["opaque_body is an object"].reason == "prompt_messages[0].opaque_body was refused"


@pytest.mark.parametrize("said", ["timed out", "rate limit"])
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
    "paths": "/a?" * 2_000_000,
    "folders": "/a" * 3_000_000,
    "prefixes": "request failed: " * 400_000,
    "tracebacks": "Traceback (most recent call last): File " * 150_000,
    "wrapped": as_dify_words_it("ValueError", "a" * 6_000_000),
}


@pytest.mark.parametrize("message", HUGE.values(), ids=HUGE)
def test_of_a_huge_message_its_beginning_and_end_are_read(message: str) -> None:
    failure = HostFailure(message)

    assert failure.kind is FailureKind.UNKNOWN
    assert len(failure.reason) < 50_000
    assert len(reason(failure.reason)) <= MAX_REASON_LENGTH


# What the model reads of a tool's failure.

SECRET = "hunter2-hunter2"
REDACTOR = Redactor.of([SECRET, "two\n\nlines of it"])


def reason(message: str) -> str:
    return plain_reason(message, REDACTOR)


TOLD = {
    "a rate limit with words": ("request failed: 429: wait 5 minutes", ": 429: wait 5 minutes"),
    "a refusal in an address": (
        'invoke tool failed: Post "http://a.example/x?timeout=32s": dial tcp 10.0.0.1:1: connect: connection refused',
        ": unavailable",
    ),
    "a chunk above 30 MiB": (
        "read tool response failed: data length is too long: 32505934",
        ": its result is too large",
    ),
    "the SDK's limit on silence": ("invocation exited without response after 20 seconds", ": timeout"),
    "a proxy's status": (
        "invoke tool failed: request failed with status code: 401 and respond with: ",
        ": unauthorized",
    ),
    "a broken transport": ('invoke tool failed: Post "http://api/inner/api/invoke/tool": EOF', ": unavailable"),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("message", "expected"), TOLD.values(), ids=TOLD)
def test_the_model_reads_the_innermost_message_or_one_word(message: str, expected: str) -> None:
    output = ToolOutput(KnownSecrets(REDACTOR))
    output.fail(HostFailure(message))
    call = ValidCall(ToolCall("c1", "search", "{}"), tool_of(), {})

    outcome = output.outcome(call, limit=1_000, elapsed_seconds=0.0)

    assert (outcome.status, outcome.whole) == (CallStatus.ERROR, tool_errors.TOOL_FAILED + expected)


TRACEBACK = 'Traceback (most recent call last):\n  File "/app/x.py", line 3, in f\n    go()\n    ~~^^\n'
CHAINED = "During handling of the above exception, another exception occurred:"
PLAIN = {
    "a path": ("no /srv/app/data/a.csv here", "no a.csv here"),
    "a folder at the end": ("cannot write to /var/data/out/.", "cannot write to out/."),
    "a file's URL": ("no file:///srv/app/a.csv", "no a.csv"),
    "a URL": ("404 for https://a.example/v1/users?q=/x/y#z", "404 for https://a.example/v1/users?q=/x/y#z"),
    "a route": ("GET /v1/users: 404, with url: /v1/users", "GET /v1/users: 404, with url: /v1/users"),
    "no path": ("and/or 1/2 of a/b/c is n/a", "and/or 1/2 of a/b/c is n/a"),
    "a traceback": (f"{TRACEBACK}ValueError: boom\nat line 3", "ValueError: boom\nat line 3"),
    "a traceback after words": (f"It failed:\n\n{TRACEBACK}ValueError: boom", "It failed:\nValueError: boom"),
    "tracebacks in a chain": (
        f"{TRACEBACK}KeyError: 1\n\n{CHAINED}\n\n{TRACEBACK}ValueError: boom",
        "ValueError: boom",
    ),
    "a traceback in JSON": (f"{TRACEBACK}ValueError: boom".replace("\n", "\\n"), "ValueError: boom"),
    "a long message": ("first line\n\n" + "x" * 10_000, "first line\n" + "x" * (MAX_REASON_LENGTH - 12) + "…"),
    "frames of JavaScript": ("Error: boom\n    at f (/app/x.js:1:2)\n    at async main (node:1:2)", "Error: boom"),
}


@pytest.mark.parametrize(("message", "expected"), PLAIN.values(), ids=PLAIN)
def test_directories_and_tracebacks_are_not_told(message: str, expected: str) -> None:
    assert reason(message) == expected


@pytest.mark.parametrize("padding", [0, 485, 490, 495])
def test_no_part_of_a_secret_is_told(padding: int) -> None:
    text = reason(
        f"{'x ' * (padding // 2)}{SECRET} two\n\nlines of it {TRACEBACK}E: sk-abcdefghijkl at /{SECRET}/a.txt"
    )

    assert "hunter" not in text
    assert "lines of it" not in text
    assert "sk-abc" not in text


PIECES = ["/", "//", "a", '"', "'", " ", "\n", "    at ", "Traceback (most recent call last)", "file://", "."]


@given(joined(PIECES) | text_from_the_host | st.sampled_from(PIECES).map(lambda piece: piece * 5_000))
def test_the_reason_of_any_message_is_short_and_can_be_written(message: str) -> None:
    text = reason(message)

    assert len(text) <= MAX_REASON_LENGTH
    assert text.encode().decode() == text
