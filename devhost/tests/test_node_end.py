"""The node's end, against the recording of Dify's own node: outputs, what the page gets, errors.

One line is left out: what the node shows of a line of the daemon that is not JSON, which no failure of a run leads to.
What is compared in part, and why:

* usage: the recording holds six of its fields;
* events of a long text: the recorded code cut it every 64 characters, which Dify never merged (pull request 34418);
* JSON in what the node shows is compared as values: the recording's daemon wrote spaces into it, the real one does not;
* `inputs_kept` of the error `unmarshal_error`: that recorded run had no inputs to keep.
"""

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devhost.errors import InvocationError, NodeFailedError, RunFailure, RunTimeoutError
from devhost.limits import HostLimits
from devhost.node.messages import Message, ToolFile, ToolFileStore
from devhost.node.outputs.outputs import OutputsFold
from devhost.node.outputs.run import RunError
from devhost.node.texts import NodeText, ThoughtSpans
from devhost.protocol.wire import JsonObject
from support.node_golden import Line, of_kind

CUT_BY_THE_RECORDED_CODE = 64
SIX_OF_USAGE = frozenset({"prompt_tokens", "completion_tokens", "total_tokens", "total_price", "currency", "latency"})


def streamed(message: Message) -> list[list[str]]:
    match message:
        case Message("text", {"text": text}):
            return [["text", text]]
        case Message("variable", {"variable_name": name, "variable_value": value, "stream": True}):
            return [[name, value]]
        case _:
            return []


def whole(events: list[list[str]]) -> list[list[str]]:
    """Pieces of 64 characters are part of one event, with what follows them."""
    joined: list[list[str]] = []
    of_a_cut_event = False
    for name, text in events:
        if of_a_cut_event:
            joined[-1][1] += text
        else:
            joined.append([name, text])
        of_a_cut_event = len(text) == CUT_BY_THE_RECORDED_CODE
    return joined


def as_values(shown: str) -> object:
    """A text, in which JSON is what it says, and pydantic has no version."""
    shown = re.sub(r"(?<=https://errors\.pydantic\.dev/)[\d.]+(?=/)", "", shown)
    before, brace, inner = shown.partition("{")
    if brace:
        return (before, json.loads(brace + inner))
    return shown


@pytest.mark.parametrize("line", of_kind("node_run"))
def test_golden_node_run(line: Line, tmp_path: Path) -> None:
    fold = OutputsFold(ToolFileStore(tmp_path), HostLimits())

    def play() -> list[list[str]]:
        return [event for message in fold.play(line["said"]) for event in streamed(message)]

    if "node_shows" in line:
        with pytest.raises(NodeFailedError) as failure:
            play()
        error = RunError.of(failure.value).node
        assert error is not None
        assert as_values(error.shows) == as_values(line["node_shows"])
        assert (error.type, error.inputs_kept) == (line["error_type"], line["inputs_kept"])
        return
    assert whole(play()) == whole(line["streamed"])
    outputs = fold.outputs().by_name()
    if outputs["usage"].keys() > SIX_OF_USAGE:
        outputs["usage"] = {name: outputs["usage"][name] for name in line["node_outputs"]["usage"]}
    assert outputs == line["node_outputs"]
    assert repr(outputs["usage"]) == repr(line["node_outputs"]["usage"])  # 0.0 is not 0
    assert fold.outputs().workflow_totals == line["metadata"]


def failure_of(line: Line) -> RunFailure:
    """What ended the run, of which the daemon's line tells the node."""
    match line:
        case {"raised": raised}:
            return InvocationError(raised["error_type"], raised["message"], raised["args"])
        case {"daemon_says": {"message": str(text)}} if "unmarshal_error" in text:
            return InvocationError("unmarshal_error", "unmarshal json failed: x")
    return RunTimeoutError("killed by timeout: the invocation took longer than 600 seconds")


@pytest.mark.parametrize("line", [line for line in of_kind("node_error") if "no JSON" not in str(line.values[0])])
def test_golden_node_error(line: Line) -> None:
    error = RunError.of(failure_of(line))
    assert error.node is not None
    assert as_values(error.node.shows) == as_values(line["node_shows"])
    assert error.node.type == line["error_type"]
    if "unmarshal_error" not in line["node_shows"]:
        assert error.node.inputs_kept is line["inputs_kept"]


REPAIRED: dict[str, tuple[list[str], str, list[str]]] = {
    "a second opening tag": (["<think>a<think>b</think>"], "<think>a</think><think>b</think>", ["another <think>"]),
    "one in a later message": (
        ["<think>a", "<think>b</think>"],
        "<think>a</think><think>b</think>",
        ["another <think>"],
    ),
    "one behind blanks alone": (["<think>\n", " <think>b</think>"], "<think>\n b</think>", []),
    "a third one": (["<think><think>\n<think>b</think>"], "<think>\nb</think>", []),
    "one behind a closed thought": (["<think>a</think><think>", "b</think>"], "<think>a</think><think>b</think>", []),
    "a closing tag that nothing opened": (["a</think>", "b"], "a</think>b", []),
    "the end": (["<think>a"], "<think>a</think>", []),
    "the end of a quoted tag": (["Use `<think>`."], "Use `<think>`.</think>", []),
    "a quoted tag with a joiner": (
        ["Use `<\u2060think>` and <\u2060/think>."],
        "Use `<\u2060think>` and <\u2060/think>.",
        [],
    ),
    "another letter case": (["<THINK>a"], "<THINK>a", []),
    "attributes": (["<think a='b'>a"], "<think a='b'>a", []),
}


