"""What providers say of failures, in each wrapping in which it may arrive."""

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from internal.host.failures import FailureKind, HostFailure, Wording, error_words, read_wordings

_SERVER_ERRORS = 500
_TOO_MANY = 429
_REFUSED = (401, 403)


@dataclass(frozen=True)
class Sentence:
    """What a provider answers to a request."""

    kind: FailureKind
    provider: str
    status: int
    code: str
    message: str
    source: str
    date: str

    @property
    def body(self) -> dict[str, object]:
        return {"error": {"message": self.message, "type": self.code, "code": self.code}}


SENTENCES = tuple(
    Sentence(FailureKind(kind), *row)
    for kind, rows in tomllib.loads(Path(__file__).with_name("error_sentences.toml").read_text("utf-8")).items()
    for row in rows
)


def in_dify(error_type: str, message: str) -> str:
    """As the daemon passes a plugin's error on."""
    return json.dumps({"args": {}, "error_type": error_type, "message": message})


def of_a_client(said: Sentence) -> str:
    """As plugins name an error of the clients ``openai`` and ``anthropic``; of a refused key nothing is left."""
    if said.status in _REFUSED:
        return "[openai] Incorrect model credentials provided, please check and try again. "
    name = "Bad Request Error"
    if said.status == _TOO_MANY:
        name = "Rate Limit Error"
    if said.status >= _SERVER_ERRORS:
        name = "Server Unavailable Error"
    return f"[openai] {name}, Error code: {said.status} - {said.body!r}"


def of_tongyi(said: Sentence) -> str:
    """The plugin's own names by status, which keep the words; DashScope's code is not among them."""
    names = {
        400: "InvokeBadRequestError",
        429: "InvokeRateLimitError",
        **dict.fromkeys(_REFUSED, "InvokeAuthorizationError"),
    }
    other = "InvokeServerUnavailableError" if said.status >= _SERVER_ERRORS else "InvokeBadRequestError"
    words = (
        f"Failed to invoke model m, status code: {said.status}, message: {said.code}: {said.message}, request_id: 8f"
    )
    return in_dify(names.get(said.status, other), words)


WRAPPINGS: dict[str, Callable[[Sentence], str]] = {
    "an error without a name and a status": lambda said: f"[cohere] Error: {said.code}: {said.message}",
    "a client's error, named by its status": of_a_client,
    "the SDK's OpenAI-compatible class": lambda said: (
        f"[openai_api_compatible] Error: API request failed with status code {said.status}: {json.dumps(said.body)}"
    ),
    "the same, of a flat body": lambda said: (
        f"[x] Error: API request failed with status code {said.status}: "
        f"{json.dumps({'code': said.code, 'error': said.message})}"
    ),
    "every error is one of the connection": lambda said: (
        f"[gemini] Connection Error, {said.status} {said.code}. {said.body!r}"
    ),
    "every error is one of the server": lambda said: (
        f"[xinference] Server Unavailable Error, Error code: {said.status} - {said.body!r}"
    ),
    "an error in a stream, as a bad request": lambda said: f"[openai] Bad Request Error, {said.body!r}",
    "tongyi's names": of_tongyi,
    "zhipuai's client": lambda said: (
        f"[zhipuai] Error: Error code: {said.status}, with error text {json.dumps(said.body, ensure_ascii=False)}"
    ),
    "boto3's client": lambda said: (
        f"[bedrock] Error: An error occurred ({said.code}) when calling the ConverseStream operation: {said.message}"
    ),
}


@pytest.mark.parametrize("wrapped", WRAPPINGS.values(), ids=WRAPPINGS)
@pytest.mark.parametrize("said", SENTENCES, ids=lambda said: f"{said.provider}: {said.message[:40]}")
def test_a_provider_is_understood_in_every_wrapping(said: Sentence, wrapped: Callable[[Sentence], str]) -> None:
    message = wrapped(said)
    kind = said.kind
    if wrapped is of_a_client and said.status in _REFUSED:
        kind = FailureKind.UNAUTHORIZED  # all that is known

    assert HostFailure(message).kind is kind
    assert HostFailure(f"read llm model failed: request failed: {in_dify('InvokeError', message)}").kind is kind
    assert HostFailure(f"req_id: 1 PluginInvokeError: {in_dify('X', in_dify('InvokeError', message))}").kind is kind


def test_each_sentence_says_where_and_when_it_was_read() -> None:
    assert [each for each in SENTENCES if not each.source or not re.fullmatch(r"20\d\d-\d\d", each.date)] == []


@pytest.mark.parametrize("wording", error_words().wordings, ids=lambda wording: wording.words.pattern)
def test_each_wording_says_who_words_it_so_and_where_and_when_that_was_read(wording: Wording) -> None:
    assert wording.provider
    assert wording.source
    assert re.fullmatch(r"20\d\d-\d\d", wording.date)


def test_each_wording_of_a_provider_decides_for_a_sentence() -> None:
    heard = [f"{said.code}: {said.message} {said.code}Exception" for said in SENTENCES]
    unheard = [
        row.words.pattern for row in error_words().wordings if row.provider != "any" and not any(map(row.is_in, heard))
    ]

    assert unheard == []


ROW = {"kind": "rate limited", "words": "slow", "provider": "a", "source": "b", "date": "2026-11"}
MISTAKES: dict[str, tuple[dict[str, str], str]] = {
    "a kind that is none": (ROW | {"kind": "rate limit"}, "'rate limit' is not a valid FailureKind"),
    "a broken pattern": (ROW | {"words": "(slow"}, r"missing \), unterminated subpattern"),
    "no provider": ({name: ROW[name] for name in ROW if name != "provider"}, "'provider'"),
    "a name that is none": (ROW | {"words_": "x"}, "'words_'"),
    "another preference": (
        ROW | {"over": "all"},
        "'all' is not one of 'nothing', 'names for every failure', 'anything'",
    ),
}


@pytest.mark.parametrize(("row", "mistake"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_the_file_names_its_row(row: dict[str, str], mistake: str) -> None:
    with pytest.raises(ValueError, match=rf"error_words\.toml, wording 2: .*{mistake}"):
        read_wordings([ROW, row])


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("[tongyi] Rate Limit Error, Error code: 429 - {'code': 'insufficient_quota'}", FailureKind.RATE_LIMITED),
        ("[openai] Rate Limit Error, Error code: 429 - {'code': 'insufficient_quota'}", FailureKind.QUOTA_SPENT),
    ],
)
def test_the_plugin_decides_where_words_have_two_meanings(said: str, kind: FailureKind) -> None:
    assert HostFailure(said).kind is kind


NEITHER = {
    "[gemini] Connection Error, [Errno 111] Connection refused": FailureKind.CONNECTION,
    "[gemini] Connection Error, Server disconnected without sending a response.": FailureKind.CONNECTION,
    "[gemini] Connection Error, 404 NOT_FOUND. {'error': {'message': 'models/x is not found'}}": FailureKind.NOT_FOUND,
    "[gemini] Connection Error, 400 INVALID_ARGUMENT. {'error': {'message': 'no such field'}}": (
        FailureKind.INVALID_REQUEST
    ),
    "[x] Rate Limit Error, Error code: 429 - {'error': {'message': 'a content filter is busy'}}": (
        FailureKind.RATE_LIMITED
    ),
    "failed to get https://a.example/error-code?status=429#top": FailureKind.UNKNOWN,
}


@pytest.mark.parametrize(("message", "kind"), NEITHER.items())
def test_what_only_resembles_such_words_keeps_its_kind(message: str, kind: FailureKind) -> None:
    assert HostFailure(message).kind is kind
