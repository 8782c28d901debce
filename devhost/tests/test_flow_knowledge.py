"""Segments of knowledge from a file, and what a node finds. tests/flows plays the node."""

from pathlib import Path

import pytest

from devhost.errors import ParameterError
from devhost.flow.script import read_segments, retrieved
from devhost.trace.flow import FlowNode

NODE = FlowNode("1718", "knowledge-retrieval", "House rules", {})


@pytest.mark.parametrize("name", ["1718", "House rules"])
def test_segments_of_a_file_are_found_by_id_or_title(tmp_path: Path, name: str) -> None:
    file = tmp_path / "segments.yaml"
    file.write_text("- No dogs.\n- {content: No smoking., title: Rules, metadata: {page: 2}}\n")

    first, second = retrieved({name: read_segments(file)}, NODE)

    assert (first["content"], first["title"], first["metadata"]["score"]) == ("No dogs.", "Document 1", None)
    assert (second["title"], second["metadata"]["page"], second["metadata"]["position"]) == ("Rules", 2, 2)


def test_two_runs_find_the_same_ids_and_two_documents_have_their_own(tmp_path: Path) -> None:
    file = tmp_path / "segments.json"
    file.write_text('["No dogs.", "No smoking."]')

    first, second = retrieved({"1718": read_segments(file)}, NODE)

    assert retrieved({"1718": read_segments(file)}, NODE) == [first, second]
    for field in ("document_id", "segment_id", "segment_index_node_hash"):
        assert first["metadata"][field] != second["metadata"][field]
    assert first["metadata"]["dataset_id"] == second["metadata"]["dataset_id"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("content: No dogs.", "is not a list of segments, each a text or {content: …, title: …}"),
        ("- {title: Rules}", "[0].content: Field required"),
        ("- {content: No dogs., scroe: 1}", "[0]: unknown key 'scroe'"),
        ("- [", "is not valid YAML"),
    ],
)
def test_a_file_that_is_not_a_list_of_segments_is_refused(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "segments.yaml"
    file.write_text(text)

    with pytest.raises(ParameterError) as raised:
        read_segments(file)

    assert str(file) in str(raised.value)
    assert says in str(raised.value)


def test_a_node_for_which_nothing_is_given_is_named() -> None:
    with pytest.raises(ParameterError, match=r"no segments are given for node 'House rules' \(1718\)"):
        retrieved({"find": ()}, NODE)
