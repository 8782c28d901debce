"""What a person sees, on a real terminal and piped."""

import io
import re
from typing import Any

import pytest
from rich.console import Console

from devhost.models.scripted.model import ScriptedModel
from devhost.node.outputs.outputs import AgentLog, Finding, NodeOutputs, spent
from devhost.node.outputs.run import CallsMade, NodeError, Run, RunError, SentToolCall
from devhost.protocol.wire import JsonObject
from devhost.terminal.chat_view import ChatView
from devhost.terminal.screen import ViewOptions
from devhost.terminal.tables import facts_table, printable
from devhost.terminal.turn_view import TurnView
from devhost.trace.played import PlayedTurn, begun, ends

TOKENS = {"total_tokens": 1234, "prompt_tokens": 1200, "completion_tokens": 34}
USAGE = {**TOKENS, "total_price": "0.01", "currency": "USD", "latency": 1.5}
ROUND: JsonObject = {"id": "r", "label": "ROUND 1", "status": "start", "data": {}}
SOURCES = [{"number": 1, "title": "Manual", "cited": True}, "odd"]


def run(*entries: JsonObject, variables: JsonObject | None = None, **changes: object) -> Run:
    """With these entries in its log."""
    log = AgentLog()
    for entry in entries:
        log.add(entry)
    found = {"sources": SOURCES, "stop_reason": "answered"} if variables is None else variables
    repeated = {"summary": {"rounds": 2, "why": "answered"}, "again": {"stop_reason": "answered"}}
    stored = [*(entry.stored() for entry in log.entries.values()), [1, {"a": "b"}], repeated]
    values: dict[str, Any] = {
        "strategy": "s",
        "outputs": NodeOutputs("", [], stored, USAGE, found, log.roots(), 2),
        "error": None,
        "findings": [Finding("log-left-open", "log 'ROUND 1' was never finished")],
        "messages": [],
        "elapsed_seconds": 1.234,
    }
    return Run(**{**values, **changes})


def turn_of(ended: Run) -> PlayedTurn:
    turn = begun(ended.strategy, 0.0)
    for event in ends(ended):
        turn.add(event, ended.elapsed_seconds)
    return turn


def shown(*texts: str, ended: Run, terminal: bool = False, options: ViewOptions | None = None) -> str:
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=terminal, highlight=False)
    view = TurnView(console, options)
    view.open(facts_table("helpdesk", "two questions", "s", ScriptedModel.of([{}]).description), "Why [b]?")
    view.begin_answer()
    view.hear({"type": "log", "message": {"id": "1", "status": "start", "label": "ROUND 1"}})
    for text in texts:
        view.hear({"type": "text", "message": {"text": text}})
    view.close(turn_of(ended), "The script has turns that no model call asked for: 1.")
    return out.getvalue()


def test_piped_it_is_plain_and_complete() -> None:
    broken = {"label": "CALL [b]x[/b]", "status": "error", "error": "it broke", "data": {"k": 1}}
    ended = run(ROUND, {"id": "c", "parent_id": "r", **broken})
    text = shown("<thi", "nk>hm</think>The an", "swer\x1b[2J\n", ended=ended)
    assert "\x1b" not in text
    for part in (
        "Why [b]?",
        "<think>hm</think>The answer�[2J\n",
        "… ROUND 1  never finished",
        "└── ✗ CALL [b]x[/b]",
        "it broke",
        "k: 1",
        "[1]",
        "Manual",
        "cited",
        "stop_reason  answered",
        "1,234 tokens = 1,200 prompt + 34 completion",
        "log-left-open: log 'ROUND 1' was never finished",
        "json ─",
        '[1, {"a": "b"}]',
        '\n{"summary": {"rounds": 2}}\n',  # what repeats a variable is left out
        "Dify's Agent node drops retriever resources (seen up to 1.17.0); this run sent 2.",
        "finished in 1.23 s",
    ):
        assert part in text


