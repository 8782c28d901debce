"""Each expectation of a case, on both sides of its border."""

import json
from dataclasses import replace
from typing import Any

import pytest

from devhost.evaluation.runs import judged
from devhost.expected import Expected
from devhost.models.scripted.model import ScriptedModel
from devhost.node.outputs.run import SentToolCall
from devhost.observed import Observed

SEEN = Observed(
    text="Files stay 30 days [1].\nThen they are gone.",
    calls=(
        SentToolCall("search", {"terms": "trash", "language": "en"}),
        SentToolCall("look", {}, "ValueError: broke"),
        SentToolCall("search", {"terms": "bin"}),
    ),
    stop_reason="answered",
    sources=("Guide (en/user-guide.md)", "Past answer (E-2011)"),
    rounds=2,
    tokens=1000,
    price="0.02",
    seconds=1.5,
)
SIMILAR = "Files stay for thirty days; then, they are gone."
OBJECT = replace(SEEN, text='{"topic": "login"}')
SCHEMA = {"type": "object", "properties": {"topic": {"enum": ["login"]}}, "required": ["topic"]}


def failed(expected: dict[str, Any], observed: Observed = SEEN) -> list[str]:
    return [check.name for check in Expected.model_validate(expected).checks(observed) if not check.passed]


@pytest.mark.parametrize(
    ("fits", "misfits"),
    [
        ({"text": {"contains": ["30 days", "gone"]}}, {"text": {"contains": "31 days"}}),
        ({"text": {"lacks": "31 days"}}, {"text": {"lacks": ["30 days"]}}),
        ({"text": {"matches": r"^Then .* gone\.$"}}, {"text": {"matches": r"\bbin\b"}}),
        ({"text": {"equals": SEEN.text + "\n"}}, {"text": {"equals": "Files stay 30 days [1]."}}),
        (
            {"calls": {"exactly": [{"search": {"terms": "trash"}}, "look", "search"]}},
            {"calls": {"exactly": ["search", "look"]}},
        ),
        ({"calls": {"in_order": ["search", "search"]}}, {"calls": {"in_order": ["look", "look"]}}),
        ({"calls": {"in_order": ["look", {"search": {"terms": "bin"}}]}}, {"calls": {"in_order": ["look", "x"]}}),
        (
            {"calls": {"at_least": ["search", {"search": {"terms": "trash"}}]}},
            {"calls": {"at_least": ["search", "search", "search"]}},
        ),
        (
            {"calls": {"never": [{"search": {"language": "ja"}}]}},
            {"calls": {"never": [{"search": {"language": "en"}}]}},
        ),
        ({"calls": {"at_most": ["look", "search", "search", "x"]}}, {"calls": {"at_most": ["look", "search"]}}),
        ({"calls": {"exactly": 3}}, {"calls": {"exactly": 2}}),
        ({"calls": {"at_least": 3, "at_most": 3}}, {"calls": {"at_least": 4}}),
        ({"calls": 3}, {"calls": 2}),
        ({"failed_calls": 1}, {"failed_calls": 0}),
        ({"failed_calls": {"exactly": 1}}, {"failed_calls": {"exactly": 0}}),
        ({"failed_calls": {"exactly": ["look"]}}, {"failed_calls": {"exactly": ["search"]}}),
        ({"failed_calls": {"at_least": 1, "at_most": ["look"]}}, {"failed_calls": {"at_most": ["search"]}}),
        ({"stop_reason": ["time_limit", "answered"]}, {"stop_reason": "time_limit"}),
        ({"sources": {"cited": ["E-2011", "Guide"], "at_least": 2}}, {"sources": {"cited": "E-2012"}}),
        ({"sources": {"at_most": 2}}, {"sources": {"at_most": 1}}),
        ({"rounds": 2}, {"rounds": 1}),
        ({"rounds": {"at_least": 2}}, {"rounds": {"at_least": 3}}),
        ({"tokens": 1000}, {"tokens": 999}),
        ({"seconds": {"at_least": 1.5, "at_most": 1.5}}, {"seconds": 1.4}),
        ({"price": 0.02}, {"price": {"at_most": 0.019}}),
        ({"price": {"at_least": 0.02}}, {"price": {"at_least": 0.021}}),
        ({"similar": "files stay 30 days, then they are gone!"}, {"similar": "Nothing is kept, ever."}),
        ({"similar": {"to": SIMILAR, "at_least": 0.6}}, {"similar": {"to": SIMILAR, "at_least": 0.9}}),
    ],
    ids=json.dumps,
)
def test_each_expectation_passes_and_fails(fits: dict[str, Any], misfits: dict[str, Any]) -> None:
    assert failed(fits) == []
    assert len(failed(misfits)) == 1


def test_a_json_answer_is_checked_by_its_schema() -> None:
    assert failed({"text": {"json_schema": SCHEMA}}, OBJECT) == []
    assert failed({"text": {"json_schema": SCHEMA}}, replace(OBJECT, text='{"topic": "x"}')) != []
    assert failed({"text": {"json_schema": SCHEMA}}, SEEN) == ["text fits the JSON Schema"]


def test_a_price_that_is_not_known_is_not_taken_for_a_low_one() -> None:
    (check,) = Expected.model_validate({"price": 1}).checks(replace(SEEN, price="0"))
    assert check.found == "the price of the model is unknown"


def test_calls_that_failed_say_why() -> None:
    (check,) = Expected.model_validate({"failed_calls": 0}).checks(SEEN)
    assert check.sentence == "failed_calls: expected at most 0; found 1: look: ValueError: broke"


def test_a_similarity_is_a_score() -> None:
    (check,) = Expected.model_validate({"similar": SEEN.text}).checks(SEEN)
    assert check.score == 1.0


def test_a_call_serves_one_expectation_only() -> None:
    """The wide one must not take the only call that fits the narrow one."""
    wide_first = {"calls": {"at_least": ["search", {"search": {"terms": "trash"}}, {"search": {"terms": "bin"}}]}}
    assert failed(wide_first) == ["calls at least"]


def test_a_run_that_failed_fits_nothing() -> None:
    assert failed({}, replace(SEEN, error="ValueError: broke")) == ["status"]


@pytest.mark.parametrize(
    ("turn", "found"),
    [
        ({"text": '{"passed": true, "reason": "It says so."}'}, ""),
        ({"text": '```json\n{"passed": false, "reason": "It is rude."}\n```'}, "It is rude."),
        ({"text": '{"passed": "yes"}'}, "no judgement"),
        ({"error": {"type": "InvokeRateLimitError", "message": "slow"}}, "no judgement: InvokeRateLimitError: slow"),
    ],
)
def test_a_judge_decides_or_the_check_fails(turn: dict[str, Any], found: str) -> None:
    check = judged(ScriptedModel.of([turn]), "Be polite.", "Hi?", "Hi!").check
    assert check.passed == (not found)
    assert found in check.found
    assert check.remark.startswith("a scripted judge")
