"""The plugin of examples/answers, started as the host starts it."""

from pathlib import Path
from typing import Any

import pytest
from answering.services import sync_service
from answering.storage.tables import make_tables
from sqlalchemy import URL
from tool_layer.database import Database
from tool_layer.run_steps import steps_of

from .stdio_plugin import StdioPlugin, messages


def search(question: str, url: URL, conversation: str = "") -> dict[str, Any]:
    return {
        "type": "tool",
        "action": "invoke_tool",
        "provider": "answers",
        "tool": "search_documents",
        "credentials": {"database_url": url.render_as_string(hide_password=False)},
        "tool_parameters": {"question": question, "conversation": conversation},
    }


def text_of(events: list[dict[str, Any]]) -> str:
    (message,) = messages(events)
    return str(message["message"]["text"])


@pytest.mark.e2e
def test_the_tool_finds_says_what_is_missing_and_leaves_its_trail(
    answers: Path, database_url: URL, tmp_path: Path
) -> None:
    url = database_url
    database = Database(url, make_tables)
    check = {"type": "tool", "action": "validate_tool_credentials", "provider": "answers"}
    with StdioPlugin(answers, {}) as plugin:
        before = plugin.request({"not built": search("How long may I keep a drill?", url, "c0")})
        sync_service(database).sync(answers / "documents")
        said = plugin.request(
            {
                "found": search("How long may I keep a drill?", url, "c1"),
                "nothing": search("What is the capital of France?", url),
                "blank": search(" ", url),
                "long": search("drill " * 200, url),
                "good": {**check, "credentials": {"database_url": f"sqlite:///{tmp_path}/new.db"}},
                "bad": {**check, "credentials": {"database_url": "mysql://root:s3cret@db/answers"}},
            }
        )

    text, sources = messages(said["found"])
    resources = sources["message"]["retriever_resources"]
    assert text["message"]["text"].startswith("Documents found: 3. The best first.")
    assert resources[0]["document_id"] == "en/borrowing.md"
    assert [resource["position"] for resource in resources] == [1, 2, 3]
    assert all(resource["content"] in text["message"]["text"] for resource in resources)
    scores = [resource["score"] for resource in resources]
    assert sorted(scores, reverse=True) == scores
    assert all(0 < score <= 1 for score in scores)
    assert text_of(said["nothing"]).endswith("Ask in other words.")
    assert text_of(before["not built"]).endswith("python -m examples.answers sync DIR")
    assert text_of(said["blank"]) == "The question is empty. Write what you want to know."
    assert text_of(said["long"]).startswith("Invalid parameters for search_documents: question: ")
    assert messages(said["good"]) == [{"result": True}]
    assert said["bad"][0]["data"]["error_type"] == "ToolProviderCredentialValidationError"
    assert "s3cret" not in str(said["bad"])
    (step,) = steps_of(database, "c1")
    assert step.input == {"question": "How long may I keep a drill?"}
    assert step.output["status"] == "success"
    assert step.output["result"]["documents"][0]["document_id"] == "en/borrowing.md"
    assert {each.output["status"] for each in steps_of(database, "")} == {"error"}
