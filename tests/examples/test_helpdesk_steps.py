"""Each step of the strategy alone, and the comparison of the two searches."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpdesk_steps.compare import figures, lines
from helpdesk_steps.measures import Row, chunking, nearness, rewriting, table
from helpdesk_steps.steps import StepError, Steps, steps

from devhost import ScriptedModel
from devhost.script import Script
from examples.helpdesk.__main__ import desk
from tests.support.pages import ROOT

from .conftest import HELPDESK

SCRIPT = Script.read(HELPDESK / "steps.yaml")
QUESTION = {"question": SCRIPT.query}
SUBTASK = 'Find out why the desktop app says "Sync paused".'
ANSWER = "The top of the app's menu says which of four reasons it is [1]."


@pytest.fixture(scope="module")
def started() -> Iterator[Steps]:
    with steps(SCRIPT.as_model()) as started:
        yield started


@pytest.fixture
def scripted(started: Steps) -> Steps:
    return Steps(started.host, SCRIPT.as_model())


def test_each_step_runs_alone_and_a_second_attempt_follows_the_advice(scripted: Steps) -> None:
    planned = scripted.take("plan", QUESTION)
    assert planned["plan"] == [SUBTASK]
    selected = scripted.take("select", planned)
    terms = {"terms": '"synchronisation error"', "language": "en"}
    assert selected["calls"] == [{"tool": "search_manual", "arguments": terms}]
    assert "results" not in selected  # nothing has run
    first = scripted.take("write", scripted.take("execute", selected))
    assert first["results"][0].startswith("Nothing in the manual")
    judged = scripted.take("reflect", first)
    assert (judged["is_completed"], judged["subtask"]["advised"]) == (False, [judged["advice"]])

    second = scripted.take("write", scripted.take("execute", scripted.take("select", judged)))
    assert second["calls"][0]["arguments"]["terms"] == '"sync paused"'
    assert [result.startswith("The best 3 hits") for result in second["results"]] == [True]
    done = scripted.take("reflect", second)
    assert done["findings"] == [{"subtask": SUBTASK, "answer": ANSWER, "completed": True}]
    assert scripted.take("answer", done)["final_answer"] == ANSWER


def test_the_final_answer_is_written_from_several_findings(started: Steps) -> None:
    model = ScriptedModel.of([{"text": "Restart it and update it."}])
    desk = Steps(started.host, model)
    answers = ("Restart the app.", "Update the app.")
    findings = [{"subtask": text[:7], "answer": text, "completed": True} for text in answers]

    assert desk.take("answer", {**QUESTION, "findings": findings})["final_answer"] == "Restart it and update it."
    assert all(text in model.requests[0].prompt_messages[-1].text for text in answers)


def test_an_answer_is_written_from_results_that_a_person_changed(started: Steps, scripted: Steps) -> None:
    executed = scripted.take("execute", scripted.take("select", scripted.take("plan", QUESTION)))
    reader = Steps(started.host, ScriptedModel.of([{"when": "It is the weather.", "text": "The weather."}]))

    assert reader.take("write", {**executed, "results": ["It is the weather."]})["answer"] == "The weather."


def test_sources_of_later_steps_have_numbers_of_their_own(started: Steps) -> None:
    search = {"tool_calls": [{"name": "search_manual", "id": "a", "arguments": {"terms": "sync"}}]}
    desk = Steps(started.host, ScriptedModel.of([search]))

    found = desk.take("execute", desk.take("select", {**QUESTION, "plan": [SUBTASK], "last_source": 3}))

    assert "[4]" in found["results"][0]
    assert found["last_source"] > 3


def test_a_step_takes_a_policy_of_ones_own_and_says_what_failed(started: Steps) -> None:
    model = ScriptedModel.of([{"when": "In one sentence.", "text": "So."}])
    own = {"prompt_policy_overrides": '{"answer_policy": "In one sentence."}'}
    found = {"findings": [{"subtask": "a", "answer": "b", "completed": True}]}

    assert Steps(started.host, model, own).take("answer", {**QUESTION, **found})["final_answer"] == "So."
    for step, known, said in (
        ("plan", {}, "the script has no turn"),
        ("select", {}, "needs 'plan'"),
        ("select", {"plan": ["a"], "number": 2}, "'number' of a subtask"),
        ("execute", {"plan": ["a"]}, "run the step select first"),
        ("reflect", {"plan": ["a"]}, "needs 'answer'"),
        ("answer", {}, "needs 'findings'"),
    ):
        with pytest.raises(StepError, match=said):
            Steps(started.host, ScriptedModel.of([{"when": "never"}])).take(step, {**QUESTION, **known})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ('{"question": "Why is the sky blue?"}', "it knows one question"),
        ("[]", "it has no question"),
        ("{", "not JSON"),
    ],
)
def test_a_script_does_not_answer_what_it_does_not_know(
    given: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SystemExit) as ended:
        desk(["step", "plan", given], prog_name="desk")

    assert ended.value.code == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_the_files_beside_the_page_are_what_the_steps_print(scripted: Steps) -> None:
    known = dict(QUESTION)
    for file in sorted(HELPDESK.glob("steps/*.json"), key=lambda file: int(file.stem.partition("-")[0])):
        known = scripted.take(file.stem.split("-")[1], known)
        assert json.loads(file.read_text(encoding="utf-8")) == known, file.name
    assert known["final_answer"] == ANSWER


def test_the_page_has_the_measured_table() -> None:
    page = (HELPDESK / "keyword-or-meaning.md").read_text(encoding="utf-8")
    assert "\n".join(lines(figures(HELPDESK))) in page


@pytest.mark.parametrize("measured", [nearness, rewriting, chunking])
def test_the_page_has_the_tables_of_the_measures(measured: Callable[[Path], Iterator[Row]]) -> None:
    page = (HELPDESK / "keyword-or-meaning.md").read_text(encoding="utf-8")
    assert "\n".join(table(measured(HELPDESK))) in page


def test_a_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    desk(["measure", "chunking"], prog_name="desk", standalone_mode=False)

    assert capsys.readouterr().out.startswith("| Cut | Passages |")


def test_the_page_on_the_agent_names_code_that_is_there() -> None:
    page = (HELPDESK / "how-the-agent-works.md").read_text(encoding="utf-8")
    table = page.partition("## Where each step is")[2].partition("## State")[0]
    sources = [
        *(ROOT / "internal" / file for file in ("plan_and_reflect.py", "loop.py", "calls/runner.py")),
        ROOT / "prompt" / "template.py",
    ]
    code = "\n".join(source.read_text(encoding="utf-8") for source in sources)
    names = [name.split(".")[-1] for name in re.findall(r"`([A-Za-z_]+(?:\.[a-z_]+)?)`", table)]
    known = re.findall(r"^ *(?:def|class) (\w+)|^(\w+) = ", code, re.MULTILINE)
    missing = {*names} - {"".join(found) for found in known} - {"PLAN", "REFLECTION", "ANSWER"}
    assert len(names) > 10
    assert missing == set()
