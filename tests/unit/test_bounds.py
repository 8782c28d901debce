"""What has a largest size by construction: every message that leaves, and the calls of a turn."""

import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import batched
from typing import Any

import pytest
from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.invoke_message import InvokeMessage
from dify_plugin.entities.model.llm import LLMUsage
from hypothesis import given
from hypothesis import strategies as st

from internal.budget import Usage
from internal.call import MAX_CALL_ID, MAX_CALLS, ToolCall
from internal.clock import Deadline
from internal.errors import InvalidParameters, node_error
from internal.json_values import read_exactly
from internal.model.reading import CallAssembler
from internal.render.log import cost, cost_in_words
from internal.render.messages import MAX_MESSAGE_BYTES, bounded
from internal.transcript.kept_results import KeptResults
from internal.transcript.references import ReferenceInvalid, References
from prompt import template
from tests.support.builders import outcome_of, sdk_call
from tests.support.clock import FakeTime
from tests.support.host import Json
from tests.support.wire import USAGE

_SHORT = 200
"""Characters of everything that a row of the log says of a price."""

decimals = st.builds(
    lambda digits, exponent: f"{digits}E{exponent}",
    st.integers(-(10**60), 10**60),
    st.integers(-200_000_000, 200_000_000) | st.integers(-40, 40),
)


@given(st.lists(decimals, min_size=1, max_size=5), st.text(max_size=40))
def test_a_price_has_few_characters_whatever_the_model_reports(prices: list[str], currency: str) -> None:
    calls = [LLMUsage.model_validate({**USAGE, "total_price": price, "currency": currency}) for price in prices]
    total = sum(map(Usage.of, calls), Usage.of())

    assert len(cost_in_words(total)) < _SHORT
    assert len(json.dumps(cost(total), allow_nan=False)) < _SHORT
    assert len(json.dumps(total.execution_metadata(), allow_nan=False)) < 1_000


def test_ordinary_prices_stay_as_they_are() -> None:
    told = LLMUsage.model_validate({**USAGE, "total_price": "0.0000012500", "currency": "USD"})
    assert Usage.of(told).total_price == Decimal("0.00000125")
    assert Usage.of(told).currency == "USD"


def _messages(size: int) -> Iterator[AgentInvokeMessage]:
    kind = InvokeMessage.MessageType
    large = "x" * size
    row = InvokeMessage.LogMessage(
        id="1", label="ROUND 1", status=InvokeMessage.LogMessage.LogStatus.SUCCESS, data={"text": large}
    )
    bodies: list[tuple[InvokeMessage.MessageType, Any]] = [
        (kind.LOG, row),
        (kind.JSON, InvokeMessage.JsonMessage(json_object={"text": large})),
        (kind.VARIABLE, InvokeMessage.VariableMessage(variable_name="state", variable_value=large)),
    ]
    return (AgentInvokeMessage(type=each, message=body) for each, body in bodies)


def test_a_message_that_no_line_can_carry_loses_its_contents_and_keeps_its_place() -> None:
    large = list(bounded(_messages(MAX_MESSAGE_BYTES)))

    assert [each.type for each in large] == [each.type for each in _messages(1)]
    assert all(len(each.model_dump_json()) < 1_000 for each in large)
    assert json.loads(large[0].model_dump_json())["message"]["label"] == "ROUND 1"


def test_a_message_that_a_line_can_carry_stays_as_it_is() -> None:
    assert list(bounded(_messages(1_000_000))) == list(_messages(1_000_000))


def test_an_error_at_the_node_is_short() -> None:
    assert len(str(node_error(InvalidParameters("x" * 1_000_000)))) < 5_000


def test_more_calls_than_a_turn_may_have_are_left_out_with_all_their_pieces() -> None:
    assembler = CallAssembler("own")
    for number in range(MAX_CALLS + 5):
        assembler.add([sdk_call(f"id{number}", "search", '{"q": ')])
        assembler.add([sdk_call("", "", f"{number}}}")])
    calls = assembler.calls()

    assert assembler.has_left_out
    assert [json.loads(call.arguments) for call in calls] == [{"q": number} for number in range(MAX_CALLS)]


@pytest.mark.parametrize("form", ["id{}", ""], ids=["with ids", "without ids"])
@pytest.mark.parametrize("size", [MAX_CALLS, 1], ids=["one chunk", "many chunks"])
def test_as_many_calls_as_a_turn_may_have_are_all_there(form: str, size: int) -> None:
    entries = [sdk_call(form.format(number), "search", "{}") for number in range(MAX_CALLS)]
    assembler = CallAssembler("own")
    for chunk in batched(entries, size):
        assembler.add(chunk)

    assert len(assembler.calls()) == MAX_CALLS
    assert not assembler.has_left_out


def test_a_name_is_cut_and_an_endless_id_is_replaced() -> None:
    assembler = CallAssembler("own")
    assembler.add([sdk_call("i" * (MAX_CALL_ID + 1), "n" * 100_000, "{}"), sdk_call("i" * MAX_CALL_ID, "n", "{}")])
    first, second = assembler.calls()

    assert len(first.name) == 200
    assert len(first.id) == 9
    assert second.id == "i" * MAX_CALL_ID


ROWS: Json = {"rows": [{"id": number} for number in range(700)]}


def _references(results: KeptResults, seconds_left: float = 60) -> References:
    time = FakeTime()
    return References(
        results, [f"r{number}" for number in range(1, results.given + 1)], Deadline(time.clock, time.now + seconds_left)
    )


def _kept(*sent: Json) -> KeptResults:
    results = KeptResults()
    for value in sent:
        outcome = outcome_of(ToolCall("c", "find", "{}"), json.dumps(value))
        results.keep(replace(outcome, sent_json=(json.dumps(value),)))
    return results


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are read as JSON."""
    texts: list[str] = []

    def counted(text: str) -> object:
        texts.append(text)
        return read_exactly(text)

    monkeypatch.setattr("internal.transcript.references.read_exactly", counted)
    return texts


def test_a_result_is_read_once_however_many_references_lead_into_it(read: list[str]) -> None:
    both = [f"result:{name}#/rows/{number}/id" for number in range(700) for name in ("r1", "r2")]
    references = _references(_kept(ROWS, {**ROWS, "more": 1}))
    values, _ = references.resolved({"ids": both})
    references.resolved({"id": "result:r1#/rows/7/id"})

    assert values["ids"] == [number for number in range(700) for _ in range(2)]
    assert len(read) == 2


def test_results_that_take_too_much_memory_together_are_read_one_after_the_other(read: list[str]) -> None:
    large = [{"text": str(number) * 900_000, "id": number} for number in range(4)]
    references = _references(_kept(*large))
    values, _ = references.resolved({"ids": [f"result:r{1 + number % 4}#/id" for number in range(40)]})

    assert values["ids"] == [0, 1, 2, 3] * 10
    assert len(read) == 4


def test_after_the_deadline_no_result_is_read(read: list[str]) -> None:
    with pytest.raises(ReferenceInvalid, match=template.REFERENCES_TOO_LATE):
        _references(_kept(ROWS), 0).resolved({"id": "result:r1#/rows/7/id"})
    assert not read


def test_reading_ends_as_soon_as_results_are_too_large_together(read: list[str]) -> None:
    large = [{"text": str(number) * 1_500_000} for number in range(4)]
    with pytest.raises(ReferenceInvalid, match="too large together"):
        _references(_kept(*large)).resolved({"texts": [f"result:r{number + 1}#/text" for number in range(4)]})
    assert len(read) == 3
