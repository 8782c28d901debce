"""Flows in the console: what of a folder can be asked, the form of a flow, and the page of a flow's conversation."""

import os
import re
import shutil
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from devhost.console.forms import in_words_of_the_page
from devhost.console.found import Kind, find, shortened
from devhost.console.new_run import LABELS, form_of
from devhost.console.readers import read_seen
from devhost.flow.traces import FlowTrace
from devhost.trace.flow import NodeStarted
from support.console import ConsoleClient, words
from support.flow_documents import answer, chain, chatflow, node
from support.plugins import PUPPET, TOOLBOX
from support.tracing import tracing
from test_flow_view import AGENT, END, FACTS, ran, told
from test_flow_view import START as BEGIN

FILES: dict[str, tuple[Kind, str]] = {
    "mine.yaml": ("script", "query: Hi\nturns: [{text: Hello}]\n"),
    "tools/scenarios/case.yaml": ("script", "query: Hi, you\nturns: [{text: Hello}]\nexpect: {rounds: {most: 1}}\n"),
    "tools/scenarios/longer.yaml": ("script", "extends: case.yaml\nturns: [{text: Hello}]\n"),
    "tools/scenarios/rest.yaml": ("script", "turns: [{text: Hello}]\n"),
    "cases/all.yaml": ("suite", "cases: [{name: a, query: Hi, turns: [{text: Hello}], expect: {}}]\n"),
    "cases/flow.yaml": ("flow script", "flow: ../flow.yml\nquery: What is there?\nthen: [{query: And now?}]\n"),
    "flow.yml": ("flow", "kind: app\n"),
    "tools/manifest.yaml": ("tool plugin", "plugins:\n  tools:\n  - provider/a.yaml\n"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current one, with one of each kind, and others that are nothing of that."""
    for name, (_, text) in {
        **FILES,
        "tests/no.yaml": FILES["mine.yaml"],
        "dist/no.yaml": FILES["mine.yaml"],
        ".hidden/no.yaml": FILES["mine.yaml"],
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "notes.yaml").write_text("shopping: tea\n")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "kept.yaml").write_text(FILES["cases/all.yaml"][1])
    (tmp_path / "runs" / "a.case.yaml").write_text(FILES["mine.yaml"][1])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_there_is_to_run_is_found(folder: Path) -> None:
    things = find(Path(os.path.relpath(PUPPET)), folder / "runs")

    expected: dict[Kind, list[Path]] = {"suite": [Path("runs/kept.yaml")]}
    for name, (kind, _) in FILES.items():
        expected.setdefault(kind, []).append(Path(name).parent if kind == "tool plugin" else Path(name))
    for kind, paths in expected.items():
        assert things.of(kind, own=True) == sorted(paths) == things.of(kind)[: len(paths)], kind


def test_suites_are_listed_by_what_they_are_about(folder: Path) -> None:
    console = ConsoleClient(folder / "runs", PUPPET)

    listed = words(console.get("/suites"))

    assert "Files of cases all cases/all.yaml kept runs/kept.yaml" in listed
    assert "each script that expects something is a case Hi, you tools/scenarios/case.yaml Flows" in listed
    assert "Flows: each script is a case What is there? cases/flow.yaml" in listed
    assert f"--tools {Path('tools')}" in words(console.get("/suite?file=tools/scenarios/case.yaml"))


def test_the_form_asks_the_strategy_plugin_of_the_folder_and_names_files_by_name_and_place(folder: Path) -> None:
    shutil.copytree(PUPPET, folder / "puppet")

    form = form_of({}, None, folder / "runs")

    assert (form.mistake, form.plugins) == (None, [Path("puppet")])
    assert "cases/all.yaml --plugin puppet" in words(ConsoleClient(folder / "runs").get("/suite?file=cases/all.yaml"))
    groups = {name: [label for _, label in choices] for name, choices in form.groups if choices}
    assert groups["Scenarios · this folder"] == ["mine"]
    assert groups["Scenarios · tools/scenarios"] == ["case", "longer"], "what only `devhost fork` can use is left out"
    assert form_of({"plugin": "gone"}, None).mistake is not None


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "no plugin has that. Give the folder of the tool plugin with --tools DIR",
            "Tick its plugin at “Tool plugins”",
        ),
        ("sends HTTP requests: allow it with --allow-http", "allow it with “send HTTP requests”"),
        ("choose one with --strategy, or set KEY", "choose one with “Strategy”, or set KEY"),
        ("--input topic: 'x' is not one of the options: tea", "topic: 'x' is not one of the options: tea"),
        (
            "needs the field 'topic' (text): give it with --input topic=TEXT",
            "needs the field 'topic' (text): fill it in",
        ),
        (
            "key: --credential catalogue.key=VALUE, or CATALOGUE_KEY in the environment; there are: key",
            "key: restart devhost ui with CATALOGUE_KEY set in its environment; there are: key",
        ),
    ],
)
def test_a_mistake_is_said_in_the_words_of_the_form(said: str, shown: str) -> None:
    assert in_words_of_the_page(said, LABELS).endswith(shown)


def test_the_form_of_a_flow_has_the_inputs_of_its_start_node(folder: Path) -> None:
    begin = node("start", "start", variables=[FIELD])
    file = chatflow(folder, [begin, answer("{{#sys.query#}}")], chain("start", "answer"))
    file.rename(folder / "flow.yml")

    form = form_of({"source": "flow:cases/flow.yaml", "p.topic": "tea"}, PUPPET, folder / "runs")

    assert (form.mistake, form.is_flow, form.setup.question) == (None, True, "What is there?")
    assert [(field.name, field.widget, field.text) for field in form.fields] == [("topic", "select", "tea")]
    command = ("flow", "chat", "--input", "topic=tea", "--script", "cases/flow.yaml")
    assert form.setup.arguments(Path)[:6] == command
    form.setup.check(Path)


FIELD = {"variable": "topic", "label": "Topic", "type": "select", "options": ["tea", "rice"], "required": True}


def test_the_tools_of_a_script_are_those_of_its_folder() -> None:
    setup = form_of({"source": f"script:{TOOLBOX / 'script.yaml'}", "plugin": str(PUPPET)}, None).setup

    assert ("--tools", str(shortened(TOOLBOX))) in pairwise(setup.arguments(Path))


def test_a_page_has_the_conversation_with_a_flow_its_nodes_and_its_variables(tmp_path: Path) -> None:
    """The second turn has begun, and its first node has not ended."""
    file = tmp_path / "flow.jsonl"
    told([*ran("1", BEGIN), *ran("2", AGENT), END], [*ran("3", BEGIN), END], trace=file)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[: max(at for at, line in enumerate(lines, 1) if b'"node_start"' in line)]))
    console = ConsoleClient(tmp_path, PUPPET)
    page = words(console.get("/runs/flow"))

    said = page.partition("What the agent did")[0]
    assert "What is there?" in said
    assert "Two." in said
    for text in ("Nodes that ran 2", "Start", "Clerk", "Conversation variables", "Turn 2"):
        assert text in page, text
    assert "Run again with a change" in page
    assert console.get("/runs/flow/find?words=CLERK") == '["node-1-2"]'
    assert "What is there?" in words(console.get("/"))
    awaited = read_seen(file, (0, 1), is_written=False).awaited
    assert awaited is not None
    assert awaited[0] == "Start"


def test_a_turn_that_is_not_as_expected_has_failed(tmp_path: Path) -> None:
    model = {"name": "m", "provider": "p", "scripted": True, "notice": "scripted model: no provider is called"}
    with tracing(tmp_path / "flow.jsonl", command="flow", strategy="", model=model) as writer:
        for number, failures in ((1, ["turn 1: too late"]), (2, [])):
            list(FlowTrace(writer).of_turn(replace(FACTS, turn=number), [*ran("1", BEGIN), END]))
            FlowTrace(writer).judged(failures)
    console = ConsoleClient(tmp_path, PUPPET)

    page = console.get("/runs/flow")
    assert page.count("finished, not as expected") == 2, "of the first turn: below its answer, and in its facts"
    for text in ("Expectations that failed turn 1: too late", model["notice"]):
        assert str(text) in words(page)
    assert "turn 1: too late finished, not as expected Office" in words(console.get("/?ending=failed"))


def test_a_page_names_nothing_twice(tmp_path: Path) -> None:
    """What is morphed in finds its place by its id; here a turn and the run of its agent both have the number 1."""
    with tracing(tmp_path / "flow.jsonl", command="flow") as writer:
        writer.flow(FACTS)
        writer.flow(NodeStarted("1", AGENT))
        asked = {"action": "invoke_agent_strategy", "agent_strategy_params": {"query": "?"}}
        writer.crossed("host", "puppet", {"event": "request", "session_id": "s", "data": asked})
        writer.flow(END)
    page = ConsoleClient(tmp_path, PUPPET).get("/runs/flow")

    names = Counter(re.findall(r' id="([^"]+)"', page))
    assert "run-1" in names
    assert [name for name, times in names.items() if times > 1] == []
    assert [place for place in re.findall(r'href="#([^"]+)"', page) if place not in names] == []