def test_on_a_terminal_thoughts_are_dimmed() -> None:
    text = shown("<think>hm</think>The answer", ended=run(), terminal=True)
    assert "\x1b[2;3mhm\x1b[0m" in text
    assert "The answer" in text


LONG = "Failed to transform agent message: " + "x" * 3000
FAILED = RunError("ValueError", "broke", "Traceback: here", NodeError(LONG))


@pytest.mark.parametrize(
    ("error", "traceback", "words"),
    [
        (FAILED, False, "ValueError: broke --traceback prints the traceback."),
        (FAILED, True, f"ValueError: broke Traceback: here Dify's node shows: {LONG[:2000]}… (1,035 more characters)"),
        (RunError("InvokeConnectionError", "gone", None, NodeError("gone")), False, "InvokeConnectionError: gone"),
    ],
)
def test_a_failure_is_shown_last(error: RunError, *, traceback: bool, words: str) -> None:
    text = " ".join(shown(ended=run(error=error), options=ViewOptions(traceback=traceback)).split())
    assert text.replace("x ", "x").endswith(f"failed after 1.23 s {words}".replace("x ", "x"))


def test_log_entries_are_cut_to_a_line_unless_they_are_asked_for_whole() -> None:
    note = {"id": "n", "label": "NOTE of x", "status": "success", "data": {"note": "of x"}}
    ended = run(
        {"id": "r", "label": "CALL x", "status": "error", "error": "e" * 300, "data": {"text": "d" * 300}}, note
    )
    cut, whole = (shown(ended=ended, options=ViewOptions(verbose=verbose)) for verbose in (False, True))
    assert (cut.count("e" * 60), cut.count("d" * 60), cut.count("of x")) == (1, 1, 1), "a note is said once"
    assert "".join(whole.split()).count('{"text":"' + "d" * 300 + '"}' + "e" * 300) == 1


def test_calls_that_wait_are_shown_with_their_arguments_and_a_state_is_shortened() -> None:
    long = {"id": "call_2", "tool": "mail\x1b", "arguments": {"n": "z" * 600}}
    pending = [{"id": "call_1", "tool": "order", "arguments": {"n": 1}}, long, "odd"]

    text = shown(ended=run(variables={"pending_calls": pending, "a": "b\n\nc", "state": "s\n" * 65_536}))

    waiting = text[text.index("calls that wait for an answer ─") : text.index("variables ─")]
    assert re.search(r"^order +\{\"n\": 1\} +call_1 *$", waiting, re.MULTILINE)
    assert "mail\N{REPLACEMENT CHARACTER}" in waiting
    assert "… (109 more" in waiting
    assert f"a      b c\nstate  {'s ' * 20}… (131,072 characters)\n" in text
    assert "pending_calls" not in text


def test_joiners_are_shown_and_control_characters_are_not() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    persian = "\u0645\u06cc\u200c\u062e"
    quoted = "<\u2060think>"

    assert printable(f"{family} {persian} {quoted}\n\t") == f"{family} {persian} {quoted}\n\t"
    assert printable("a\u202eb\x1b[31m") == "a\ufffdb\ufffd[31m"


def test_a_failed_run_shows_what_its_models_answers_cost() -> None:
    made = CallsMade(spent=spent([{"prompt_tokens": 30, "completion_tokens": 4, "total_tokens": 34}, {}]))
    failed = run(error=RunError("PluginLostError", "gone"), calls=made)
    assert "34 tokens = 30 prompt + 4 completion" in shown(ended=failed)


def test_the_tree_shows_values_that_were_not_sent_as_the_model_wrote_them() -> None:
    data = {"arguments": {"word": "a", "size": "2"}, "request_ids": ["r1", "r2"]}
    made = CallsMade(
        tools={
            "r2": SentToolCall("look", {"word": "a", "size": 2, "color": "red"}),
            "r1": SentToolCall("look", {"word": "b"}),
        }
    )
    entry: JsonObject = {"id": "1", "label": "CALL look", "status": "success", "data": data}
    text = shown(ended=run(entry, calls=made))
    assert 'sent: {"size": 2, "color": "red"}' in text
    assert "r1" not in text


