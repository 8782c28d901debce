"""What kind of failure a host's message means."""

import json

import pytest

from internal.failures import FailureKind, HostFailure, classify, is_transient


def as_dify_words_it(error_type: str, message: str) -> str:
    return f"PluginInvokeError: {json.dumps({'args': {}, 'error_type': error_type, 'message': message})}"


@pytest.mark.parametrize(
    ("error_type", "message", "kind"),
    [
        ("InvokeRateLimitError", "reduce the length: too many tokens per minute", FailureKind.RATE_LIMITED),
        ("InvokeServerUnavailableError", "try again", FailureKind.UNAVAILABLE),
        ("InvokeConnectionError", "reset by peer", FailureKind.CONNECTION),
        ("InvokeConnectionError", "Connection refused", FailureKind.CONNECTION_REFUSED),
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
def test_a_named_error_type_wins_over_the_words_around_it(error_type: str, message: str, kind: FailureKind) -> None:
    assert classify(as_dify_words_it(error_type, message)) is kind


def test_the_innermost_error_names_its_type_whatever_stands_in_a_traceback_before_it() -> None:
    args = {"traceback": "raise InvokeServerUnavailableError"}
    inner = json.dumps({"args": args, "error_type": "InvokeBadRequestError", "message": "bad"})
    outer = json.dumps({"message": inner, "args": args, "error_type": "InvokeConnectionError"})

    assert classify(f"PluginInvokeError: {inner}") is FailureKind.INVALID_REQUEST
    assert classify(f"PluginInvokeError: {outer}") is FailureKind.INVALID_REQUEST


@pytest.mark.parametrize("kind", ["output", "completion"])
def test_too_long_an_answer_is_no_too_long_prompt(kind: str) -> None:
    message = f"max_tokens (9) exceeds the maximum number of {kind} tokens (8)"

    assert classify(as_dify_words_it("InvokeBadRequestError", message)) is FailureKind.INVALID_REQUEST


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Rate limit reached for gpt-5", FailureKind.RATE_LIMITED),
        ("HTTP 429", FailureKind.RATE_LIMITED),
        ("[Errno 111] Connection refused", FailureKind.CONNECTION_REFUSED),
        ("invocation exited without response after 250 seconds", FailureKind.TIMEOUT),
        ("read timed out", FailureKind.TIMEOUT),
        ("504 Gateway Time-out", FailureKind.TIMEOUT),
        ("failed to read response body", FailureKind.CUT_STREAM),
        ("unexpected EOF", FailureKind.CUT_STREAM),
        ("403 Forbidden", FailureKind.UNAUTHORIZED),
        ("page does not exist", FailureKind.NOT_FOUND),
        ("502 Bad Gateway", FailureKind.UNAVAILABLE),
        ("Overloaded", FailureKind.UNAVAILABLE),
        ("Temporary failure in name resolution", FailureKind.CONNECTION),
        ("1 validation error for Request", FailureKind.INVALID_REQUEST),
        ("This model's context window is exceeded", FailureKind.CONTEXT_LENGTH),
        ("killed by a cosmic ray", FailureKind.UNKNOWN),
        ("", FailureKind.UNKNOWN),
    ],
)
def test_without_a_type_the_words_are_read(message: str, kind: FailureKind) -> None:
    assert classify(message) is kind


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("HTTP 429", "HTTP 429"),
        (as_dify_words_it("InvokeBadRequestError", "no such model"), "no such model"),
        (f"req_id: 1 {as_dify_words_it('X', as_dify_words_it('Y', 'inside'))}", "inside"),
        (as_dify_words_it("X", ""), as_dify_words_it("X", "")),
        ('broken {"message": "x"', 'broken {"message": "x"'),
        ('a {"code": 5}', 'a {"code": 5}'),
        ("{" * 5, "{" * 5),
        ('{"a":' * 100_000, '{"a":' * 100_000),
    ],
    ids=["bare", "wrapped", "wrapped twice", "nothing inside", "broken", "no message", "only braces", "too deep"],
)
def test_a_host_failure_tells_the_innermost_words_and_keeps_all_of_them(message: str, reason: str) -> None:
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
        FailureKind.CONNECTION_REFUSED,
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
