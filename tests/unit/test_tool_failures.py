"""Why a tool failed, as the model reads it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.calls.output import MAX_REASON_LENGTH, TOOL_FAILED, ToolFailure, plain_reason
from internal.host.failures import HostFailure
from internal.text.secrets import KnownSecrets, Redactor
from tests.unit.generators import joined, text_from_the_host

SECRET = "hunter2-hunter2"
REDACTOR = Redactor.of([SECRET, "two\n\nlines of it"])


def reason(message: str) -> str:
    return plain_reason(message, REDACTOR)


def told(message: str) -> str:
    return ToolFailure.of(HostFailure(message), KnownSecrets(REDACTOR)).told


TOLD = {
    "raised in a plugin": (
        'request failed: PluginInvokeError: {"error_type": "ValueError", "message": "overlap (100) larger than 20"}',
        ": overlap (100) larger than 20",
    ),
    "raised in Dify": (
        "read tool response failed: request failed: tool invoke error: failed to execute tool search: boom",
        ": boom",
    ),
    "a rate limit with words": ("request failed: 429: wait 5 minutes", ": 429: wait 5 minutes"),
    "a broken transport": (
        'invoke tool failed: Post "http://10.0.0.1:5001/inner/api/invoke/tool": EOF',
        ": unavailable",
    ),
    "a status alone": ("invoke tool failed: request failed with status code: 500 and respond with: ", ": unavailable"),
    "silence": ("invocation exited without response after 20 seconds", ": timeout"),
    "a refusal in an address": (
        'invoke tool failed: Post "http://a.example/x?timeout=32s": dial tcp 10.0.0.1:1: connect: connection refused',
        ": unavailable",
    ),
    "a chunk above 30 MiB": (
        "read tool response failed: data length is too long: 32505934",
        ": its result is too large",
    ),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("message", "expected"), TOLD.values(), ids=TOLD)
def test_the_model_reads_the_innermost_message_or_one_word(message: str, expected: str) -> None:
    assert told(message) == TOOL_FAILED + expected


PATHS = {
    "POSIX": ("no /srv/app/data/a.csv here", "no a.csv here"),
    "in brackets": ("failed (/srv/app.py:3)", "failed (app.py:3)"),
    "with spaces, in quotes": ("no '/Users/Jo Doe/my file.txt'", "no 'my file.txt'"),
    "a folder": ("in /var/lib/x/ it is", "in x/ it is"),
    "a folder at the end": ("cannot write to /var/data/out/.", "cannot write to out/."),
    "a folder in quotes": ("not a directory: '/home/jo/My Docs/'", "not a directory: 'My Docs/'"),
    "a folder of Windows": (r"no C:\Users\jo", "no jo"),
    "a folder of Windows at the end": ("no C:\\Users\\jo\\", "no jo\\"),
    "slashes in a row": ("no /srv//app/a.csv", "no a.csv"),
    "Windows": (r"no C:\Program Files\app\a.csv", "no a.csv"),
    "Windows in JSON": (r"no 'C:\\Users\\jo\\a.csv'", "no 'a.csv'"),
    "Windows with slashes": ("no C:/Users/jo/a.csv", "no a.csv"),
    "a share": (r"no \\server\share\a.csv", "no a.csv"),
    "a file's URL": ("no file:///srv/app/a.csv", "no a.csv"),
    "a URL": ("404 for https://a.example/v1/users?q=/x/y#z", "404 for https://a.example/v1/users?q=/x/y#z"),
    "a URL with a port": (
        "no http://[::1]:80/a/b, http://a.example:80/c/d",
        "no http://[::1]:80/a/b, http://a.example:80/c/d",
    ),
    "a route": ("GET /v1/users: 404, with url: /v1/users", "GET /v1/users: 404, with url: /v1/users"),
    "a word": ("and/or 1/2 of a/b/c is n/a", "and/or 1/2 of a/b/c is n/a"),
}


@pytest.mark.parametrize(("message", "expected"), PATHS.values(), ids=PATHS)
def test_of_a_files_path_only_its_name_is_told(message: str, expected: str) -> None:
    assert reason(message) == expected


TRACEBACK = 'Traceback (most recent call last):\n  File "/app/x.py", line 3, in f\n    go()\n    ~~^^\n'
TRACEBACKS = {
    "alone": (f"{TRACEBACK}ValueError: boom\nat line 3", "ValueError: boom\nat line 3"),
    "after words": (f"It failed:\n\n{TRACEBACK}ValueError: boom", "It failed:\nValueError: boom"),
    "on the same line": (f"It failed: {TRACEBACK}ValueError: boom", "It failed:\nValueError: boom"),
    "chained": (
        TRACEBACK
        + "KeyError: 1\n\nDuring handling of the above exception, another exception occurred:\n\n"
        + f"{TRACEBACK}ValueError: boom",
        "ValueError: boom",
    ),
    "in JSON": (f"{TRACEBACK}ValueError: boom".replace("\n", "\\n"), "ValueError: boom"),
    "JavaScript": ("Error: boom\n    at f (/app/x.js:1:2)\n    at async main (node:1:2)", "Error: boom"),
    "without its beginning": ('  File "/app/x.py", line 3, in f\nValueError: boom', "ValueError: boom"),
}


@pytest.mark.parametrize(("message", "expected"), TRACEBACKS.values(), ids=TRACEBACKS)
def test_of_a_traceback_only_the_error_is_told(message: str, expected: str) -> None:
    assert reason(message) == expected


def test_a_reason_is_short_and_its_first_lines() -> None:
    text = reason("first line\n\n" + "x" * 10_000)

    assert len(text) == MAX_REASON_LENGTH
    assert text.startswith("first line\nx")
    assert text.endswith("…")


@pytest.mark.parametrize("padding", [0, 485, 490, 495])
def test_no_part_of_a_secret_is_told(padding: int) -> None:
    text = reason(
        f"{'x ' * (padding // 2)}{SECRET} two\n\nlines of it {TRACEBACK}E: sk-abcdefghijkl at /{SECRET}/a.txt"
    )

    assert "hunter" not in text
    assert "lines of it" not in text
    assert "sk-abc" not in text


PIECES = [
    "/",
    "//",
    "\\",
    "\\\\",
    "a",
    "C:",
    "C:\\",
    '"',
    "'",
    " ",
    "\n",
    "    at ",
    "Traceback (most recent call last)",
    "file://",
    ".",
]


@given(joined(PIECES) | text_from_the_host | st.sampled_from(PIECES).map(lambda piece: piece * 5_000))
def test_the_reason_of_any_message_is_short_and_can_be_written(message: str) -> None:
    text = reason(message)

    assert len(text) <= MAX_REASON_LENGTH
    assert text.encode().decode() == text
