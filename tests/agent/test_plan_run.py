"""Plan and reflect without failures: the plan, its subtasks side by side, one answer."""

import re
from collections.abc import Iterator

import pytest
from dify_plugin.entities.agent import AgentRuntime
from dify_plugin.errors.model import InvokeBadRequestError
from gevent.event import Event

from internal.node.params import read_params
from internal.plan_and_reflect import PLAN_AND_REFLECT, PlanAndReflectParams
from prompt import template
from strategies.gpt5_plan_and_reflect import GPT5PlanAndReflectStrategy
from tests.agent.plans import (
    ANSWER,
    answers,
    completed,
    done_at_once,
    echo,
    looked_up,
    of_answer,
    of_reflection,
    of_subtask,
    offered,
    opening,
    plan_run,
    plans,
    works_on,
)
from tests.agent.scenes import live, search, text, wait_for
from tests.support.clock import PATIENCE
from tests.support.host import Handler, Json, ScriptedModel, Tools, When, make_session
from tests.support.run import run
from tests.support.wire import breaks, calls, model, says

NAMES = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]


def meeting(size: int) -> tuple[Handler, list[str]]:
    """A tool that answers only when so many calls of it are under way at once, and who came."""
    came: list[str] = []
    all_here = Event()

    def handler(request: Json) -> Iterator[Json]:
        came.append(request["tool_parameters"]["q"])
        if len(came) == size:
            all_here.set()
        assert all_here.wait(PATIENCE), f"only {came} were under way at once"
        yield from echo(request)

    return handler, came


def test_a_plan_of_one_is_one_subtask_one_judgement_and_one_answer() -> None:
    outcome = plan_run([plans("alpha"), *looked_up("alpha"), answers("All ", "found.")], {"search": echo})

    assert outcome.error is None
    assert (outcome.text, outcome.stop_reason) == ("All found.", "answered")
    assert outcome.variables["plan"] == ["alpha"]
    assert outcome.variables["subtasks"] == [
        {"name": "alpha", "answer": "Answer to alpha.", "completed": True, "attempts": 1}
    ]
    assert outcome.messages[-1]["type"] == "json"


@pytest.mark.parametrize("count", [2, 4, 8])
def test_all_subtasks_of_a_plan_run_their_tools_at_the_same_time(count: int) -> None:
    names = NAMES[:count]
    handler, came = meeting(count)
    steps = [plans(*names), *(step for name in names for step in looked_up(name)), answers()]

    outcome = plan_run(steps, {"search": handler}, {"maximum_subtasks": 8})

    assert sorted(came) == sorted(names)
    assert outcome.text == ANSWER
    assert [entry["name"] for entry in outcome.variables["subtasks"]] == outcome.variables["plan"] == names
    assert all(entry["completed"] for entry in outcome.variables["subtasks"])


@pytest.mark.parametrize("limit", [1, 3])
def test_the_limit_on_parallel_calls_holds_over_all_subtasks(limit: int) -> None:
    names, under_way, most, full = NAMES[:4], 0, 0, Event()

    def counting(request: Json) -> Iterator[Json]:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if under_way >= limit:
            full.set()
        assert full.wait(PATIENCE)
        yield from echo(request)
        under_way -= 1

    two = {name: calls(("search", {"q": name}), ("search", {"q": f"more of {name}"})) for name in names}
    scripts = [
        [works_on(name, two[name]), When(f"result for more of {name}", says("Done.")), completed(name)]
        for name in names
    ]
    steps = [plans(*names), *(step for script in scripts for step in script), answers()]

    outcome = plan_run(steps, {"search": counting}, {"parallel_tool_calls": limit})

    assert outcome.error is None
    assert len(outcome.tools.requests) == 8
    assert most == limit


def test_each_model_call_offers_only_the_tools_that_it_needs() -> None:
    outcome = plan_run([plans("alpha"), *looked_up("alpha"), answers()], {"search": echo})

    assert [offered(request) for request in outcome.model.requests] == [
        ["submit_plan"],
        ["search"],
        ["search"],
        ["submit_reflection"],
        [],
    ]


def test_the_answer_of_a_subtask_is_its_last_text_and_costs_no_extra_call() -> None:
    outcome = plan_run(
        [plans("alpha", "beta"), *looked_up("alpha"), *done_at_once("beta"), answers()], {"search": echo}
    )

    assert len(of_subtask(outcome, "alpha")) == 2
    assert len(of_subtask(outcome, "beta")) == 1
    assert len(outcome.model.requests) == 1 + (2 + 1) + (1 + 1) + 1


def test_every_subtask_sees_the_whole_plan_and_the_answer_sees_question_and_pairs() -> None:
    steps = [plans("alpha", "beta"), *done_at_once("alpha"), *done_at_once("beta"), answers()]
    outcome = plan_run(steps, params={"query": "What of both?", "context": "The sky is <b>blue</b>."})

    for request in [*of_subtask(outcome, "alpha"), *of_reflection(outcome, "beta")]:
        assert re.search(r"1\. alpha\n2\. beta", opening(request))
    (answer,) = map(opening, of_answer(outcome))
    assert "What of both?" in answer
    pairs = [answer.index(words) for words in ("alpha", "Answer to alpha.", "beta", "Answer to beta.")]
    assert pairs == sorted(pairs)
    assert all("The sky is <b>blue</b>." in opening(request) for request in outcome.model.requests)


