"""The page as a browser lays it out, at a desk and on a phone."""

import struct
import threading
from pathlib import Path

import pytest

from devhost import FunctionTool, Host, ScriptedModel
from devhost.cli.commands import main
from devhost.protocol.wire import JsonObject
from support.chromium import NAMES, chromium, measured, screenshot
from support.tracing import tracing
from support.waiting import PATIENCE
from tests.devhost import ROOT

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        chromium() is None, reason=f"no browser: none of {', '.join(NAMES)} is on PATH, and CHROMIUM is not set"
    ),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run with two tool calls, neither of which ends before the other has begun."""
    directory = tmp_path_factory.mktemp("report")
    both_began = threading.Barrier(2, timeout=PATIENCE)

    def look(arguments: JsonObject) -> str:
        both_began.wait()
        return f"Nothing about {arguments['topic']}."

    calls = [{"name": "look", "id": f"call_{topic}", "arguments": {"topic": topic}} for topic in ("tea", "rice")]
    turns: list[JsonObject] = [
        {"thought": "Two topics.", "text": "Looking.", "tool_calls": calls, "delay": 0.01},
        {"text": "Nothing."},
    ]
    trace = directory / "run.jsonl"
    with tracing(trace) as writer, Host.start(ROOT, watcher=writer) as host:
        tool = FunctionTool("look", {"topic": "string"}, look)
        run = host.run("gpt5_function_calling", {"query": "Look."}, model=ScriptedModel.of(turns), tools=[tool])
    assert run.error is None
    assert main(["report", str(trace)]) == 0
    return trace.with_suffix(".html")


@pytest.mark.parametrize("width", [1280, 390])
def test_bars_of_concurrent_calls_are_below_each_other(page: Path, width: int) -> None:
    layout = measured(page, width)
    tea, rice = [bar for bar in layout["bars"] if bar["label"] == "CALL look"]
    assert tea["left"] < rice["right"]
    assert rice["left"] < tea["right"]
    assert tea["bottom"] <= rice["top"]
    assert layout["needed"] <= layout["width"] <= width, "the page is wider than its window"


def test_bars_are_at_their_times(page: Path) -> None:
    layout = measured(page, 1280)
    bars = {bar["label"]: bar for bar in layout["bars"]}
    first, second, call = bars["ROUND 1"], bars["ROUND 2"], bars["CALL look"]
    assert first["left"] <= call["left"] < call["right"] <= first["right"] + 4
    assert first["right"] <= second["left"] + 4
    assert len({(track["left"], track["right"]) for track in layout["tracks"]}) == 1
    track = layout["tracks"][0]
    for bar in layout["bars"]:
        if bar["label"] != "RUN FINISHED: answered":  # a mark, with its middle on its time
            assert track["left"] <= bar["left"] < bar["right"] <= track["right"] + 0.5


def test_a_picture_can_be_taken(page: Path) -> None:
    picture = page.with_suffix(".png")
    screenshot(page, picture, 1280, 900)
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == (1280, 900)
    assert len(data) > 20_000
