"""What the node shows when a run fails: one sentence, whatever failed."""

import json
import logging
from typing import Any

import pytest

from internal.errors import ModelCallFailed, node_error
from internal.host.failures import FailureKind
from support.recordings import NODE, recorded
from tests.support.clock import FakeTime
from tests.support.host import CallFails
from tests.support.node import KNOWN_TO_DIFY, error_body, node_shows
from tests.support.run import run
from tests.support.scenes import text
from tests.support.wire import MODEL, fails, model, replies, tool

NAMED = f"model {MODEL} (openai)"


def test_the_rule_of_the_node_is_difys() -> None:
    rows = [row for row in recorded(NODE, "node_error") if "raised" in row]

    assert [node_shows(row["raised"]) for row in rows] == [row["node_shows"] for row in rows]


BLIND = {"model": model(features=["vision"], mode="completion")}
SKILL = "---\nname: tone\n---\nBe kind."
RESTARTS = 'invoke llm model failed: Post "http://10.0.0.2:5001/inner/api/invoke/llm": EOF'
CUT = "read llm model failed: unexpected EOF\nfailed to read system header"
ENDINGS: list[tuple[list[Any], dict[str, Any], str, str]] = [
    ([], {"query": " "}, "InvokeBadRequestError", "parameter 'query': "),
    ([], {"model": {}}, "InvokeBadRequestError", "parameter 'model': no model is chosen"),
    ([], {**BLIND, "tools": [tool("x")]}, "InvokeBadRequestError", f"parameter 'model': {MODEL} completes texts and "),
    *(
        ([], {**BLIND, **needs}, "InvokeBadRequestError", f"parameter 'model': {MODEL} completes texts and ")
        for needs in ({"answer_schema": {"type": "object"}}, {"answer_criteria": "Short."}, {"skills": SKILL})
    ),
    ([], {"query": "q" * 5_000_000}, "InvokeBadRequestError", "the prompt has 5,0"),
    ([[CallFails(RESTARTS)]] * 3, {}, "InvokeConnectionError", f"The connection to the {NAMED} failed. "),
    ([[text("Half"), CallFails(CUT)]], {}, "InvokeConnectionError", f"The connection to the {NAMED} failed. "),
    ([fails("OtherError", "that did it")], {}, "InvokeServerUnavailableError", f"The {NAMED} failed: that did it."),
    *(
        ([fails(raised, "no such word")] * 3, {}, raised, sentence)
        for raised, sentence in {
            "InvokeRateLimitError": f"The {NAMED} has reached its rate limit or quota. ",
            "InvokeAuthorizationError": f"The provider of the {NAMED} refused its credentials. ",
            "InvokeBadRequestError": f"The {NAMED} refused the request: no such word.",
            "InvokeServerUnavailableError": f"The {NAMED} is unavailable at the moment. ",
        }.items()
    ),
]


@pytest.mark.parametrize(("steps", "params", "error_type", "sentence"), ENDINGS, ids=[each[-1] for each in ENDINGS])
def test_the_node_shows_one_sentence(steps: list[Any], params: dict[str, Any], error_type: str, sentence: str) -> None:
    outcome = run(steps, {}, params, clock=FakeTime().clock, expect_all_steps=False)

    assert outcome.error is not None
    body = error_body(outcome.error)
    assert body["error_type"] == error_type
    assert node_shows(body).startswith(sentence)
    assert "\n" not in node_shows(body)
    assert len(node_shows(body)) < 250
    assert steps or not outcome.model.requests
    assert outcome.error.__cause__ is None
    assert outcome.error.__context__ is None


TRACEBACK = """Traceback (most recent call last):
  File "/app/plugins/openai/llm.py", line 12, in _invoke
    raise KeyError(model)
openai.NotFoundError: Error code: 404 - {'error': {'message': "The model `gpt-9` of org-Abc12 isn't there", 'code': 1}}
"""
SAID = "The model `gpt-9` isn't there"
WORDED = {
    "a traceback": (TRACEBACK, f"was not found: {SAID}."),
    "a traceback as JSON": (json.dumps({"error": TRACEBACK}), f"was not found: {SAID}."),
    "a traceback in Dify's wrapping": (
        "request failed: PluginInvokeError: " + json.dumps({"error_type": "X", "message": TRACEBACK}),
        f"was not found: {SAID}.",
    ),
    "a traceback on one line": (" ".join(TRACEBACK.split()), f"was not found: {SAID}."),
    "a traceback without its end": (
        TRACEBACK.partition("openai.Not")[0],
        "failed: the log of the run has the details.",
    ),
    "a directory": ("cannot read /app/plugins/openai/models.yaml", "failed: cannot read models.yaml."),
    "an organisation": (
        "[openai] Bad Request Error, 400 - {'error': {'message': 'No in organization org-x1 (id: req_ab)'}}",
        "refused the request: No.",
    ),
}
SAYING = {
    "quota": (
        "[compatible] Error: API request failed with status code 402: {'error': {'message': 'Insufficient Balance'}}",
        "InvokeRateLimitError",
        f"The quota or the balance for the {NAMED} is used up. Check plan and billing at its provider.",
    ),
    "content filter": (
        "[compatible] Error: API request failed with status code 400: {'error': {'message': 'Content Exists Risk'}}",
        "InvokeBadRequestError",
        f"The content filter of the {NAMED} refused the request. Ask in other words, or check what the tools returned.",
    ),
}


@pytest.mark.parametrize(("message", "ending"), WORDED.values(), ids=WORDED)
def test_the_providers_words_become_one_sentence_for_users_and_the_log_has_the_details(
    message: str, ending: str
) -> None:
    outcome = run([[CallFails(message)]])

    assert outcome.error is not None
    assert node_shows(error_body(outcome.error)) == f"The {NAMED} {ending}"
    assert outcome.logs["round1"]["error"] == outcome.logs["round1.model"]["error"] != str(outcome.error)


@pytest.mark.parametrize(("message", "error_type", "sentence"), SAYING.values(), ids=SAYING)
def test_a_failure_that_waiting_does_not_change_says_what_to_do(message: str, error_type: str, sentence: str) -> None:
    outcome = run([[CallFails(message)]])

    assert outcome.error is not None
    body = error_body(outcome.error)
    assert (body["error_type"], node_shows(body)) == (error_type, sentence)


def test_every_kind_of_failure_leaves_as_an_error_that_dify_knows() -> None:
    raised = {type(node_error(ModelCallFailed("x", kind, "y"))).__name__ for kind in FailureKind}
    assert raised <= set(KNOWN_TO_DIFY)


def test_a_defect_is_named_by_its_type_and_its_traceback_stays_in_the_plugins_own_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "hunter2-hunter2"

    def breaks(_: object) -> None:
        try:
            dict[str, str]()[secret]
        except KeyError as failure:
            raise ZeroDivisionError(secret) from failure

    monkeypatch.setattr("internal.agent.build_system_instruction", lambda *_, **__: breaks(None))

    with caplog.at_level(logging.ERROR, logger="internal"):
        outcome = run([], {"search": replies("found")})

    assert outcome.error is not None
    body = error_body(outcome.error)
    assert node_shows(body) == "internal error: ZeroDivisionError"
    assert body["error_type"] == "InvokeServerUnavailableError"
    assert "breaks" not in json.dumps(body)
    (logged,) = [record.getMessage() for record in caplog.records]
    assert "ZeroDivisionError at" in logged
    assert "KeyError at" in logged
    assert ", in breaks" in logged
    assert "hunter2" not in logged
