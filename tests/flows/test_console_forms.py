"""A form of a flow is answered on the page of its run in the console."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from devhost.cli.commands import main
from devhost.trace.flow import FormAnswered
from devhost.trace.lines import read_trace
from support.console import ConsoleClient, words
from support.flow_documents import START, chatflow, end, workflow
from support.waiting import wait_for
from tests.flows.test_human_input import EDGES, FORM, NODES


@pytest.fixture
def console(tmp_path: Path) -> Iterator[ConsoleClient]:
    (tmp_path / "runs").mkdir()
    (tmp_path / "script.yaml").write_text("flow: flow.yml\nquery: it\n")
    client = ConsoleClient(tmp_path / "runs")
    yield client
    client.close()


def test_a_form_is_refused_answered_once_and_recorded(console: ConsoleClient, tmp_path: Path) -> None:
    chatflow(tmp_path, NODES, EDGES)
    name, form = begun(console, tmp_path)
    assert "Outcome waits for an answer" in words(console.get(f"/runs/{name}"))
    assert "waits for an answer" in words(console.get("/?ending=waiting"))
    given = {"form": form, "told": "1", "press": "ok", "f.reason": "a < b"}

    refused = console.post(f"/runs/{name}/steer", 200, **given)
    assert "a < b when choose … now later choose one of: now, later" in words(refused)
    console.post(f"/runs/{name}/steer", 303, **{**given, "f.when": "now"})
    second = console.post(f"/runs/{name}/steer", 200, **{**given, "f.when": "later"})
    assert "this form is answered already" in words(second)

    wait_for(lambda: console.state(name) == "question", "the answer of the flow")
    page = words(console.get(f"/runs/{name}"))
    assert "One moment. ok now: Send it? a < b" in page
    assert re.search(r"answered by a person in the console after \d+\.\d s: Approve", page)
    trace = tmp_path / "runs" / f"{name}.jsonl"
    case = tmp_path / "case.yaml"
    (answer,) = [line for line in read_trace(trace).lines if isinstance(line, FormAnswered)]
    assert answer == FormAnswered(form, "ok", {"reason": "a < b", "when": "now"}, "console", at=answer.at)
    assert main(["record", str(trace), "-o", str(case)]) == 0
    assert main(["flow", "--script", str(case)]) == 0, "the recorded answer is given again"


def test_a_form_of_a_single_run_is_left_open(console: ConsoleClient, tmp_path: Path) -> None:
    form = {**FORM, "data": {**FORM["data"], "form_content": "Send?", "inputs": []}}
    workflow(tmp_path, [START, form, end(action="form.__action_id")], [("start", "form"), ("form", "end", "ok")])
    name, waits = begun(console, tmp_path)

    console.post(f"/runs/{name}/steer", form=waits, told="0", do="leave")

    wait_for(lambda: console.state(name) == "over", "the end of the run")
    page = console.get(f"/runs/{name}")
    assert "Waits node 'Form' (form) was left without an answer" in words(page)
    assert not re.search('Error|class="problem"', page)
    assert "waits for an answer" in words(console.get("/?ending=waiting"))


def test_a_flow_runs_again_with_another_answer_and_the_comparison_says_what_differs(
    console: ConsoleClient, tmp_path: Path
) -> None:
    chatflow(tmp_path, NODES, EDGES)
    name, form = begun(console, tmp_path)
    pressed(console, name, form, "ok")
    page = console.get(f"/runs/{name}/again")
    assert ">\nit</textarea>" in page

    given = {"answers": "recorded", "forms": "ask", "p.query": "it", "do": "start"}
    again = console.post(f"/runs/{name}/again", 303, **given).removeprefix("/runs/")
    wait_for(lambda: console.state(again) == "form", "the form of the new run")
    pressed(console, again, waiting_form(console, again), "no")

    compared = words(console.get(f"/compare/{name}/{again}"))
    assert "Different: answer, forms, path of nodes. The same: outcome and cost, question and inputs." in compared
    assert "button: Approve" in compared
    assert "run again" in console.get("/")


def pressed(console: ConsoleClient, name: str, form: str, button: str) -> None:
    given = {"form": form, "told": "1", "press": button, "f.reason": "fine", "f.when": "now"}
    console.post(f"/runs/{name}/steer", 303, **given)
    wait_for(lambda: console.state(name) == "question", "the answer of the flow")
    console.post(f"/runs/{name}/steer", do="end", told="1")
    wait_for(lambda: console.state(name) == "over", "the end of the run")


def waiting_form(console: ConsoleClient, name: str) -> str:
    found = re.search(r'name="form" value="([^"]+)"', console.get(f"/runs/{name}"))
    assert found is not None
    return found[1]


def begun(console: ConsoleClient, folder: Path) -> tuple[str, str]:
    """The names of a run and of its form, which waits."""
    name = console.start("form", source=f"flow:{folder / 'script.yaml'}")
    return name, waiting_form(console, name)
