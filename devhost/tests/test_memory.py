"""The node's memory: what of a conversation a strategy gets to see."""

from typing import Any

from dify_plugin.entities.model.message import ensure_prompt_message

from devhost.node.parameters import PastTurn, files_among, messages_of, window
from devhost.plugin.casting import FILE_IDENTITY

IMAGE = {
    "dify_model_identity": FILE_IDENTITY,
    "type": "image",
    "mime_type": "image/png",
    "filename": "shot.png",
    "extension": ".png",
    "url": "http://127.0.0.1/shot.png",
}


def remembered(*turns: PastTurn) -> list[dict[str, Any]]:
    return window(messages_of(turns))


def test_questions_and_raw_answers_in_turn() -> None:
    messages = remembered(PastTurn("one", "<think>\nhm\n</think>\n\nfirst"), PastTurn("two", "second"))
    assert [(message["role"], message["content"]) for message in messages] == [
        ("user", "one"),
        ("assistant", "<think>\nhm\n</think>\n\nfirst"),
        ("user", "two"),
        ("assistant", "second"),
    ]


def test_files_are_parts_of_their_question() -> None:
    assert files_among({"query": "?", "files": [IMAGE, "x"], "context": None, "one": IMAGE}) == (IMAGE, IMAGE)
    odd = {**IMAGE, "type": "custom"}
    question, answer = remembered(PastTurn("what is it?", "a shot", (IMAGE, odd)))
    image, text = question["content"]
    assert (image["type"], image["format"], image["url"], image["detail"]) == ("image", "png", IMAGE["url"], "high")
    assert text == {"type": "text", "data": "what is it?"}
    assert [ensure_prompt_message(message).role.value for message in (question, answer)] == ["user", "assistant"]


def test_the_oldest_messages_go_first_and_one_by_one() -> None:
    messages = remembered(PastTurn("a" * 4000, "b" * 4000), PastTurn("c" * 2000, "d" * 2000))
    assert [message["content"][0] for message in messages] == ["b", "c", "d"], "1,000 + 500 + 500 tokens just fit"
    messages = remembered(PastTurn("a" * 4000, "b" * 4001), PastTurn("c" * 2000, "d" * 2000))
    assert [message["content"][0] for message in messages] == ["c", "d"]
    assert [message["role"] for message in remembered(PastTurn("q", "long " * 10_000))] == ["assistant"]
