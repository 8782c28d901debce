"""The node's end, against the recording of Dify's own node: outputs, what the page gets, errors.

One line is left out: what the node shows of a line of the daemon that is not JSON, which no failure of a run leads to.
What is compared in part, and why:

* usage: the recording holds six of its fields;
* JSON in what the node shows is compared as values: the recording's daemon wrote spaces into it, the real one does not;
* `inputs_kept` of the error `unmarshal_error`: that recorded run had no inputs to keep.
"""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devhost.errors import InvocationError, NodeFailedError, RunFailure, RunTimeoutError
from devhost.limits import HostLimits
from devhost.node.messages import Message, ToolFileStore
from devhost.node.outputs.outputs import OutputsFold
from devhost.node.outputs.run import RunError
from devhost.node.texts import NodeText, ThoughtSpans
from support.node_golden import Line, of_kind

SIX_OF_USAGE = frozenset({"prompt_tokens", "completion_tokens", "total_tokens", "total_price", "currency", "latency"})


def streamed(message: Message) -> list[list[str]]:
    match message:
        case Message("text", {"text": text}):
            return [["text", text]]
        case Message("variable", {"variable_name": name, "variable_value": value, "stream": True}):
            return [[name, value]]
        case _:
            return []


def as_values(shown: str) -> object:
    """A text, in which JSON is what it says, and pydantic has no version."""
    shown = re.sub(r"(?<=https://errors\.pydantic\.dev/)[\d.]+(?=/)", "", shown)
    before, brace, inner = shown.partition("{")
    return (before, json.loads(brace + inner)) if brace else shown


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
    assert play() == line["streamed"]
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


@pytest.mark.parametrize("cut", range(1, len("<think>a<think>b</think>")))
def test_a_tag_is_counted_wherever_messages_cut_it(cut: int) -> None:
    said = "<think>a<think>b</think>"
    text = NodeText()
    events = [
        event.text for piece in (said[:cut], said[cut:]) for event in text.take(Message("text", {"text": piece}))
    ] + [event.text for event in text.finish()]
    assert "".join(events) == text.passed == "<think>a</think><think>b</think>"
    assert text.repairs == ["another <think>"]


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
