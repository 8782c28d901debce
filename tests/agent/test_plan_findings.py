"""Findings that together exceed the window."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.text.texts import cut_evenly
from tests.agent.plans import ANSWER, answers, completed, of_answer, opening, plan_run, plans, works_on
from tests.support.host import Step, When
from tests.support.wire import fails, model, says

LONG = "word " * 2_000
TOO_LONG = fails("InvokeBadRequestError", "This model's maximum context length is 8192 tokens")


def long_findings(*names: str, short: str) -> list[Step]:
    return [
        plans(*names, short),
        *(works_on(name, says(f"{name}: {LONG}")) for name in names),
        works_on(short, says("A short finding.")),
        *(completed(name) for name in (*names, short)),
    ]


def findings_in(request: dict[str, object]) -> list[str]:
    return [part.partition("\n")[2].partition("\n</finding>")[0] for part in opening(request).split("<finding ")[1:]]


def test_findings_that_exceed_the_window_are_cut_evenly_and_answered() -> None:
    steps = [*long_findings("alpha", "beta", short="gamma"), answers()]

    outcome = plan_run(steps, params={"model": model(context_size=4_000)})

    assert (outcome.text, outcome.stop_reason) == (ANSWER, "answered")
    first, second, third = findings_in(of_answer(outcome)[0])
    assert len(first) == pytest.approx(len(second), abs=5)
    assert 3_000 < len(first) < len(LONG)
    assert first.startswith("alpha: word")
    assert third == "A short finding."
    assert any("cut evenly" in note for note in outcome.notes)
    assert len(outcome.variables["subtasks"][0]["answer"]) > len(LONG) - 10


def test_findings_that_the_provider_calls_too_long_are_cut_and_asked_for_once_more() -> None:
    steps = [*long_findings("alpha", "beta", short="gamma"), When("<findings>", TOO_LONG), answers()]

    outcome = plan_run(steps, params={"model": model(context_size=None)})

    assert outcome.error is None
    assert (outcome.text, outcome.stop_reason) == (ANSWER, "answered")
    whole, cut = of_answer(outcome)
    assert len(findings_in(whole)[0]) > len(LONG) - 10
    assert 0.4 * len(LONG) < len(findings_in(cut)[0]) < 0.6 * len(LONG)
    assert {log["status"] for key, log in outcome.logs.items() if key.startswith("answer.round2")} == {"success"}


def test_findings_that_stay_too_long_are_one_error() -> None:
    steps = [*long_findings("alpha", short="gamma"), *[When("<findings>", TOO_LONG)] * 3]

    outcome = plan_run(steps)

    assert type(outcome.error).__name__ == "InvokeBadRequestError"
    assert "too long for the model" in str(outcome.error)
    assert outcome.logs["answer"]["status"] == "error"


@given(st.lists(st.text(max_size=3_000), max_size=6), st.integers(0, 20_000))
def test_long_texts_are_cut_to_the_limit_together_and_short_ones_stay_whole(texts: list[str], most: int) -> None:
    cut = cut_evenly(texts, most, len)

    assert len(cut) == len(texts)
    if sum(map(len, texts)) <= most:
        assert cut == texts
    else:
        assert sum(map(len, cut)) <= max(most, 200 * len(texts))
    for text, shorter in zip(texts, cut, strict=True):
        assert shorter == text or len(shorter) <= max(200, len(text))
