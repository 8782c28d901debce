"""Segments of knowledge in a script, and what a node finds. tests/flows plays the node."""

import pytest

from devhost.errors import ParameterError
from devhost.flow.script import FlowScript, retrieved
from devhost.protocol.wire import JsonObject
from devhost.trace.flow import FlowNode

NODE = FlowNode("1718", "knowledge-retrieval", "House rules", {})
RULES = ["No dogs.", {"content": "No smoking.", "title": "Rules", "metadata": {"page": 2}}]


def found(name: str) -> list[JsonObject]:
    return list(retrieved(FlowScript.model_validate({"knowledge": {name: RULES}}).knowledge, NODE))


@pytest.mark.parametrize("name", ["1718", "House rules"])
def test_segments_are_found_by_id_or_title(name: str) -> None:
    first, second = found(name)

    assert (first["content"], first["title"], first["metadata"]["score"]) == ("No dogs.", "Document 1", None)
    assert (second["title"], second["metadata"]["page"], second["metadata"]["position"]) == ("Rules", 2, 2)


def test_two_runs_find_the_same_ids_and_two_documents_have_their_own() -> None:
    first, second = found("1718")

    assert found("1718") == [first, second]
    for field in ("document_id", "segment_id"):
        assert first["metadata"][field] != second["metadata"][field]
    assert first["metadata"]["dataset_id"] == second["metadata"]["dataset_id"]


def test_a_node_for_which_nothing_is_given_is_named() -> None:
    with pytest.raises(ParameterError, match=r"no segments are given for node 'House rules' \(1718\)"):
        retrieved({"find": ()}, NODE)
