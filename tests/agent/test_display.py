"""What the user sees while a run goes on: answers, thoughts, remarks, and no stray blank lines."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from itertools import batched, pairwise
from typing import Any

import gevent
import pytest
from gevent.event import Event

from tests.support.clock import FakeTime
from tests.support.host import CallFails
from tests.support.run import assert_the_node_changes_no_text, run
from tests.support.scenes import ANSWER, FOUND, cut_off, ends, live, part, search, text, wait_for
from tests.support.wire import calls, fails, replies, says

LONG = "This is plainly the answer. " * 20  # 560 characters

# name: (turns, the thoughts, the text; both as they are on the screen)
SCREENS: dict[str, tuple[list[Sequence[Any]], str, str]] = {
    "a plain answer": ([says("A", "B")], "", "AB"),
    "a thought before the answer": ([says("<think>\nhm\n</think>\n\n", "Done.")], "hm", "Done."),
    "a remark before a call": ([search(text="Let me look."), ANSWER], "Let me look.", "Done."),
    "thought and remark": ([search(text="<think>hm</think>Let me look."), ANSWER], "hm\nLet me look.", "Done."),
    "remarks before two calls": (
        [search("a", text="One."), search("b", text="Two."), ANSWER],
        "One.\n</think>\n<think>\nTwo.",
        "Done.",
    ),
    "an unclosed thought before a call": ([search(text="<think>hm"), ANSWER], "hm", "Done."),
    "a long text before a call": ([search(text=LONG), ANSWER], "", f"{LONG.strip()}\n\nDone."),
    "silent tool rounds": ([search("a"), search("b"), ANSWER], "Used search.\n\nUsed search.", "Done."),
    "a silent round before a thought": ([search(), says("<think>hm</think>Done.")], "Used search.\n\nhm", "Done."),
    "blank text beside calls": ([search(text="\n\n"), says("\n\nDone.\n\n")], "Used search.", "Done."),
    "blank lines within an answer": ([says("A\n\n", "\n\nB")], "", "A\n\n\n\nB"),
    "a thought whose beginning the template left out": (
        [says("The user wants x.\n", "</think>\n\n", "Done.")],
        "The user wants x.",
        "Done.",
    ),
    "such a thought before a call": (
        [search(text="I need x.\n</think>\nLet me look."), ANSWER],
        "I need x.\nLet me look.",
        "Done.",
    ),
    "such a thought that was shown as an answer": ([says(LONG, "</think>\n", "Done.")], "", f"{LONG}\nDone."),
    "such a thought, long, that came at once with its end": (
        [says(f"{LONG}\n{LONG}</think>\nDone.")],
        f"{LONG}\n{LONG.strip()}",
        "Done.",
    ),
    "an unclosed thought of a turn that was cut": (
        [says("Well.\n<think>hm", finish_reason="length")],
        "hm",
        cut_off("Well.", "length"),
    ),
    "the text of a turn that was cut among its calls": (
        [calls(("search", {"q": "x"}), text="The first half of", finish_reason="length")],
        "",
        cut_off("The first half of", "length"),
    ),
    "a thought in the middle, while text is held back": ([says("A\n<think>hm</think>\nB")], "hm", "A\n\nB"),
}


@pytest.mark.parametrize("shown", [False, True], ids=["hidden", "shown"])
@pytest.mark.parametrize(("turns", "thoughts", "text"), SCREENS.values(), ids=SCREENS)
def test_the_final_text_on_the_screen(turns: list[Sequence[Any]], thoughts: str, text: str, *, shown: bool) -> None:
    outcome = run(turns, FOUND, {"emit_intermediate_thoughts": shown})

    assert outcome.error is None
    assert outcome.text == (f"<think>\n{thoughts}\n</think>\n\n{text}" if shown and thoughts else text)


@pytest.mark.parametrize("shown", [False, True], ids=["hidden", "shown"])
def test_thoughts_and_remarks_are_in_the_log_either_way(*, shown: bool) -> None:
    turns = [search(text="<think>hm</think>Let me look."), ANSWER]

    data = run(turns, FOUND, {"emit_intermediate_thoughts": shown}).logs["round1.model"]["data"]

    assert (data["thought"].strip(), data["text"]) == ("hm", "Let me look.")


def ends_of_thoughts(messages: list[dict[str, Any]]) -> list[str]:
    """Type of each message, with ``open`` or ``closed`` for what a text leaves behind."""
    kinds = []
    written = ""
    for message in messages:
        kind = message["type"]
        if kind == "text":
            written += message["message"]["text"]
            kind = "open" if written.count("<think>") > written.count("</think>") else "closed"
        kinds.append(kind)
    return kinds


CLOSINGS: dict[str, list[Sequence[Any]]] = {
    "before a tool": [search(text="<think>hm"), ANSWER],
    "before the answer": [says("<think>hm</think>", "Done.")],
    "at the end of a thought alone": [says("<think>hm")],
    "before a file": [[text([part("<think>hm")]), *search()], ANSWER],
    "on an error": [[text("<think>hm, well"), CallFails("kaboom")]],
    "on an error in a later round": [search(text="<think>hm"), fails("InvokeBadRequestError")],
}


@pytest.mark.parametrize("turns", CLOSINGS.values(), ids=CLOSINGS)
def test_a_shown_thought_is_closed_before_anything_else_is_said(turns: list[Sequence[Any]]) -> None:
    outcome = run(turns, FOUND, {"emit_intermediate_thoughts": True})

    kinds = ends_of_thoughts(outcome.messages)
    assert "open" in kinds
    for earlier, later in pairwise(kinds):
        assert (earlier, later) not in {("open", "log"), ("open", "json"), ("open", "variable")}
    assert outcome.text.count("<think>") == outcome.text.count("</think>")
    assert "<think></think>" not in outcome.text


QUOTED = "Use `<think>` and `</THINK>`:\n```\n<think a='b'>x</think >\n```\nNot <thinking> <b> a < b\n"
WRITTEN = re.sub(r"<(/?think\b)", "<\u2060\\1", QUOTED, flags=re.IGNORECASE)


@pytest.mark.parametrize("size", [1, 3, 7, 100])
@pytest.mark.parametrize("handlers", [{}, FOUND], ids=["streamed", "held back"])
def test_a_tag_that_an_answer_quotes_is_broken_in_its_text(handlers: dict[str, Any], size: int) -> None:
    """Dify's page would make a thought of all that follows; the log keeps what the model wrote."""
    outcome = run([says(*(QUOTED[at : at + size] for at in range(0, len(QUOTED), size)))], handlers)

    assert outcome.text.strip() == WRITTEN.strip()
    assert outcome.logs["round1.model"]["data"]["text"].strip() == QUOTED.strip()


