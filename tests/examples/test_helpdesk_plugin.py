from pathlib import Path
from typing import Any

import pytest

from .embeddings_server import KEY, embeddings_server
from .stdio_plugin import StdioPlugin
from .visible_texts import check_languages


def search(parameters: dict[str, Any], credentials: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "tool",
        "action": "invoke_tool",
        "provider": "helpdesk",
        "tool": "search_manual",
        "credentials": credentials or {},
        "tool_parameters": parameters,
    }


def messages(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    assert {event["type"] for event in events} == {"stream"}, events
    return [event["data"] for event in events]


@pytest.mark.e2e
def test_two_searches_at_once_on_a_missing_index(helpdesk_plugin: StdioPlugin, tmp_path: Path) -> None:
    assert helpdesk_plugin.manifest["name"] == "fumikura_helpdesk"
    answers = helpdesk_plugin.request(
        {
            "first": search({"terms": 'authenticator "two-factor login"', "language": "en"}),
            "second": search({"terms": "バックアップ通知 届かない", "language": None}),
        }
    )
    text, sources = messages(answers["first"])
    assert text["message"]["text"].startswith('The best 3 hits in the manual for: authenticator "two-factor login"')
    assert sources["type"] == "retriever_resources"
    resources = sources["message"]["retriever_resources"]
    assert [resource["position"] for resource in resources] == [1, 2, 3]
    for resource in resources:
        assert (resource["document_id"], resource["document_name"], resource["page"]) == (
            "en/security-guide.md",
            "en/security-guide.md",
            1,
        )
        assert resource["content"] in text["message"]["text"]
        assert 0 < resource["score"] < 1
    assert len({resource["segment_id"] for resource in resources}) == 3
    second = messages(answers["second"])[1]["message"]["retriever_resources"]
    assert {(resource["document_name"], resource["page"]) for resource in second} == {("ja/admin-guide.md", 4)}
    assert [file.name for file in tmp_path.iterdir()] == ["manual.sqlite3"]


@pytest.mark.e2e
def test_unknown_and_unusable_terms_are_explained(helpdesk_plugin: StdioPlugin, tmp_path: Path) -> None:
    answers = helpdesk_plugin.request(
        {
            "nothing": search({"terms": "zyzzyva"}),
            "blank": search({"terms": " 　"}),
            "absent": search({}),
            "language": search({"terms": "backup", "language": "fr"}),
            "credential": search({"terms": "backup"}, {"index_directory": str(tmp_path / "named")}),
            "unusable": search({"terms": "backup"}, {"index_directory": "relative"}),
        }
    )
    (nothing,) = messages(answers["nothing"])
    assert nothing["message"]["text"].startswith("Nothing in the manual contains any of these terms: zyzzyva.")
    for session in ("blank", "absent"):
        (refused,) = messages(answers[session])
        assert refused["message"]["text"].startswith("search_manual error: The search terms are blank")
    (refused,) = messages(answers["language"])
    assert "'fr' is unknown" in refused["message"]["text"]
    assert len(messages(answers["credential"])) == 2
    assert (tmp_path / "named" / "manual.sqlite3").is_file()
    (error,) = answers["unusable"]
    assert error["type"] == "error"
    assert error["data"]["message"].startswith("index_directory is 'relative'; give an absolute path")


@pytest.mark.e2e
def test_credentials_are_optional_and_checked(helpdesk_plugin: StdioPlugin) -> None:
    check = {"type": "tool", "action": "validate_tool_credentials", "provider": "helpdesk"}
    answers = helpdesk_plugin.request(
        {
            "none": {**check, "credentials": {}},
            "bad": {**check, "credentials": {"index_directory": "relative"}},
        }
    )
    assert messages(answers["none"]) == [{"result": True}]
    assert answers["bad"][0]["data"]["error_type"] == "ToolProviderCredentialValidationError"


@pytest.mark.parametrize(
    "file", ["manifest.yaml", "provider/helpdesk.yaml", "tools/search_manual.yaml", "tools/search_qa.yaml"]
)
def test_all_visible_texts_are_in_four_languages(helpdesk: Path, file: str) -> None:
    check_languages(helpdesk / file)


def ask(question: object, credentials: dict[str, Any] | None = None, **parameters: object) -> dict[str, Any]:
    return {
        **search({"question": question, **parameters}, credentials),
        "tool": "search_qa",
    }


@pytest.mark.e2e
def test_both_tools_at_once_on_missing_indexes(helpdesk_plugin: StdioPlugin, tmp_path: Path) -> None:
    question = "How do I set up two-factor login with an authenticator app?"
    answers = helpdesk_plugin.request(
        {
            "first": ask(question),
            "second": ask("バックアップの通知メールが届かない", language="ja"),
            "third": search({"terms": "sync paused", "language": "en"}),
            "nothing": ask("What will the weather in Osaka be?"),
            "blank": ask(" "),
            "language": ask("backup", language="fr"),
        }
    )
    text, sources = messages(answers["first"])
    assert text["message"]["text"].startswith(
        f"The 2 past questions most similar to: {question}\nSimilarity was computed by"
    )
    resources = sources["message"]["retriever_resources"]
    assert [resource["position"] for resource in resources] == [1, 2]
    assert "Google Authenticator" in resources[0]["content"]
    assert len({resource["document_id"] for resource in resources}) == 2
    for resource in resources:
        assert resource["document_name"] in text["message"]["text"]
        assert resource["content"] in text["message"]["text"]
        assert 0 < resource["score"] <= 1
    second = messages(answers["second"])[1]["message"]["retriever_resources"]
    assert {resource["doc_metadata"]["language"] for resource in second} == {"ja"}
    third = messages(answers["third"])[1]["message"]["retriever_resources"]
    assert {(resource["document_name"], resource["page"]) for resource in third} == {("en/desktop-sync-guide.pdf", 3)}
    (nothing,) = messages(answers["nothing"])
    assert nothing["message"]["text"].startswith("No past question is similar to this one: What will")
    (blank,) = messages(answers["blank"])
    assert blank["message"]["text"].startswith("search_qa error: The question is blank")
    (language,) = messages(answers["language"])
    assert "'fr' is unknown" in language["message"]["text"]
    assert sorted(file.name.partition("-")[0] for file in tmp_path.iterdir()) == ["manual.sqlite3", "qa"]


@pytest.mark.e2e
def test_a_key_selects_the_api_and_a_wrong_key_is_an_error_that_hides_it(helpdesk_plugin: StdioPlugin) -> None:
    check = {"type": "tool", "action": "validate_tool_credentials", "provider": "helpdesk"}
    wrong = "sk-wrong-0987654321"
    with embeddings_server() as server:
        good = {"openai_api_key": KEY, "openai_base_url": server.base_url}
        bad = {**good, "openai_api_key": wrong}
        answers = helpdesk_plugin.request(
            {
                "good": ask("backup notifications", good),
                "bad": ask("backup notifications", bad),
                "good check": {**check, "credentials": good},
                "bad check": {**check, "credentials": bad},
                "half check": {**check, "credentials": {"openai_base_url": server.base_url}},
            }
        )
    text, sources = messages(answers["good"])
    assert (
        "Similarity was computed by meaning, with the embedding model text-embedding-3-small."
        in text["message"]["text"]
    )
    assert sources["message"]["retriever_resources"]
    assert messages(answers["good check"]) == [{"result": True}]
    for session in ("bad", "bad check"):
        (error,) = answers[session]
        assert error["type"] == "error"
        assert "refused the OpenAI key (status 401, invalid_api_key)" in error["data"]["message"]
    assert "without openai_api_key" in answers["half check"][0]["data"]["message"]
    assert wrong not in str(answers)
    assert KEY not in str(answers)
