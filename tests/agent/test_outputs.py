"""The node's outputs of a run: their order, types and contents."""

import json
from typing import Any

import pytest
from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.invoke_message import InvokeMessage

from internal.call import CallStatus, RejectedCall, ToolCall, ToolOutcome
from internal.errors import StopReason
from internal.events import CallsAnswered, RunSummary, RunTotals
from internal.memory.state import decode
from internal.node.virtual_tools import StructuredOutput
from internal.render.outputs import Variables, closing_messages, decision_summary
from internal.render.public import PublicRun
from internal.sources import RESOURCE_FIELDS
from internal.text.secrets import Redactor
from tests.support.clock import FakeTime
from tests.support.host import Json
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER, search
from tests.support.wire import KNOWLEDGE, calls, model, parameter, replies, says, tool


@pytest.mark.parametrize(
    ("query", "heading"),
    [("What is it?", "Sources"), ("これは何ですか", "出典"), ("这是什么", "来源"), ("O que é isso?", "Fontes")],
)
def test_the_cited_sources_end_the_text_in_the_language_of_the_question_and_stay_out_of_the_state(
    query: str, heading: str
) -> None:
    params = {"context": [KNOWLEDGE, {"title": "Web", "url": "https://a.example", "content": "x"}], "query": query}
    outcome = run([says("Press it [1, 2].")], params={**params, "extra_outputs": "state"})

    listed = "- [1] Leave\n- [2] [Web](https://a.example)"
    assert outcome.text == f"Press it [1, 2].\n\n**{heading}**\n\n{listed}"
    assert outcome.messages[-1]["type"] == "json"
    state = decode(outcome.variables["state"])
    assert state
    assert "https://a.example" not in state.entries[-1].model_dump_json()


@pytest.mark.parametrize(
    "params",
    [{"show_sources": False}, {"answer_schema": '{"type": "object", "properties": {"a": {"type": "string"}}}'}],
    ids=["switched off", "an answer in a schema"],
)
def test_no_list_of_sources_follows(params: dict[str, Any]) -> None:
    turn = calls(("submit_answer", {"a": "See [1]."})) if "answer_schema" in params else says("See [1].")

    assert "Leave" not in run([turn], params={"context": [KNOWLEDGE], **params}).text


def test_a_secret_in_a_title_is_not_in_the_list() -> None:
    secret = tool("search", parameter("q"), parameter("key", "secret-input"))
    given = {"q": "a", "key": "a_key_of_the_model"}
    resources = {"retriever_resources": [{"document_name": "a_key_of_the_model"}]}
    found = {"type": "retriever_resources", "message": resources}

    outcome = run([calls(("search", given)), says("Yes [1].")], {"search": replies(found)}, {"tools": [secret]})

    assert outcome.text.endswith("**Sources**\n\n- [1] \\[redacted\\]")


LONGEST_LINE = 5 * 1024 * 1024


def longest_line(outcome: Outcome) -> int:
    return max(len(json.dumps(message, ensure_ascii=False).encode()) for message in outcome.messages)


def test_many_large_sources_are_handed_on_in_messages_that_fit_a_line() -> None:
    texts = [name for name, kind in RESOURCE_FIELDS.items() if kind is str]
    odd = dict.fromkeys(texts, "😀" * 10_000)
    context = [{"content": f"{number}" + "😀" * 30_000, "metadata": odd} for number in range(30)]

    outcome = run([ANSWER], params={"context": context, "model": model(context_size=None)})

    assert outcome.error is None
    assert longest_line(outcome) < LONGEST_LINE
    listed = [item for body in outcome.bodies("retriever_resources") for item in body["retriever_resources"]]
    assert [item["position"] for item in listed] == list(range(1, 31))


def closed(summary: RunSummary) -> list[AgentInvokeMessage]:
    public = PublicRun.of(summary, Redactor())
    variables = Variables.of(public)
    return list(closing_messages(public, variables, decision_summary(public, variables)))


def test_a_list_of_which_no_line_can_carry_all_loses_its_end_and_the_rest_is_counted() -> None:
    call = RejectedCall(ToolCall("call_1", "検" * 200, "{}"), "")
    answered = CallsAnswered(1, (ToolOutcome(call, CallStatus.OK, "", elapsed_seconds=0.5),) * 10_000)
    summary = RunSummary(StopReason.ANSWERED, 1, "Done.", RunTotals(tool_rounds=[answered]))

    *_, last = closed(summary)

    assert len(last.model_dump_json().encode()) < LONGEST_LINE
    assert isinstance(last.message, InvokeMessage.JsonMessage)
    assert isinstance(last.message.json_object, dict)
    decided = last.message.json_object["decision_summary"]
    assert decided["left_out"] == {"tool_runs": 10_000 - len(decided["tool_calls"])}


def test_where_one_line_cannot_carry_all_variables_the_largest_is_nothing() -> None:
    large = {f"plan{number}": "y" * 250_000 for number in range(4)}
    answer = {"x": "y" * 250_100}
    structured = StructuredOutput(answer, answer)
    summary = RunSummary(StopReason.ANSWERED, 1, "Done.", RunTotals(), variables=large, structured_output=structured)

    sent = [message.model_dump(mode="json")["message"] for message in closed(summary)]

    assert max(len(json.dumps(body)) for body in sent) < LONGEST_LINE
    assert [body["variable_value"] for body in sent if body.get("variable_name") == "structured_output"] == [None]
    assert sent[-2]["json_object"]["variables"] == {
        "stop_reason": "answered",
        "sources": [],
        "tool_runs": [],
        "structured_output": None,
        **large,
    }
    assert sent[-1]["json_object"]["decision_summary"]["left_out"] == {"structured_output": 1}


def test_elapsed_seconds_are_those_of_the_clock() -> None:
    time = FakeTime()

    def slow(_request: Json) -> Any:  # noqa: ANN401 - a generator
        time.advance(1.5)
        yield from ()

    outcome = run([search(), ANSWER], {"search": slow}, clock=time.clock)

    assert outcome.variables["tool_runs"][0]["elapsed_seconds"] == 1.5
    assert outcome.logs["round1.call1"]["metadata"]["elapsed_time"] == 1.5
    assert outcome.logs["round1"]["metadata"]["elapsed_time"] == 1.5
