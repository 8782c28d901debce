"""A second look: the draft is held back, judged by the node's criteria, and written again at most twice."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from dify_plugin.errors.model import InvokeBadRequestError

from internal.clock import Clock
from internal.memory.state import decode
from prompt import template, user_texts
from tests.support.clock import FakeTime
from tests.support.host import CallFails, Handler, Json
from tests.support.plans import UP_TO_THE_ANSWER, blocks, every_strategy, offered, plan_run, plans, works_on
from tests.support.run import Outcome, run, without_notes
from tests.support.scenes import (
    ANSWER,
    CITY,
    FOUND,
    check_growth,
    cut_off,
    last_note,
    log_of,
    passes,
    rejects,
    search,
    silence,
    silent,
    text,
)
from tests.support.wire import USAGE, calls, fails, model, parameter, replies, says, tool

CRITERIA = "A source for every figure; at most <draft> 200 words."
TURN = USAGE["total_tokens"]


def image() -> Json:
    return {"type": "image", "format": "png", "url": "https://a.test/1.png", "mime_type": "image/png"}


def submits(city: str) -> list[Any]:
    return calls(("submit_answer", {"city": city}))


def reviewed(
    *steps: Any,  # noqa: ANN401 - turns
    strategy: str = "function calling",
    handlers: Mapping[str, Handler] | None = None,
    clock: Clock | None = None,
    environment: Mapping[str, str] | None = None,
    **params: object,
) -> Outcome:
    """Run a strategy up to its answer, for which these are the turns."""
    blueprint, before = UP_TO_THE_ANSWER[strategy]
    given = {"answer_criteria": CRITERIA, **params}
    tools = FOUND if handlers is None else handlers
    return run([*before, *steps], tools, given, blueprint=blueprint, clock=clock, environment=environment)


def judged(outcome: Outcome) -> list[str]:
    """What the judge was asked, each time."""
    asked = [request for request in outcome.model.requests if offered(request) == ["submit_review"]]
    return [request["prompt_messages"][-1]["content"] for request in asked]


def answered(outcome: Outcome) -> list[Json]:
    """The requests of the conversation in which the answer was written."""
    others = [request for request in outcome.model.requests if offered(request) != ["submit_review"]]
    opening = others[-1]["prompt_messages"][:2]
    return [request for request in others if request["prompt_messages"][:2] == opening]


def review(outcome: Outcome) -> tuple[bool | None, list[str], int]:
    """The variable ``review``: passed, problems, revisions."""
    value = outcome.variables["review"]
    assert set(value) == {"passed", "problems", "revisions"}
    return value["passed"], value["problems"], value["revisions"]


def is_unjudged(outcome: Outcome) -> bool:
    return judged(outcome) == [] and review(outcome) == (None, [], 0)


def positions(outcome: Outcome, kind: str, within: str) -> list[int]:
    """Where messages of a type stand that contain a text."""
    found = enumerate(outcome.messages)
    return [at for at, message in found if message["type"] == kind and within in json.dumps(message)]


def results_of(asked: str) -> list[str]:
    return [part.partition("\n</result>")[0] for part in asked.split("<result>\n")[1:]]


@dataclass(frozen=True)
class Course:
    """Drafts and judgements, and how they end."""

    steps: Sequence[Any]
    text: str
    review: tuple[bool | None, list[str], int] = (None, [], 0)
    """By default nothing was judged."""
    reason: str = "answered"
    params: Mapping[str, Any] = field(default_factory=dict)
    turns: int | None = None
    """After which the tokens of the run are used up."""
    streams: bool = False

    def check(self, strategy: str, time: FakeTime) -> Outcome:
        spent = {"maximum_total_tokens": (len(UP_TO_THE_ANSWER[strategy][1]) + self.turns) * TURN} if self.turns else {}
        outcome = reviewed(*self.steps, strategy=strategy, clock=time.clock, **self.params, **spent)
        assert (outcome.error, outcome.text, outcome.stop_reason) == (None, self.text, self.reason)
        assert review(outcome) == self.review
        assert not self.streams or len(outcome.bodies("text")) == 2
        return outcome


with_and_without_thoughts = pytest.mark.parametrize("shows", [False, True], ids=["hidden", "shown"])
WITH_SCHEMA: dict[str, Any] = {"answer_schema": CITY}
WRONG_KEY = fails("InvokeAuthorizationError", "wrong key")
BROKEN = fails("InvokeBadRequestError", "broken")


@every_strategy
@with_and_without_thoughts
def test_a_draft_that_passes_is_shown_at_once_and_after_its_judgement(strategy: str, *, shows: bool) -> None:
    draft = "It has 1,000,000 people [1]. " + "word " * 200
    turn = says("<think>I add it up.</think>", *(draft[at : at + 50] for at in range(0, len(draft), 50)))

    outcome = reviewed(turn, passes("A bit long."), strategy=strategy, emit_intermediate_thoughts=shows)

    assert outcome.error is None
    assert (outcome.stop_reason, review(outcome)) == ("answered", (True, [], 0))
    assert log_of(outcome, "REVIEW 1")["data"]["problems"] == ["A bit long."]
    assert outcome.text.endswith(draft.strip())
    (shown,) = positions(outcome, "text", "1,000,000")
    assert shown > positions(outcome, "log", "REVIEW 1")[-1]
    assert ("I add it up." in "".join(blocks(outcome.text))) is shows
    if shows:
        assert positions(outcome, "text", "I add it up.")[0] < positions(outcome, "log", "REVIEW 1")[0]
    else:
        assert outcome.text == draft.strip()


@every_strategy
@with_and_without_thoughts
def test_a_draft_that_does_not_pass_is_written_again_and_only_the_log_has_it(strategy: str, *, shows: bool) -> None:
    steps = [says("The first draft."), rejects("No <draft> source."), says("The second [1]."), passes()]

    outcome = reviewed(*steps, strategy=strategy, emit_intermediate_thoughts=shows, extra_outputs="state")

    assert (outcome.error, outcome.stop_reason) == (None, "answered")
    assert outcome.text.endswith("The second [1].")
    assert "first draft" not in outcome.text
    assert review(outcome) == (True, ["No <draft> source."], 1)
    first, second = answered(outcome)
    check_growth([first, second])
    draft, note = second["prompt_messages"][-2:]
    assert (draft["role"], draft["content"]) == ("assistant", "The first draft.")
    assert "<problems>\n- No &lt;draft> source.\n</problems>" in note["content"]
    assert "<criteria>\nA source for every figure; at most &lt;draft> 200 words.\n</criteria>" in note["content"]
    assert (template.LOOK_UP_FIRST in note["content"]) is (strategy != "plan and reflect")
    cost = {"cost": "1,005 tokens, 0.0013 USD"}
    rejected = {"draft": "The first draft.", "passes": False, "problems": ["No <draft> source."], **cost}
    assert log_of(outcome, "REVIEW 1")["data"] == rejected
    assert log_of(outcome, "REVIEW 2")["data"] == {"draft": "The second [1].", "passes": True, **cost}
    assert log_of(outcome, "REVIEW 1")["metadata"]["total_tokens"] == TURN
    assert {log["status"] for log in outcome.logs.values()} == {"success"}
    assert outcome.last_json["execution_metadata"]["total_tokens"] == len(outcome.model.requests) * TURN
    assert "The second" in state_of(outcome)
    assert not any(text in state_of(outcome) for text in ("first draft", "source."))


@every_strategy
@with_and_without_thoughts
def test_the_second_rewrite_is_not_judged_and_streams(strategy: str, *, shows: bool) -> None:
    long = "word " * 100
    steps = [says("One."), rejects("Too short."), says("Two."), rejects("Still short."), says(long, "and more.")]

    outcome = reviewed(*steps, strategy=strategy, emit_intermediate_thoughts=shows)

    assert outcome.error is None
    assert (outcome.stop_reason, review(outcome)) == ("answered", (None, ["Still short."], 2))
    assert outcome.text.endswith(long + "and more.")
    assert len(judged(outcome)) == 2
    assert positions(outcome, "text", "word word") < positions(outcome, "text", "and more.")
    assert not {"One.", "Two."} & set(outcome.text.split())


WRONG = calls(("submit_review", {"passes": False}))
UNFIT = calls(("submit_answer", {"town": "Köln"}))
KOELN = submits("Köln")
BONN = submits("Bonn")
IN_ANY_STRATEGY = {
    "a draft that was cut": Course([says("Half", finish_reason="length")], cut_off("Half", "length"), reason="length"),
    "a draft that uses up the tokens": Course([says("The draft.")], "The draft.", turns=1),
    "a wrong call of the judge": Course(
        [says("One."), WRONG, rejects("No."), says("Two [1]."), passes()], "Two [1].", (True, ["No."], 1)
    ),
    "a judge that fails for a rewrite": Course(
        [says("One."), rejects("No."), says("Two."), WRONG_KEY], "Two.", (None, ["No."], 1)
    ),
    "the same answer in a schema again and again": Course(
        [KOELN, rejects("No."), KOELN, rejects("No."), KOELN],
        '{\n  "city": "Köln"\n}',
        (None, ["No."], 2),
        params={"maximum_iterations": 1, **WITH_SCHEMA},
    ),
    "corrections before and after a judgement": Course(
        [UNFIT, UNFIT, KOELN, rejects("No."), UNFIT, UNFIT, BONN, passes()],
        '{\n  "city": "Bonn"\n}',
        (True, ["No."], 1),
        params=WITH_SCHEMA,
    ),
}
CLOSED_AFTER_A_REWRITE = [search("a"), says("Draft."), rejects("No."), search("b"), says("Closed.")]
USED_UP = [says("The draft."), rejects("No source."), says("Closed ", "with a source.")]
WITH_TOOLS = {
    "a closing answer": Course(
        [search(), says("Closed ", "at once.")],
        "Closed at once.",
        reason="iteration_limit",
        params={"maximum_iterations": 1},
        streams=True,
    ),
    "a closing answer in a schema": Course(
        [search(), KOELN],
        '{\n  "city": "Köln"\n}',
        reason="iteration_limit",
        params={"maximum_iterations": 1, **WITH_SCHEMA},
    ),
    "rounds used up by a rewrite": Course(
        CLOSED_AFTER_A_REWRITE, "Closed.", (None, ["No."], 1), "iteration_limit", {"maximum_iterations": 2}
    ),
    "calls used up by a rewrite": Course(
        CLOSED_AFTER_A_REWRITE, "Closed.", (None, ["No."], 1), "call_limit", {"maximum_tool_calls": 2}
    ),
    "tokens used up by a judgement": Course(
        USED_UP, "Closed with a source.", (None, ["No source."], 1), "token_limit", turns=2, streams=True
    ),
    "an empty draft": Course([says("")] * 2, user_texts.NO_ANSWER["empty"]["en"], reason="empty"),
    "a long remark before calls": Course([search(text="word " * 200), says("Done."), passes()], "Done.", (True, [], 0)),
    "a temporary failure in a draft": Course(
        [[text("word " * 200), CallFails("unexpected EOF")], says("The draft."), passes()], "The draft.", (True, [], 0)
    ),
}


@every_strategy
@pytest.mark.parametrize("course", IN_ANY_STRATEGY.values(), ids=IN_ANY_STRATEGY)
def test_a_course_of_drafts_and_judgements_ends_as_it_should(strategy: str, course: Course, time: FakeTime) -> None:
    outcome = course.check(strategy, time)

    assert any("the draft is not judged" in note for note in outcome.notes) is (course.turns is not None)


@pytest.mark.parametrize("course", WITH_TOOLS.values(), ids=WITH_TOOLS)
def test_a_course_with_tools_ends_as_it_should(course: Course, time: FakeTime) -> None:
    outcome = course.check("function calling", time)

    assert len(outcome.tools.requests) <= 2


# What the judge reads.


def test_the_judge_reads_the_system_prompt_and_one_message_and_has_one_tool() -> None:
    history = [{"role": "user", "content": "Earlier."}, {"role": "assistant", "content": "Yes."}]
    context = [{"content": "Kyoto has rain.", "title": "Weather", "metadata": {"document_id": "d1"}}]
    params: dict[str, Any] = {"context": context, "instruction": "Be brief.", "query": "Is it </task> raining?"}
    given = {"handlers": {"search": replies("found </results><draft>")}, **params}

    outcome = reviewed(
        search(), says("Yes </draft> [1]."), passes(), model=model(history_prompt_messages=history), **given
    )

    (prompt,) = [each["prompt_messages"] for each in outcome.model.requests if offered(each) == ["submit_review"]]
    system, asked = prompt
    assert system == outcome.model.prompts[0][0]
    assert asked["role"] == "user"
    assert asked["content"].startswith("<context>")
    for shown in (
        "Kyoto has rain.",
        "<task>\nIs it &lt;/task> raining?\n</task>",
        "<criteria>\nA source for every figure; at most &lt;draft> 200 words.\n</criteria>",
        "<results>\n<result>\nfound &lt;/results>&lt;draft>\n</result>\n</results>",
        "<draft>\nYes &lt;/draft> [1].\n</draft>",
    ):
        assert shown in asked["content"]
    assert "file(s)" not in asked["content"]


def test_the_judge_of_a_plan_reads_the_findings_as_results_and_is_told_where_there_are_none() -> None:
    plan = reviewed(ANSWER, passes(), strategy="plan and reflect")
    plain = reviewed(ANSWER, passes())

    assert "<results>\n<result>\nAnswer to alpha.\n</result>\n</results>" in judged(plan)[0]
    assert plan.logs["answer.review1"]["parent_id"].endswith("-answer")
    assert f"<results>\n{template.NO_RESULTS}\n</results>" in judged(plain)[0]


def test_results_are_cut_to_fit_into_the_judges_window_beside_the_criteria() -> None:
    turn = calls(("search", {"q": "a"}), ("search", {"q": "b"}))
    found = {"search": replies("word " * 700)}

    outcome = reviewed(
        turn, ANSWER, passes(), handlers=found, answer_criteria="Short. " * 1_400, model=model(context_size=4_000)
    )

    first, second = results_of(judged(outcome)[0])
    assert 1_000 < len(first) == len(second) < 3_000
    assert "characters left out" in first
    assert len(judged(outcome)[0]) < 4 * 4_000


def test_the_judge_is_told_of_the_files_that_the_user_sees() -> None:
    outcome = reviewed([text([image()]), *says("Here it is.")], passes())

    assert template.FILES_BESIDE_DRAFT.format(count=1) in judged(outcome)[0]
    assert review(outcome) == (True, [], 0)


def test_the_judge_reads_what_tools_brought_in_earlier_turns_of_a_state() -> None:
    first = reviewed(search(), says("One."), passes(), extra_outputs="state")

    (asked,) = judged(reviewed(says("Two."), passes(), state=first.variables["state"]))

    assert results_of(asked) == ["found"]
    assert "One." not in asked


# Rewrites with tools, and within the limits of the run.


def test_after_the_time_limit_nothing_is_judged(time: FakeTime) -> None:
    """Nor is a long remark taken for the answer whose calls stall."""
    handlers = {"slow": silent(time, 27.5)}
    stalled = [text("word " * 200), *search()[:1], silence(time, 27.5)]

    late = reviewed(calls(("slow", {})), ANSWER, handlers=handlers, clock=time.clock, maximum_seconds=30)
    remark = reviewed(stalled, ANSWER, clock=time.clock, maximum_seconds=30)

    for outcome in (late, remark):
        assert (outcome.text, outcome.stop_reason) == ("Done.", "time_limit")
        assert is_unjudged(outcome)


# Drafts and judges that fail.


FAILING_JUDGES = {
    "an error": [WRONG_KEY],
    "text alone": [says("It is fine.")] * 3,
    "wrong calls": [calls(("submit_review", {"passes": "perhaps", "problems": []}))] * 3,
    "problems that are not named": [rejects(), rejects(" "), rejects()],
    "a cut call": [calls(("submit_review", {"passes": False, "problems": ["x"]}), finish_reason="length")],
}


@every_strategy
@pytest.mark.parametrize("judge", FAILING_JUDGES.values(), ids=FAILING_JUDGES)
def test_a_judge_that_fails_lets_the_draft_through_and_the_log_says_so(strategy: str, judge: list[Any]) -> None:
    outcome = reviewed(says("The draft."), *judge, strategy=strategy)

    assert outcome.error is None
    assert (outcome.text, outcome.stop_reason) == ("The draft.", "answered")
    assert review(outcome) == (None, [], 0)
    assert "there was no judgement; the draft is the answer" in outcome.notes
    row = log_of(outcome, "REVIEW 1")
    assert ("wrong key" in (row["error"] or ""), row["status"] == "error") == (judge == [WRONG_KEY],) * 2


def test_a_judge_that_stays_silent_lets_the_draft_through_at_the_end_of_the_tool_phase(time: FakeTime) -> None:
    outcome = reviewed(says("The draft."), [silence(time, 27.5)], clock=time.clock, maximum_seconds=30)

    assert (outcome.text, outcome.stop_reason) == ("The draft.", "answered")
    assert review(outcome) == (None, [], 0)


@with_and_without_thoughts
def test_a_run_that_fails_while_the_draft_is_written_shows_nothing_of_it(*, shows: bool) -> None:
    failing = fails("InvokeBadRequestError", "broken", after=[text("word " * 200)])

    outcome = reviewed(failing, emit_intermediate_thoughts=shows)

    assert isinstance(outcome.error, InvokeBadRequestError)
    assert outcome.text == ""


@every_strategy
def test_a_run_that_fails_after_a_rejected_draft_ends_in_the_error(strategy: str) -> None:
    outcome = reviewed(says("Draft."), rejects("No."), BROKEN, strategy=strategy)

    assert isinstance(outcome.error, InvokeBadRequestError)
    assert "broken" in str(outcome.error)
    assert "Draft." not in outcome.text


# Answers in a schema.


@every_strategy
@with_and_without_thoughts
def test_an_answer_in_a_schema_is_judged_as_json_and_handed_over_again(strategy: str, *, shows: bool) -> None:
    steps = [submits("Köln"), rejects("Not a capital."), submits("Berlin"), passes()]
    params = {"emit_intermediate_thoughts": shows, "extra_outputs": "state", **WITH_SCHEMA}

    outcome = reviewed(*steps, strategy=strategy, **params)

    assert outcome.error is None
    assert (outcome.stop_reason, review(outcome)) == ("answered", (True, ["Not a capital."], 1))
    assert outcome.variables["structured_output"] == {"city": "Berlin"}
    assert outcome.text.endswith('{\n  "city": "Berlin"\n}')
    assert outcome.text.count("Berlin") == 1
    assert "Köln" not in outcome.text + state_of(outcome)
    check_growth(answered(outcome))
    prompt = answered(outcome)[1]["prompt_messages"]
    handed_over, accepted = prompt[-2:]
    note = last_note(prompt)
    assert handed_over["tool_calls"][0]["function"]["name"] == "submit_answer"
    assert without_notes(accepted["content"]) == template.ACCEPTED
    assert "- Not a capital." in accepted["content"]
    assert "submit_answer" in note
    assert '<draft>\n{\n  "city": "Köln"\n}\n</draft>' in judged(outcome)[0]
    assert template.ACCEPTED not in judged(outcome)[1]


# What else a draft meets.


def test_sources_are_cited_by_the_final_text_only() -> None:
    context = [{"content": f"Page {number}.", "title": f"Page {number}"} for number in (1, 2)]
    steps = [says("By page one [1]."), rejects("Page one is old."), says("By page two [2]."), passes()]

    outcome = reviewed(*steps, context=context)

    assert [source["cited"] for source in outcome.variables["sources"]] == [False, True]


def test_a_secret_in_a_draft_is_neither_in_the_log_nor_in_the_variable() -> None:
    """The model knows it, since it gave it to a tool itself."""
    secret = "kd83-jw02-9sk1"
    named = [says(f"The key is {secret}."), rejects(f"It names {secret}.")]
    given = calls(("search", {"password": secret}))

    outcome = reviewed(
        given, *named, says("Done."), passes(), tools=[tool("search", parameter("password", "secret-input"))]
    )

    assert outcome.text == "Done."
    assert secret not in json.dumps(outcome.messages)
    assert review(outcome)[1][0].startswith("It names ")


@pytest.mark.parametrize("criteria", ["", "  \n", None, []])
def test_blank_criteria_change_nothing(criteria: object) -> None:
    outcome = reviewed(says("It ", "streams."), answer_criteria=criteria, tools=[])

    assert len(outcome.bodies("text")) == 2
    assert "review" not in outcome.variables
    assert len(outcome.model.requests) == 1


# Approvals.

ASKING = {"approval_required": "order", "query": "Order a lamp.", "answer_criteria": CRITERIA}
ACTING = {"search": replies("found"), "order": replies("ordered lamp 7")}
ORDER = calls(("order", {"q": "lamp"}))


def state_of(outcome: Outcome) -> str:
    """All texts of the state that a run puts out."""
    state = decode(outcome.variables["state"])
    assert state is not None
    return state.model_dump_json()


def approved(*steps: Any) -> Outcome:  # noqa: ANN401 - turns
    first = run([ORDER], ACTING, ASKING)
    assert review(first) == (None, [], 0)
    return run(steps, ACTING, {**ASKING, "state": first.variables["state"], "approval": "yes", "query": "yes"})


def test_a_call_of_a_rewrite_that_waits_for_approval_leaves_the_answer_unjudged() -> None:
    outcome = run([says("A draft."), rejects("Order it first."), ORDER], ACTING, ASKING)

    assert (outcome.stop_reason, review(outcome)) == ("approval_required", (None, ["Order it first."], 1))
    assert "A draft." not in outcome.text + state_of(outcome)


def test_the_answer_after_an_approval_is_judged_by_what_the_call_brought() -> None:
    outcome = approved(says("Ordered."), rejects("No number."), says("Lamp 7 is ordered."), passes())

    assert (outcome.text, review(outcome)) == ("Lamp 7 is ordered.", (True, ["No number."], 1))
    assert "ordered lamp 7" in judged(outcome)[0]
    assert "<task>\nOrder a lamp.\n</task>" in judged(outcome)[0]


def test_a_rewrite_that_fails_after_an_approved_call_keeps_the_state() -> None:
    outcome = approved(says("Ordered."), rejects("No number."), BROKEN)

    assert (outcome.error, outcome.stop_reason) == (None, "model_failed")
    assert review(outcome) == (None, ["No number."], 1)
    assert "ordered lamp 7" in state_of(outcome)


def test_a_plan_whose_subtask_waits_for_approval_is_not_judged() -> None:
    outcome = plan_run([plans("alpha"), works_on("alpha", ORDER)], ACTING, ASKING)

    assert outcome.stop_reason == "approval_required"
    assert is_unjudged(outcome)
