"""What a case expects of a turn of a flow, and what is said of an expectation that fails."""

from collections.abc import Sequence
from typing import Any

import pytest

from devhost.expected import Expected
from devhost.flow.document import FlowFile
from devhost.node.outputs.outputs import NodeOutputs
from devhost.node.outputs.run import CallsMade, Run, SentToolCall
from devhost.observed import Observed
from devhost.trace.flow import FlowEnded, NodeEnded
from devhost.trace.played import PlayedTurn
from tests.devhost import ROOT

FILE = FlowFile.read(ROOT / "examples" / "workflows" / "approval.yml")
RUN = Run(
    "gpt5_function_calling",
    NodeOutputs("Two.", [], [], {}, {}, [], 0),
    None,
    [],
    [],
    0.1,
    CallsMade(
        tools={"r1": SentToolCall("search", {"words": "chairs"}), "r2": SentToolCall("send", {"to": "a@b.example"})}
    ),
)
OUTPUTS: dict[str, Any] = {
    "text": "Two documents.",
    "stop_reason": "answered",
    "pending_calls": [],
    "structured_output": {"topic": "billing", "sure": True, "tags": ["a", "b"]},
    "none": None,
}
NODES = [
    NodeEnded("1", FILE.nodes["start"], "succeeded", {}, {}, 0.0),
    NodeEnded("2", FILE.nodes["agent"], "succeeded", {}, OUTPUTS, 0.1, run=RUN),
]
ENDED = FlowEnded("succeeded", {"answer": "Two documents.", "files": []}, conversation={"state": "s.1"})


def failures(expect: dict[str, Any], nodes: Sequence[NodeEnded] = NODES, ended: FlowEnded = ENDED) -> list[str]:
    turn = PlayedTurn(began=0.0, nodes=list(nodes), ended=ended)
    found = Expected.model_validate(expect).checks(Observed.of_turns([turn]), FILE.node)
    return [check.sentence for check in found if not check.passed]


@pytest.mark.parametrize(
    "expect",
    [
        {},
        {"status": "succeeded", "error": ""},
        {"answer": "Two documents."},
        {"answer": {"contains": ["Two", "documents"], "lacks": "three", "matches": r"^T\w+ d"}},
        {"outputs": {"files": []}},
        {"conversation": {"state": {"matches": "^s"}}},
        {"ran": ["start", "Agent"], "not_run": "Clear the state"},
        {"nodes": {"agent": {"status": ["failed", "succeeded"], "outputs": {"stop_reason": "answered"}}}},
        {"nodes": {"Agent": {"outputs": {"structured_output.tags.1": "b", "structured_output.sure": True}}}},
        {"nodes": {"agent": {"outputs": {"none": None, "structured_output": {"contains": '"billing"'}}}}},
        {"nodes": {"agent": {"outputs": {"structured_output": {"json_schema": {"required": ["topic"]}}}}}},
        {"nodes": {"agent": {"calls": {"exactly": [{"search": {"words": "chairs"}}, "send"], "never": "delete"}}}},
    ],
    ids=str,
)
def test_a_turn_that_fits_fails_no_expectation(expect: dict[str, Any]) -> None:
    assert failures(expect) == []


@pytest.mark.parametrize(
    ("expect", "sentence"),
    [
        ({"status": "failed"}, "status: expected failed; found succeeded"),
        ({"answer": "Three."}, "answer equals: expected Three.; found Two documents."),
        ({"answer": {"contains": "three"}}, "answer contains: expected three; found Two documents."),
        ({"outputs": {"total": 1}}, "output total: expected a value; found nothing; there are: answer, files"),
        ({"conversation": {"state": "s"}}, "conversation variable state equals: expected s; found s.1"),
        ({"ran": "clear"}, "ran: expected clear; found start, agent"),
        ({"not_run": "agent"}, "not_run: expected agent; found start, agent"),
        ({"nodes": {"clear": {}}}, "node 'Clear the state' (clear): ran: expected it runs; found start, agent"),
        (
            {"nodes": {"agent": {"outputs": {"structured_output.topic": "login"}}}},
            "node 'Agent' (agent): output structured_output.topic equals: expected login; found billing",
        ),
        (
            {"nodes": {"agent": {"outputs": {"structured_output.sure": 1}}}},
            "node 'Agent' (agent): output structured_output.sure equals: expected 1; found true",
        ),
        (
            {"nodes": {"agent": {"outputs": {"pending_calls.0.tool": "send"}}}},
            "node 'Agent' (agent): output pending_calls.0.tool: expected a value; found nothing; there are: none",
        ),
        (
            {"nodes": {"agent": {"outputs": {"none": {"equals": "x"}}}}},
            "node 'Agent' (agent): output none equals: expected \"x\"; found null",
        ),
        (
            {"nodes": {"agent": {"calls": {"never": "search"}}}},
            'node \'Agent\' (agent): calls never: expected search; found search({"words": "chairs"})',
        ),
    ],
)
def test_a_failed_expectation_says_what_was_expected_what_came_and_where(expect: dict[str, Any], sentence: str) -> None:
    assert failures(expect) == [sentence]


def test_a_turn_that_fails_is_expected_by_its_status_alone() -> None:
    failed = FlowEnded("failed", {}, "the key was revoked")

    assert failures({}, [], failed) == [
        "status: expected succeeded or partial-succeeded; found failed (the key was revoked)"
    ]
    assert failures({"status": "failed", "error": {"contains": "revoked"}}, [], failed) == []


def test_of_several_runs_of_a_node_the_last_one_counts_and_the_calls_of_all() -> None:
    again = NodeEnded("3", FILE.nodes["agent"], "exception", {}, {"text": "x"}, 0.1, "no key", run=RUN)
    expect = {"status": "exception", "error": "no key", "calls": {"exactly": ["search", "send", "search", "send"]}}

    assert failures({"nodes": {"agent": expect}}, [*NODES, again]) == []