def test_a_subtask_has_guards_of_its_own() -> None:
    """What failed in one subtask may still run in the other, and not a second time in the same."""
    names = NAMES[:2]
    steps = [
        plans(*names),
        *(works_on(name, search("same")) for name in names),
        *(When("failed to execute tool", search("same")) for _ in names),
        *(When("repeated failure", says("No.")) for _ in names),
        *map(completed, names),
        answers(),
    ]

    outcome = plan_run(steps, {"search": breaks("out of order")})

    assert len(outcome.tools.requests) == 2
    assert sorted(item["status"] for item in outcome.variables["tool_runs"]) == ["error", "error", "refused", "refused"]


def test_a_subtask_has_all_the_rounds_for_itself() -> None:
    names = NAMES[:2]
    steps = [
        plans(*names),
        *(works_on(name, search(name)) for name in names),
        *(When(template.CLOSING_NOTE, says("As far as I got.")) for _ in names),
        *map(completed, names),
        answers(),
    ]

    outcome = plan_run(steps, {"search": echo}, {"maximum_iterations": 1})

    assert [len(of_subtask(outcome, name)) for name in names] == [2, 2]
    assert [entry["answer"] for entry in outcome.variables["subtasks"]] == ["As far as I got."] * 2
    assert outcome.last_json["decision_summary"]["rounds"] == 3


def test_the_answer_streams_as_it_comes() -> None:
    half_is_shown = Event()
    last = [text("Half,"), wait_for(half_is_shown), *says(" and the rest.")]
    steps = [plans("alpha"), *done_at_once("alpha"), When("<findings>", last)]
    run = live(steps, blueprint=PLAN_AND_REFLECT)

    assert run.until("text")["text"] == "Half,"
    half_is_shown.set()
    assert run.until("text")["text"] == " and the rest."


def test_logs_and_files_of_a_subtask_come_while_the_others_still_work() -> None:
    """The slow subtask's tool waits until the file of the quick one has reached the user."""
    file_is_here = Event()
    link = {"type": "image_link", "message": {"text": "/files/tools/1.png"}, "meta": {"tool_file_id": "1"}}

    def handler(request: Json) -> Iterator[Json]:
        if request["tool_parameters"]["q"] == "slow":
            assert file_is_here.wait(PATIENCE)
        else:
            yield link
        yield from echo(request)

    steps = [plans("quick", "slow"), *looked_up("quick"), *looked_up("slow"), answers()]
    run = live(steps, {"search": handler}, blueprint=PLAN_AND_REFLECT)

    assert run.until("image_link")["text"] == "/files/tools/1.png"
    file_is_here.set()
    assert run.until("text")["text"] == ANSWER


@pytest.mark.parametrize("name", ["submit_plan", "submit_reflection", "submit_answer"])
def test_the_names_of_virtual_tools_are_reserved_against_the_nodes_tools(name: str) -> None:
    """The node's tool is offered under another name, and called by its own."""
    other = f"tools_{name}"
    steps = [
        plans("alpha"),
        works_on("alpha", calls((other, {"q": "x"}))),
        When("result for x", says("Done.")),
        completed("alpha"),
        answers(),
    ]

    outcome = plan_run(steps, {name: echo})
    plain = run([calls((other, {"q": "x"})), says("Done.")], {name: echo})

    assert offered(of_subtask(outcome, "alpha")[0]) == offered(plain.model.requests[0]) == [other]
    assert [request["tool"] for request in (*outcome.tools.requests, *plain.tools.requests)] == [name, name]


@pytest.mark.parametrize("handlers", [{}, {"search": echo}], ids=["no tools", "with tools"])
def test_a_model_that_cannot_call_tools_is_one_clear_error_before_any_call(handlers: dict[str, Handler]) -> None:
    outcome = plan_run([], handlers, {"model": model(features=["vision"])})

    assert isinstance(outcome.error, InvokeBadRequestError)
    assert "cannot call tools" in str(outcome.error)
    assert outcome.model.requests == []


def test_a_model_without_a_description_is_tried() -> None:
    outcome = plan_run([plans("alpha"), *done_at_once("alpha"), answers()], params={"model": model(features=None)})

    assert (outcome.error, outcome.text) == (None, ANSWER)


def test_the_strategy_as_dify_calls_it() -> None:
    scripted = ScriptedModel([plans("alpha"), *done_at_once("alpha"), answers()])
    session, _ = make_session(scripted, Tools({}))
    strategy = GPT5PlanAndReflectStrategy(runtime=AgentRuntime(user_id="user-1"), session=session)

    said = [message.model_dump() for message in strategy.invoke({"model": model(), "query": "?", "tools": None})]

    assert [message["message"]["text"] for message in said if message["type"].value == "text"] == [ANSWER]


LIMITS: dict[str, tuple[object, int, int]] = {
    "left alone": ("", 4, 3),
    "as text": ("2", 2, 2),
    "too many": (99, 8, 5),
    "too few": (0, 1, 1),
    "no number": ("many", 4, 3),
}


@pytest.mark.parametrize(("given", "subtasks", "attempts"), LIMITS.values(), ids=LIMITS)
def test_limits_of_a_plan_are_read_leniently(given: object, subtasks: int, attempts: int) -> None:
    raw = {"model": model(), "query": "?", "maximum_subtasks": given, "maximum_attempts": given}
    params = read_params(raw, PlanAndReflectParams)

    assert (params.maximum_subtasks, params.maximum_attempts) == (subtasks, attempts)
    assert len(params.notes) == (0 if given in ("", "2") else 2)
