"""The help desk's plugin in a process of its own."""

from typing import Any

import pytest

from .conftest import HELPDESK
from .stdio_plugin import StdioPlugin, messages


def search(tool: str, **parameters: object) -> dict[str, Any]:
    call = {"type": "tool", "action": "invoke_tool", "provider": "helpdesk", "credentials": {}}
    return {**call, "tool": tool, "tool_parameters": parameters}


@pytest.mark.e2e
def test_both_tools_at_once_find_say_what_is_wrong_and_name_their_sources() -> None:
    question = "How do I set up two-factor login with an authenticator app?"
    refused = {
        "No past question is similar to this one: What will": search("search_qa", question="What will it be?"),
        "search_qa error: The question is blank": search("search_qa", question=" "),
        "Nothing in the manual contains any of these terms: zyzzyva.": search("search_manual", terms="zyzzyva"),
        "search_manual error: The search terms are blank": search("search_manual", terms=" 　"),
    }
    found = {
        "words": search("search_manual", terms='authenticator "two-factor login"', language="en"),
        "japanese": search("search_manual", terms="バックアップ通知 届かない", language=None),
        "printed": search("search_manual", terms="sync paused", language="en"),
        "meaning": search("search_qa", question=question),
        "of a language": search("search_qa", question="バックアップの通知メールが届かない", language="ja"),
    }
    with StdioPlugin(HELPDESK, {}) as plugin:
        assert plugin.manifest["name"] == "fumikura_helpdesk"
        answers = plugin.request({**found, **refused})
    for said in refused:
        (only,) = messages(answers[said])
        assert only["message"]["text"].startswith(said)
    resources = {}
    for name in found:
        text, sources = messages(answers[name])
        assert sources["type"] == "retriever_resources"
        resources[name] = sources["message"]["retriever_resources"]
        assert [each["position"] for each in resources[name]] == list(range(1, len(resources[name]) + 1))
        assert len({each["segment_id"] for each in resources[name]}) == len(resources[name])
        for each in resources[name]:
            assert each["content"] in text["message"]["text"]
            assert each["document_name"] in text["message"]["text"]
            assert 0 < each["score"] <= 1
    pages = {name: {(each["document_id"], each["page"]) for each in resources[name]} for name in list(found)[:3]}
    assert pages == {
        "words": {("en/security-guide.md", 1)},
        "japanese": {("ja/admin-guide.md", 4)},
        "printed": {("en/desktop-sync-guide.pdf", 3)},
    }
    assert "Google Authenticator" in resources["meaning"][0]["content"]
    assert {each["doc_metadata"]["language"] for each in resources["of a language"]} == {"ja"}
