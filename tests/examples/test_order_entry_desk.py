"""Order entry's back end: messages and their data, what the model is told of them, and whole conversations."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from order_desk.agents.second_reader import SecondReader
from order_desk.commands import commands
from order_desk.context import message_to_model
from order_desk.messages import Annotation, BackEndData, ChatMessage, FrontEndData, MessageData
from order_desk.opening import ROOT
from order_desk.pending import Pending
from order_desk.store import MessageStore
from order_system_server.book import OrderBook
from order_system_server.server import OrderSystemServer
from ordering.services.reviewing import ToRead
from ordering.values.results import Judgement
from sqlalchemy import URL

from devhost import Host, ScriptedModel

FRONT_END = FrontEndData(customer_number="C-3001", customer_name="Café Lindqvist", page_snapshot="</order_context> <b>")
JUDGEMENT = Judgement(verdict="change", concerns=("Half was enough.",), confidence="high")
ANNOTATION = Annotation(order_request_id=3, version=1, judgement=JUDGEMENT)


def envelope(status: str = "success", **result: object) -> Mapping[str, object]:
    return {
        "tool": "any",
        "status": "ok",
        "json": {"status": status, "result": {"message": "For the model.", **result}},
    }


def review(order_request_id: int, **more: object) -> Mapping[str, object]:
    output = {"order_request_id": order_request_id, "version": 1, "verdict": "pass", "findings": [], **more}
    return envelope(reviewer_output=output)


def of_assistant(**added: Any) -> ChatMessage:  # noqa: ANN401 - fields
    return ChatMessage(role="assistant", text="Saved.", data=MessageData(back_end=BackEndData(**added)))


def context_of(message: str) -> dict[str, object]:
    found = re.fullmatch(r"(.*)\n\n<order_context>\n(.*)\n</order_context>", message, re.DOTALL)
    assert found is not None
    context: dict[str, object] = json.loads(found[2])
    return context


def test_what_tools_made_waits_for_one_message() -> None:
    pending = Pending()
    pending.add_results([envelope(saved_order_request_id=3), envelope(referenced_order_request_id=1)])
    pending.add_results([envelope(saved_order_request_id=4), envelope(output_report="Order SO-1")])
    pending.add_annotation(ANNOTATION)

    assert pending.taken() == BackEndData(
        saved_order_request_id=4, referenced_order_request_id=1, report="Order SO-1", annotations=(ANNOTATION,)
    )
    assert pending.taken() == BackEndData()


@pytest.mark.parametrize(
    "entry",
    [
        envelope("error", saved_order_request_id=3),
        {"tool": "other", "json": ["saved_order_request_id", 3]},
        {"tool": "other", "json": {"saved_order_request_id": 3}},
        {"tool": "save_order_draft", "json": None},
        {"tool": "save_order_draft"},
        envelope(items=["working memory"]),
    ],
)
def test_only_the_named_values_of_successful_calls_are_kept(entry: Mapping[str, object]) -> None:
    pending = Pending()
    pending.add_results([entry])

    assert pending.taken() == BackEndData()


def test_a_review_is_read_once_and_only_if_nobody_has_judged_it() -> None:
    pending = Pending()
    pending.add_results([review(3), review(3), review(4, second_reader=JUDGEMENT.model_dump()), review(5)])

    assert pending.reviewed() == [3, 5]
    assert pending.reviewed() == []


def test_the_model_reads_the_front_ends_data_and_the_ids_that_were_made_last() -> None:
    history = [
        of_assistant(saved_order_request_id=3, annotations=(ANNOTATION,)),
        of_assistant(saved_order_request_id=4, report="Order SO-1"),
        of_assistant(referenced_order_request_id=1),
        ChatMessage(role="user", text="Thanks", data=MessageData(front_end=FRONT_END)),
    ]

    message = message_to_model("Two more.", FRONT_END, history)

    assert message.startswith("Two more.\n\n<order_context>\n")
    assert message.count("</order_context>") == 1
    assert context_of(message) == {
        "customer_number": "C-3001",
        "customer_name": "Café Lindqvist",
        "page_snapshot": "</order_context> <b>",
        "saved_order_request_id": 4,
        "referenced_order_request_id": 1,
        "second_reader": [ANNOTATION.model_dump(mode="json")],
    }
    assert set(context_of(message_to_model("Hello", FRONT_END, []))) == {
        *("customer_number", "customer_name", "page_snapshot")
    }


def test_messages_are_kept_with_their_data_by_conversation(database_url: URL) -> None:
    store = MessageStore(database_url)
    said = ChatMessage(role="user", text="こんにちは", data=MessageData(front_end=FRONT_END))
    answered = of_assistant(saved_order_request_id=3, annotations=(ANNOTATION,))

    store.add("c1", said)
    store.add("c2", said)
    store.add("c1", answered)

    assert MessageStore(database_url).of("c1") == [said, answered]
    assert store.of("c3") == []


@pytest.fixture(scope="module")
def chatted(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, list[ChatMessage]]:
    """The database, what the terminal showed, and the messages of the scenario in which half is rejected."""
    database = f"sqlite:///{tmp_path_factory.mktemp('desk')}/desk.sqlite3"
    ended = CliRunner().invoke(
        commands, ["chat", "--scripted", "--play", "--scenario", "rejected", "--database-url", database]
    )
    assert ended.exit_code == 0, ended.output
    (conversation,) = re.findall(r"^Conversation (\S+)\.", ended.output, re.MULTILINE)
    messages = MessageStore(URL.create("sqlite", database=database.removeprefix("sqlite:///"))).of(conversation)
    return database, ended.output, list(messages)


@pytest.mark.e2e
def test_ids_reports_and_judgements_land_on_the_next_message_of_the_assistant(
    chatted: tuple[str, str, list[ChatMessage]],
) -> None:
    _, _, messages = chatted

    assert [message.role for message in messages] == ["user", "assistant"] * 3
    users, assistants = messages[::2], [message.data.back_end for message in messages[1::2]]
    assert all(message.data.back_end == BackEndData() for message in users)
    assert all(message.data.front_end is not None for message in users)
    assert all(message.data.front_end is None for message in messages[1::2])
    assert [data.saved_order_request_id for data in assistants] == [3, 3, None]
    assert [[note.version for note in data.annotations] for data in assistants] == [[1], [2], []]
    assert [data.report is not None for data in assistants] == [False, False, True]
    kept = "".join(message.model_dump_json() for message in messages)
    assert "Items like" not in kept
    assert "no rule asks for a change" not in kept


@pytest.mark.e2e
def test_the_chat_shows_report_and_judgement_and_no_result_as_it_is(
    chatted: tuple[str, str, list[ChatMessage]],
) -> None:
    _, shown, _ = chatted

    assert "· second reader of order request 3, version 2: pass (low confidence)" in shown
    assert "- NP-200 ペーパーナプキン 4つ折り: 20 pack (100 sheets)" in shown
    assert '"status"' not in shown


@pytest.mark.e2e
def test_the_audit_prints_every_run_of_a_tool_of_the_conversation(chatted: tuple[str, str, list[ChatMessage]]) -> None:
    database, shown, _ = chatted
    (conversation,) = re.findall(r"^Conversation (\S+)\.", shown, re.MULTILINE)

    printed = CliRunner().invoke(commands, ["audit", conversation, "--database-url", database]).output
    other = CliRunner().invoke(commands, ["audit", "another", "--database-url", database]).output

    steps = [line for line in printed.splitlines() if conversation in line]
    assert len(steps) == 7
    assert '"saved_order_request_id": 3' in printed
    assert other == "There are no run steps of conversation another.\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["chat", "--scenario", "unknown", "--play"], "unknown.yaml"),
        (["chat", "--strategy", "unknown", "--play", "--scripted"], "there is no strategy 'unknown'"),
        (["audit", "--database-url", "mysql://root:s3cret@db/shop"], "these tools know postgresql:// and sqlite://"),
    ],
)
def test_a_mistake_is_one_sentence(arguments: list[str], words: str, tmp_path: Path) -> None:
    database = [] if "audit" in arguments else ["--database-url", f"sqlite:///{tmp_path}/desk.sqlite3"]
    ended = CliRunner().invoke(commands, [*arguments, *database])

    assert ended.exit_code == 1
    assert ended.output.splitlines()[-1].startswith("Error: ")
    assert words in ended.output
    assert "s3cret" not in ended.output


@pytest.mark.e2e
def test_the_chat_of_a_scenario_without_an_order_system_places_nothing(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/order_entry.sqlite3"
    ended = CliRunner().invoke(
        commands, ["chat", "--scenario", "order-system-down", "--play", "--database-url", database]
    )

    assert ended.exit_code == 0, ended.output
    assert "our order system cannot be reached at the moment, so nothing is ordered" in ended.output


def test_a_port_that_is_taken_is_one_sentence() -> None:
    with OrderSystemServer(OrderBook()) as server:
        ended = CliRunner().invoke(commands, ["order-system", "--port", server.url.rpartition(":")[2]])

    assert ended.exit_code == 1
    assert ended.output.startswith("Error: Port ")


def test_no_script_shows_a_tools_result_as_it_is() -> None:
    folder = ROOT / "examples/order_entry"

    for script in (folder / "script.yaml", *folder.glob("scenarios/*.yaml")):
        assert "{{tool_results}}" not in script.read_text(encoding="utf-8")


@pytest.mark.e2e
def test_a_second_readers_answer_fits_its_schema_or_is_none() -> None:
    """An answer outside of the schema goes back to the model."""
    answers = [JUDGEMENT.model_dump(mode="json"), {"verdict": "maybe", "concerns": [], "confidence": "low"}]
    models = [
        ScriptedModel.of([{"tool_calls": [{"name": "submit_answer", "id": "1", "arguments": answer}]}])
        for answer in answers
    ]
    read = ToRead(3, 1, "Order request 3")
    with Host.start(ROOT) as host:
        judgements = [SecondReader(host, lambda model=model: model).judged(read, ["Hello"]) for model in models]  # type: ignore[misc]

    assert judgements == [JUDGEMENT, None]
    assert "Order request 3" in models[0].requests[0].prompt_messages[-1].text
