"""A Tool node on the engine: its parameters, what becomes of the tool's messages, and its errors."""

import json
from pathlib import Path

from devhost.flow.turn import FlowTurn
from devhost.host.host import Host, ToolHost, start_tools
from devhost.limits import HostLimits
from devhost.protocol.wire import JsonObject
from devhost.tools.setup import ToolSetup
from devhost.trace.flow import AnswerText
from support.flow_documents import answer, chain, chatflow, mixed, start, tool, variable
from tests.flows.conftest import CHARTS_KEY, FIXTURES
from tests.flows.playing import Played


def played(
    folder: Path, given: JsonObject, host: ToolHost, text: str, turn: FlowTurn | None = None, **models: object
) -> Played:
    file = chatflow(folder, [start("n"), given, answer(text)], chain("start", given["id"], "answer"))
    return Played.of(file, turn or FlowTurn("hey", {"n": "3"}), host, models)


def perform(*steps: tuple[str, object]) -> JsonObject:
    return tool("oddments", "perform", steps={"type": "constant", "value": json.dumps(steps)})


def test_parameters_and_settings_are_filled_and_cast(tmp_path: Path, puppet: Host) -> None:
    repeat = tool(
        "toolbox",
        "repeat",
        settings={"separator": mixed(" {{#sys.query#}} ")},
        word=mixed("a{{#start.n#}}"),
        times=variable("start.n"),
    )

    flow = played(tmp_path, repeat, puppet, "{{#repeat.text#}}")

    assert flow.end.outputs["answer"] == "a3 hey a3 hey a3"
    assert flow.node("repeat").inputs == {"word": "a3", "times": "3", "separator": " hey "}
    assert "".join(event.text for event in flow.events if isinstance(event, AnswerText)) == "a3 hey a3 hey a3"


def test_json_variables_and_files_are_outputs_and_an_answer_links_the_files(tmp_path: Path, puppet: Host) -> None:
    draw = tool("toolbox", "draw", size={"type": "constant", "value": 5})

    flow = played(tmp_path, draw, puppet, "{{#draw.files#}}")

    (file,) = flow.node("draw").outputs["files"]
    picture = next(each for each in puppet.files.all() if each.id == file["related_id"])
    assert (file["filename"], file["mime_type"], file["type"], file["size"]) == ("picture.png", "image/png", "image", 5)
    assert picture.path.read_bytes() == b"PPPPP"
    assert flow.end.outputs["answer"] == f"![picture.png]({picture.path.as_uri()})"
    assert flow.end.outputs["files"] == [file]
    assert flow.node("draw").outputs["json"] == [{"data": []}]


def test_what_a_tool_raises_fails_its_node_in_difys_words(tmp_path: Path, puppet: Host) -> None:
    flow = played(tmp_path, perform(("fail", "no paper")), puppet, "x")

    provider = "devhost-tests/oddments/oddments"
    assert flow.node("perform").status == "failed"
    assert flow.node("perform").error == (
        f"An error occurred in the {provider}, please contact the author of {provider} for help, "
        "error type: ValueError, error details: no paper"
    )
    assert flow.end.status == "failed"


def test_a_credential_in_what_a_tool_sends_is_masked(tmp_path: Path, puppet: Host) -> None:
    chart = {**tool("charts", "draw_chart", title=mixed("T"), values=mixed("1,2")), "id": "draw_chart"}
    chart["data"] |= {"provider_id": "chartmakers/charts/charts"}

    flow = played(tmp_path, chart, puppet, "{{#draw_chart.json#}}")

    assert "https://eu.charts.example/draw?key=" in flow.end.outputs["answer"]
    assert CHARTS_KEY not in repr(flow.events)


def test_a_tool_may_ask_a_model_which_has_turns_at_its_node(tmp_path: Path, puppet: Host) -> None:
    flow = played(tmp_path, perform(("llm", "What?")), puppet, "{{#perform.json#}}", perform=[{"text": "That."}])

    assert flow.node("perform").outputs["json"] == [{"got": "That."}]


def test_a_flow_without_an_agent_needs_only_its_tool_plugins(tmp_path: Path) -> None:
    with start_tools([ToolSetup.read(FIXTURES / "toolbox").with_every_tool()], limits=HostLimits()) as host:
        flow = played(tmp_path, tool("toolbox", "repeat", word=mixed("a")), host, "{{#repeat.text#}}")
        gone = played(tmp_path, tool("oddments", "perform", steps=mixed("[]")), host, "x")

    assert flow.end.outputs["answer"] == "a-a"
    error = gone.node("perform").error
    assert error == "Failed to get tool runtime: tool perform of devhost-tests/oddments/oddments not found"
