"""The plainest runs: an answer, and an answer after a tool."""

from tests.support.run import run
from tests.support.wire import calls, replies, says


def test_a_plain_answer_streams_and_ends_with_one_json() -> None:
    outcome = run([says("Hello", ", world")])

    assert outcome.error is None
    assert outcome.text == "Hello, world"
    assert outcome.stop_reason == "answered"
    assert outcome.messages[-1]["type"] == "json"
    assert outcome.last_json["execution_metadata"]["total_tokens"] == 15


def test_a_tool_result_reaches_the_model_and_the_answer_the_user() -> None:
    outcome = run([calls(("search", {"q": "x"})), says("It is y.")], {"search": replies("y")})

    assert outcome.error is None
    assert outcome.text == "It is y."
    assert outcome.tool_results() == ["y"]
    assert [request["tool_parameters"] for request in outcome.tools.requests] == [{"q": "x"}]
