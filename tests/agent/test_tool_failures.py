"""Tools that fail: what the model reads, what the log keeps, and calls that the model repeats."""

from collections.abc import Iterator

import pytest
from gevent import Timeout

from tests.support.clock import PATIENCE, FakeTime
from tests.support.host import CallFails, Json
from tests.support.run import run
from tests.support.scenes import ANSWER, log_of, search
from tests.support.wire import breaks, calls, json_message, replies, says, text_message

FAILED = "tool invoke error: failed to execute tool"
REPEATED = "tool invoke error: repeated failure detected; skipped duplicate call"
REASONS = {
    "raised by a plugin": (
        'request failed: PluginInvokeError: {"error_type": "ValueError", "message": "chunk size (20) is too small"}',
        "chunk size (20) is too small",
    ),
    "raised in Dify": (
        "read tool response failed: request failed: tool invoke error: failed to execute tool search: boom",
        "boom",
    ),
    "bare words": ("table customers not found", "table customers not found"),
    "a path": ("kaboom at /srv/app.py line 3", "kaboom at app.py line 3"),
    "time-out of the SDK": ("invocation exited without response after 20 seconds", "timeout"),
    "a proxy's status": ("invoke tool failed: request failed with status code: 401 and respond with: ", "unauthorized"),
    "a broken transport": ('invoke tool failed: Post "http://api/inner/api/invoke/tool": EOF', "unavailable"),
}


@pytest.mark.parametrize(("message", "reason"), REASONS.values(), ids=REASONS)
def test_a_failing_tool_gives_its_reason_and_keeps_its_siblings(message: str, reason: str) -> None:
    handlers = {"search": breaks(message), "look": replies("seen")}

    outcome = run([calls(("search", {}), ("look", {})), ANSWER], handlers, clock=FakeTime().clock)

    assert outcome.error is None
    assert outcome.tool_results() == [f"{FAILED}: {reason}", "seen"]
    assert log_of(outcome, "CALL search")["status"] == "error"
    assert log_of(outcome, "CALL look")["status"] == "success"


def test_the_log_keeps_more_of_a_failure_than_the_model_reads() -> None:
    message = "kaboom at /srv/app.py" + " x" * 1000

    outcome = run([search(), ANSWER], {"search": breaks(message)})

    assert len(outcome.tool_results()[0]) <= len(FAILED) + 2 + 500
    assert log_of(outcome, "CALL search")["error"].startswith(message[:900])


def test_what_a_tool_said_before_it_failed_is_kept() -> None:
    handlers = {"search": breaks("kaboom", after=[text_message("half "), json_message({"a": 1})])}

    outcome = run([search(), ANSWER], handlers)

    assert outcome.tool_results() == [f'{FAILED}: kaboom\n\nhalf \n\n{{"a": 1}}']


class Flaky:
    """A tool that fails for its first calls."""

    def __init__(self, message: str, times: int = 1) -> None:
        self.calls = 0
        self._message, self._times = message, times

    def __call__(self, _request: Json) -> Iterator[Json]:
        self.calls += 1
        if self.calls <= self._times:
            raise CallFails(self._message)
        yield text_message("found")


@pytest.mark.parametrize(
    "message",
    [
        "mail sent, but the audit log failed: connection refused",
        "429 Client Error: Too Many Requests for url: https://example.com/second-step",
        "InvokeRateLimitError: slow",
    ],
)
def test_a_call_is_never_repeated_whatever_its_error_says(message: str) -> None:
    """The tool may have acted before it failed; the model reads why, and may call again."""
    time, flaky = FakeTime(), Flaky(message)

    outcome = run([search(), search(), ANSWER], {"search": flaky}, clock=time.clock)

    assert [outcome.tool_results(number) for number in (1, 2)] == [[f"{FAILED}: {message}"], ["found"]]
    assert (flaky.calls, time.slept) == (2, [])


def test_a_temporary_failure_counts_from_its_second_time() -> None:
    flaky = Flaky("connection reset", 9)

    outcome = run([search(), search(), search(), ANSWER], {"search": flaky})

    assert [outcome.tool_results(number) for number in (1, 2, 3)] == [
        [f"{FAILED}: connection reset"],
        [f"{FAILED}: connection reset"],
        [REPEATED],
    ]
    assert flaky.calls == 2


def test_a_third_identical_success_is_answered_with_a_note_and_a_fourth_brings_the_closing_answer() -> None:
    outcome = run([search()] * 4 + [ANSWER], {"search": replies("found")})

    assert len(outcome.tools.requests) == 2
    assert outcome.tool_results(3)[0].startswith("found\n\n(This call was not run again")
    assert (outcome.text, outcome.stop_reason) == ("Done.", "repeated_calls")
    assert "No more tools will run" in outcome.model.prompts[4][-1]["content"]


def test_equal_calls_of_one_turn_run_and_one_that_failed_of_them_has_failed() -> None:
    twice, flaky = calls(("search", {"q": "x"}), ("search", {"q": "x"})), Flaky("kaboom")
    again = calls(("search", '{ "q" : "x" }'))

    outcome = run([twice, again, search("other"), ANSWER], {"search": flaky})

    assert outcome.tool_results(1) == [f"{FAILED}: kaboom", "found"]
    assert (outcome.tool_results(2), outcome.tool_results(3)) == ([REPEATED], ["found"])
    assert (flaky.calls, outcome.stop_reason) == (3, "answered")


@pytest.mark.parametrize(
    "said",
    [
        [text_message("[" * 100_000), json_message({"a": 1})],
        [{"type": "json", "message": None, "meta": None}],
        [{"type": "text", "message": {}, "meta": None}],
        [{"type": "text", "message": {"text": {"not": "text"}}, "meta": None}],
        [{"type": "blob", "message": {"blob": 7}, "meta": {"mime_type": 9}}],
        [{"type": "image_link", "message": {"text": None}, "meta": {"tool_file_id": []}}],
        [{"type": "retriever_resources", "message": {"retriever_resources": [7, {"score": "x"}]}, "meta": None}],
        [{"type": None, "message": {}, "meta": None}],
        [{"type": "text", "message": ["a list"], "meta": None}],
    ],
    ids=["deep text", "no json", "no text", "text object", "odd blob", "odd link", "odd source", "no type", "a list"],
)
def test_no_message_of_a_tool_ends_or_hangs_the_run(said: list[Json]) -> None:
    with Timeout(PATIENCE):
        outcome = run([search(), says("Done.")], {"search": replies(*said)})

    assert outcome.error is None
    assert outcome.text == "Done."
    assert len(outcome.tool_results()) == 1
