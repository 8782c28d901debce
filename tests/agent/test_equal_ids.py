"""Calls of one turn that have one id, or arrive joined: no call runs with arguments of another."""

import json
from typing import Any

import pytest

from tests.support.host import Json
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER, asks, assistant_messages, check_growth, ends, entry, text
from tests.support.wire import parameter, text_message, tool

A = '{"q": "a"}'
B = '{"q": "b"}'
TOOLS = [tool(name, parameter("q")) for name in ("search", "look")]


def finds(request: Json) -> list[Json]:
    """A tool that says what it was asked for."""
    return [text_message(f"{request['tool']} found {request['tool_parameters'].get('q')}")]


def played(*steps: Any, **params: Any) -> Outcome:  # noqa: ANN401 - turns of a script, parameters of the node
    outcome = run([*steps, ANSWER], {"search": finds, "look": finds}, {"tools": TOOLS, **params})
    assert outcome.error is None
    check_growth(outcome.model.requests)
    return outcome


def ran(outcome: Outcome) -> list[tuple[str, str]]:
    return sorted((each["tool"], each["tool_parameters"]["q"]) for each in outcome.tools.requests)


def read(prompt: list[Json]) -> list[tuple[str, str]]:
    """The arguments of each call of a prompt, and the result that a reader finds under its id."""
    results = {message["tool_call_id"]: message["content"] for message in prompt if message["role"] == "tool"}
    return [
        (call["function"]["arguments"], results[call["id"]])
        for message in assistant_messages(prompt)
        for call in message.get("tool_calls") or ()
    ]


EQUAL = {
    "two tools in one chunk": [asks(entry("c1", "search", A), entry("c1", "look", B)), ends("tool_calls")],
    "two tools in two chunks": [asks(entry("c1", "search", A)), asks(entry("c1", "look", B)), ends("tool_calls")],
    "two tools in pieces": [
        asks(entry("c1", "search", "")),
        asks(entry("c1", "", '{"q": ')),
        asks(entry("c1", "", '"a"}')),
        asks(entry("c1", "look", '{"q": ')),
        asks(entry("c1", "", '"b"}')),
        ends("tool_calls"),
    ],
    "one tool": [asks(entry("c1", "search", A), entry("c1", "search", B)), ends("tool_calls")],
}


@pytest.mark.parametrize("turn", EQUAL.values(), ids=EQUAL)
def test_every_result_stands_under_an_id_of_its_own(turn: list[Any]) -> None:
    outcome = played(turn)

    assert ran(outcome) == sorted([("search", "a"), (turn_tool(turn), "b")])
    assert read(outcome.model.prompts[1]) == [(A, "search found a"), (B, f"{turn_tool(turn)} found b")]


def turn_tool(turn: list[Any]) -> str:
    """The tool of the second call."""
    if "look" in json.dumps(turn):
        return "look"
    return "search"


OF_COHERE = [asks(entry("search", "search", A), entry("search", "search", B)), ends("tool_calls")]


def test_where_the_id_is_the_functions_name_the_last_result_has_all_with_their_arguments() -> None:
    outcome = played(OF_COHERE)

    assert ran(outcome) == [("search", "a"), ("search", "b")]
    for (arguments, result), found in zip(read(outcome.model.prompts[1]), "ab", strict=True):
        written = arguments.replace('"', "&quot;")
        assert f'arguments="{written}">\nsearch found {found}\n' in result


def test_in_a_later_turn_a_result_under_the_functions_name_says_its_arguments() -> None:
    one_each = [[asks(entry("search", "search", arguments)), ends("tool_calls")] for arguments in (A, B)]

    prompt = played(*one_each).model.prompts[-1]

    first, second = (message["content"] for message in prompt if message["role"] == "tool")
    assert first == "search found a"
    assert (
        second
        == '<tool_output tool="search" arguments="{&quot;q&quot;: &quot;b&quot;}">\nsearch found b\n</tool_output>'
    )


JOINED = {
    "stepfun: by the name": [asks(entry("c2", "search", A + B)), ends("tool_calls")],
    "a compatible server with equal ids": [asks(entry("c1", "look", A + B)), ends("tool_calls")],
    "in chunks of one name": [asks(entry("c1", "search", A)), asks(entry("c1", "search", B)), ends("tool_calls")],
    "with a line between": [asks(entry("c1", "search", f"{A}\n{B}")), ends("tool_calls")],
    "after a call without arguments": [asks(entry("c1", "search", "{}" + B)), ends("tool_calls")],
}


@pytest.mark.parametrize("turn", JOINED.values(), ids=JOINED)
def test_joined_calls_do_not_run_and_the_model_reads_to_make_one_call_in_a_turn(turn: list[Any]) -> None:
    outcome = played(turn, [asks(entry("c3", "search", A)), ends("tool_calls")])

    assert ran(outcome) == [("search", "a")], "only the call that came alone"
    (refused,) = read(outcome.model.prompts[1])
    assert refused[0] == "{}"
    assert "one call in a turn: several were joined, so none of them ran" in refused[1]
    assert outcome.text == "Done."


def test_stepfun_a_call_that_came_before_it_was_joined_runs_and_the_joined_ones_do_not() -> None:
    """A chunk with text brings the first call alone; the last chunk has all of them joined under the last id."""
    turn = [
        text("On it.", tool_calls=[entry("c1", "search", A)]),
        asks(entry("c2", "search", A + B)),
        ends("tool_calls"),
    ]

    outcome = played(turn)

    assert ran(outcome) == [("search", "a")]
    first, second = read(outcome.model.prompts[1])
    assert first == (A, "search found a")
    assert "several were joined" in second[1]


def approved(turn: list[Any], waits: str) -> tuple[Outcome, Outcome]:
    """A run in which calls wait, and the one in which the user approves them."""
    asked = {"tools": TOOLS, "approval_required": waits, "query": "Do it."}
    first = run([turn], {"search": finds, "look": finds}, asked)
    answer = {**asked, "state": first.variables["state"], "approval": "yes", "query": "yes"}
    return first, run([ANSWER], {"search": finds, "look": finds}, answer)


@pytest.mark.parametrize("turn", [*EQUAL.values(), OF_COHERE], ids=[*EQUAL, "cohere"])
@pytest.mark.parametrize("waits", ["search", "search, look"])
def test_an_approved_call_keeps_its_arguments(turn: list[Any], waits: str) -> None:
    first, second = approved(turn, waits)

    waiting = [(each["tool"], each["arguments"]["q"]) for each in first.variables["pending_calls"]]
    assert sorted(waiting + ran(first)) == sorted([("search", "a"), (turn_tool(turn), "b")])
    assert ran(second) == sorted(waiting)
    for (arguments, result), q in zip(read(second.model.prompts[0]), "ab", strict=True):
        assert json.loads(arguments) == {"q": q}
        assert f"found {q}" in result


def test_joined_calls_are_not_asked_for_an_approval() -> None:
    outcome = played(JOINED["stepfun: by the name"], approval_required="search")

    assert outcome.variables["pending_calls"] == []
    assert ran(outcome) == []