SHOWN_AND_QUOTED = f"<think>\nWhat is <think>, or </think>?\n</think>\n{QUOTED}<think>\nAnd `<think>`?\n</think>\nDone."


@pytest.mark.parametrize("size", [1, 2, 5, 1_000])
@pytest.mark.parametrize("shown", [False, True], ids=["hidden", "shown"])
def test_difys_repair_of_thoughts_finds_nothing_where_thoughts_and_answer_quote_tags(*, shown: bool, size: int) -> None:
    """`run` refuses a text that the repair would change; without the joiners it would change this one."""
    pieces = map("".join, batched(SHOWN_AND_QUOTED, size))
    outcome = run([search(text=SHOWN_AND_QUOTED), says(*pieces)], FOUND, {"emit_intermediate_thoughts": shown})

    plain = [{"type": "text", "message": {"text": outcome.text.replace("\u2060", "")}}]
    assert "\u2060" in outcome.text
    with pytest.raises(AssertionError):
        assert_the_node_changes_no_text(plain)


def test_a_structured_answer_keeps_its_tags_where_no_page_shows_it() -> None:
    schema = '{"type": "object", "properties": {"tag": {"type": "string"}}, "required": ["tag"]}'
    outcome = run([calls(("submit_answer", {"tag": "</think>"}))], {}, {"answer_schema": schema})

    assert outcome.variables["structured_output"] == {"tag": "</think>"}
    assert json.loads(outcome.text) == {"tag": "<\u2060/think>"}


@pytest.mark.heavy
def test_a_megabyte_at_once_goes_out_in_few_messages_of_bounded_size() -> None:
    answer = "日本 <b> text.\n" * 76_000

    messages = [body["text"] for body in run([says(answer)], FOUND).bodies("text")]

    assert "".join(messages) == answer.strip()
    assert len(messages) <= len(answer.encode()) // (200 * 1024) + 1
    assert max(len(message.encode()) for message in messages) <= 256 * 1024


@pytest.mark.parametrize(
    "chunk",
    [text("<think>hm</think>\nyes\n" * 500), text([part("<think>hm</think>\nyes\n")] * 500)],
    ids=["text", "parts"],
)
def test_what_one_chunk_brings_goes_out_as_one_message(chunk: Any) -> None:  # noqa: ANN401 - a chunk on the wire
    outcome = run([[chunk, ends()]], {}, {"emit_intermediate_thoughts": True})

    assert len(outcome.bodies("text")) <= 2
    assert outcome.text.count("<think>") == outcome.text.count("</think>") == 500


STREAMED: dict[str, tuple[list[Any], dict[str, Any], dict[str, Any], str]] = {
    "an answer without tools": (["Word"], {}, {}, "Word"),
    "an answer of 400 characters beside tools": (["x" * 400], FOUND, {}, "x" * 400),
    "a shown thought": (["<think>hm"], FOUND, {"emit_intermediate_thoughts": True}, "<think>\nhm"),
    "the closing answer": ([*search(), "Word"], FOUND, {"maximum_iterations": 1}, "Word"),
}


@pytest.mark.parametrize(("shown", "handlers", "params", "first"), STREAMED.values(), ids=STREAMED)
def test_the_first_text_comes_before_the_models_stream_has_ended(
    shown: list[Any], handlers: dict[str, Any], params: dict[str, Any], first: str
) -> None:
    seen = Event()
    *before, last = shown
    running = live([*([before] if before else []), [text(last), wait_for(seen), *says(" The end.")]], handlers, params)

    assert running.until("text")["text"] == first
    seen.set()
    assert list(running.messages)[-1]["type"] == "json"


def test_a_run_that_ends_early_leaves_nothing_that_reads_the_model() -> None:
    """The host has stopped the run while the model was still silent."""
    never = Event()
    running = live([[text("First"), wait_for(never)]])
    running.until("text")
    assert running.session.reader.readers

    running.messages.close()
    gevent.idle()
    never.set()

    assert not running.session.reader.readers


PLACES = 128
ROUNDS = 30
SEARCHES = [calls(*[("search", {"q": f"{number}-{call}"}) for call in range(4)]) for number in range(ROUNDS)]


def test_no_message_of_a_burst_is_lost() -> None:
    """On a clock that stands still, but for the run's own pauses, in which the daemon passes on all that waits."""
    time = FakeTime()
    run = live(
        [*SEARCHES, says("Found.")], {"search": replies("found")}, {"maximum_iterations": ROUNDS + 1}, time.clock
    )
    at_once = Counter(time.now for _ in run.messages)
    assert at_once.total() > 2 * PLACES
    assert max(at_once.values()) <= PLACES