def passed_on(*messages: Message) -> tuple[str, NodeText]:
    text = NodeText()
    events = [event for message in messages for event in text.read(message)] + list(text.finish())
    shown = "".join(event.text for event in events if event.type == "text")
    assert shown == text.passed
    return shown, text


@pytest.mark.parametrize(("said", "shown", "repairs"), REPAIRED.values(), ids=REPAIRED)
def test_thoughts_are_repaired_as_the_node_repairs_them(said: list[str], shown: str, repairs: list[str]) -> None:
    passed, text = passed_on(*(Message("text", {"text": piece}) for piece in said))

    assert passed == shown
    assert text.repairs == repairs


@pytest.mark.parametrize("cut", range(1, len("<think>")))
def test_a_tag_that_two_messages_share_is_not_repaired_and_the_page_reads_it(cut: int) -> None:
    said = ("<think>"[:cut], "<think>"[cut:] + "a")

    passed, text = passed_on(*(Message("text", {"text": piece}) for piece in said))

    assert passed == "<think>a"
    assert text.is_open, "the finding about it needs the page's reading"


@pytest.mark.parametrize(("kind", "said"), [("log", ""), ("link", "Link: https://x.example\n")])
def test_a_log_and_a_link_close_a_thought(kind: str, said: str) -> None:
    between = Message(kind, {"text": "https://x.example"})

    passed, text = passed_on(Message("text", {"text": "<think>a"}), between, Message("text", {"text": "b</think>"}))

    assert passed == f"<think>a</think>{said}b</think>"
    assert text.repairs == [f"a {kind}"]


def test_a_long_text_is_one_event() -> None:
    events = list(NodeText().read(Message("text", {"text": "a" * 1_000})))

    assert [event.text for event in events] == ["a" * 1_000]


@pytest.mark.parametrize(
    "meta_of",
    [lambda file: {"tool_file_id": file.id}, lambda file: {"file": file.output()}],
    ids=["by its id", "by the file"],
)
def test_a_link_that_names_a_file_in_its_meta_is_one_of_the_nodes_files(
    tmp_path: Path, meta_of: Callable[[ToolFile], JsonObject]
) -> None:
    store = ToolFileStore(tmp_path)
    file = store.save(b"%PDF-1.7", "application/pdf", "letter.pdf")
    fold = OutputsFold(store, HostLimits())

    list(fold.play([{"type": "link", "message": {"text": file.url}, "meta": meta_of(file)}]))

    outputs = fold.outputs()
    assert outputs.files == [file.output()]
    assert outputs.text == f"File: {file.url}\n"


def test_a_link_to_a_file_that_its_meta_does_not_name_stays_a_text(tmp_path: Path) -> None:
    store = ToolFileStore(tmp_path)
    file = store.save(b"%PDF-1.7", "application/pdf", "letter.pdf")
    fold = OutputsFold(store, HostLimits())

    list(fold.play([{"type": "link", "message": {"text": file.url}, "meta": None}]))

    assert fold.outputs().files == []
    assert fold.outputs().text == f"Link: {file.url}\n"


TEXT = "Well <think>\na < b </thin\n</think>\n\nso <b>it</b> is <thi"


def spans(pieces: list[str]) -> list[tuple[bool, str]]:
    splitter = ThoughtSpans()
    found = [span for piece in pieces for span in splitter.feed(piece)]
    return [*found, *splitter.finish()]


def merged(pieces: list[str]) -> tuple[str, str]:
    found = spans(pieces)
    return "".join(text for thinking, text in found if thinking), "".join(
        text for thinking, text in found if not thinking
    )


def test_thought_and_speech() -> None:
    assert merged([TEXT]) == ("\na < b </thin\n", "Well \n\nso <b>it</b> is <thi")


def test_the_tags_may_be_kept_among_the_thoughts() -> None:
    assert list(ThoughtSpans(keep_tags=True).feed("<think>a</think>b")) == [
        (True, "<think>"),
        (True, "a"),
        (True, "</think>"),
        (False, "b"),
    ]


@given(st.lists(st.integers(0, len(TEXT)), max_size=12))
def test_any_split_shows_the_same(cuts: list[int]) -> None:
    borders = [0, *sorted(cuts), len(TEXT)]
    pieces = [TEXT[start:end] for start, end in pairwise(borders)]
    assert merged(pieces) == merged([TEXT])
