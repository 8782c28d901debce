"""Each step of a plan alone, and the comparison of the two searches."""

from collections.abc import Iterator

import pytest
from helpdesk_steps.compare import figures, lines
from helpdesk_steps.steps import Finding, Steps

from devhost import Host, ScriptedModel
from devhost.models.scripted.script import Script
from tests.support.pages import ROOT

from .conftest import HELPDESK

QUESTION = 'The desktop app says "Sync paused". What does it mean?'
PLAN = ['Find out why the desktop app says "Sync paused".']
ANSWER = "The top of the app's menu says which of four reasons it is [1]."


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host.start(ROOT, tools=[HELPDESK]) as host:
        yield host


def test_each_step_runs_alone(host: Host) -> None:
    script = Script.read(HELPDESK / "steps.yaml")
    steps = Steps(host, ScriptedModel.from_script(script))

    assert steps.plan(QUESTION) == PLAN
    finding = steps.subtask(QUESTION, PLAN, 1)
    assert (finding.subtask, finding.answer) == (PLAN[0], ANSWER)
    assert "Sync paused" in finding.results[0]
    assert steps.reflect(PLAN, finding) == {"is_completed": True, "advice": ""}
    assert steps.answer(QUESTION, [finding]) == ANSWER


def test_a_step_takes_a_text_of_ones_own_and_says_what_failed(host: Host) -> None:
    model = ScriptedModel.of([{"when": "In one sentence.", "text": "So."}])
    steps = Steps(host, model, policies={"ANSWER_POLICY": "In one sentence."})

    assert steps.answer(QUESTION, [Finding("a", "b")]) == "So."
    with pytest.raises(RuntimeError, match="the script has no turn"):
        steps.plan(QUESTION)


def test_the_page_has_the_measured_table() -> None:
    page = (HELPDESK / "keyword-or-meaning.md").read_text(encoding="utf-8")
    assert "\n".join(lines(figures(HELPDESK))) in page