CALLS: dict[str, dict[str, object]] = {
    "good": {"data": {"arguments": {"n": 1}, "tool_response": "one", "tool_call_id": "a", "request_ids": ["r1"]}},
    "broken": {"error": "'word'", "data": {"arguments": {"n": 2}, "tool_response": "'word'", "request_ids": ["r2"]}},
    "refused": {
        "error": "not run",
        "data": {
            "arguments": {"n": "x"},
            "status": "refused",
            "tool_response": "tool arguments validation error: parameter 'n' must be a number, got a string",
        },
    },
    "rejected": {"data": {"arguments": {"n": 3}, "status": "refused", "tool_response": "The user did not approve."}},
}
FAILURE = "KeyError: 'word', tools/search.py:31"


def test_a_failed_call_that_succeeded_later_does_not_change_how_the_run_ended() -> None:
    made = CallsMade({"tool": 2}, tools={"r1": SentToolCall("save", {}, FAILURE), "r2": SentToolCall("save", {})})
    assert "finished in 1.23 s; of 2 tool calls, 1 failed" in shown(ended=run(calls=made))


@pytest.mark.parametrize(
    ("names", "lines"),
    [
        (("good",), ["✓ CALL good", "  n: 1", "  → one", "finished in 1.23 s"]),
        (("rejected",), ["✓ CALL rejected", "  → The user did not approve.", "finished in 1.23 s"]),
        (
            ("good", "broken"),
            [
                "✗ CALL broken",
                "  n: 2",
                f"  {FAILURE}",
                "finished with a failed call of broken after 1.23 s; of 2 tool calls, 1 failed",
            ],
        ),
        (
            ("broken", "refused"),
            [
                "✗ CALL refused",
                "  n: x",
                "  not run: parameter 'n' must be a number, got a string",
                "finished without a successful tool call after 1.23 s; of 2 tool calls, 1 failed, 1 refused",
            ],
        ),
    ],
)
def test_a_call_that_did_not_work_says_why_once_and_the_end_counts_it(names: tuple[str, ...], lines: list[str]) -> None:
    entries = [
        {"id": name, "label": f"CALL {name}", "status": "error" if "error" in CALLS[name] else "success", **CALLS[name]}
        for name in names
    ]
    sent = sum(name not in {"refused", "rejected"} for name in names)
    called = {"r1": SentToolCall("good", {"n": 1}), "r2": SentToolCall("broken", {"n": 2}, FAILURE)}
    made = CallsMade({"tool": sent}, tools={id_: call for id_, call in called.items() if call.name in names})
    text = shown(ended=run(*entries, calls=made))
    for line in lines:
        assert [each.rstrip() for each in text.splitlines()].count(line) == 1, line
    assert "validation error" not in text


def in_a_chat(ended: Run) -> str:
    out = io.StringIO()
    chat = ChatView(Console(file=out, width=100, highlight=False), show_log=False)
    with chat.turn():
        chat.close_turn(turn_of(ended))
    return out.getvalue()


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"stop_reason": "call_limit"}, True),
        ({"stop_reason": "answered"}, False),
        ({"stop_reason": "call_limit", "pending_calls": [{"id": "1", "tool": "x", "arguments": {}}]}, False),
    ],
)
def test_a_chat_says_that_an_answer_ended_at_a_limit(variables: dict[str, object], *, said: bool) -> None:
    text = in_a_chat(run(variables=variables))
    assert ("stopped at the limit of tool calls (call_limit)" in text) is said


def test_a_printed_line_never_stands_within_the_answer_and_its_escapes_do_not_act() -> None:
    out = io.StringIO()
    view = TurnView(Console(file=out, width=100, highlight=False))
    view.hear({"type": "text", "message": {"text": "The ans"}})
    view.screen.printed("puppet", "a\x1b]0;title\x1b[2Jb")
    view.hear({"type": "text", "message": {"text": "wer."}})
    assert out.getvalue() == "The ans\npuppet | a�]0;title�[2Jb\nwer."
