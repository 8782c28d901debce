"""The Knowledge Retrieval node: given segments in the recorded shape, for prompts, sources and branches."""

from pathlib import Path

from devhost.flow.turn import FlowTurn
from devhost.trace.flow import SourcesRead
from support.flow_documents import START, answer, chain, chatflow, knowledge, llm
from tests.flows.playing import Played

TURN = FlowTurn("When is the fair?", conversation_id="c1")
SEGMENTS = ["The fair is in May.", {"title": "Plan", "content": "It lasts a week.", "score": 0.5, "summary": "Length"}]
RECORDED = {
    *("_source", "dataset_id", "dataset_name", "document_id", "document_name", "data_source_type", "segment_id"),
    *("retriever_from", "score", "child_chunks", "segment_hit_count", "segment_word_count", "segment_position"),
    *("segment_index_node_hash", "doc_metadata", "position"),
}
"""What Dify's node puts into the metadata of a segment."""


def asking(folder: Path) -> Path:
    """Start, knowledge `find`, an LLM node with it as context, its answer; on an error of `find` another answer."""
    nodes = [
        START,
        knowledge("find", error_strategy="fail-branch"),
        llm(
            "ask",
            ("system", "Read this: {{#context#}}"),
            ("user", "{{#sys.query#}}"),
            context={"enabled": True, "variable_selector": ["find", "result"]},
        ),
        answer("{{#ask.text#}}"),
        answer("{{#find.error_message#}}", "failed"),
    ]
    return chatflow(folder, nodes, [*chain("start", "find", "ask", "answer"), ("find", "failed", "fail-branch")])


def test_segments_come_in_the_recorded_shape_and_are_the_context_of_a_prompt(tmp_path: Path) -> None:
    played = Played.of(asking(tmp_path), TURN, None, {"ask": [{"text": "In May."}]}, {"find": SEGMENTS})

    found = played.node("find")
    assert found.inputs == {"query": "When is the fair?"}
    first, second = found.outputs["result"]
    assert first.keys() == second.keys() == {"metadata", "title", "files", "content", "summary"}
    assert first["metadata"].keys() == RECORDED
    assert (first["content"], first["title"], first["metadata"]["position"]) == ("The fair is in May.", "Document 1", 1)
    assert (second["title"], second["metadata"]["document_name"], second["metadata"]["score"]) == ("Plan", "Plan", 0.5)
    prompt, _ = played.node("ask").process["prompts"]
    assert prompt["text"] == "Read this: The fair is in May.\nLength\nIt lasts a week."


def test_what_a_model_node_reads_becomes_the_sources_of_the_answer(tmp_path: Path) -> None:
    played = Played.of(asking(tmp_path), TURN, None, {"ask": [{"text": "In May."}]}, {"Find": SEGMENTS})

    (read,) = [event for event in played.events if isinstance(event, SourcesRead)]
    assert read.node.id == "ask"
    assert [(each["document_name"], each["position"], each["content"]) for each in read.sources] == [
        ("Document 1", 1, "The fair is in May."),
        ("Plan", 2, "It lasts a week."),
    ]


def test_a_segment_of_difys_own_output_stays_as_it_is(tmp_path: Path) -> None:
    metadata = {**dict.fromkeys(RECORDED), "_source": "knowledge", "document_name": "Plan", "page": 3, "score": 0.25}
    item: dict[str, object] = {
        "metadata": metadata,
        "title": "Plan",
        "files": [],
        "content": "A week.",
        "summary": None,
    }

    played = Played.of(asking(tmp_path), TURN, None, {"ask": [{"text": "x"}]}, {"find": [item]})

    assert played.node("find").outputs == {"result": [item]}


def test_nothing_found_is_an_empty_list_and_no_source(tmp_path: Path) -> None:
    played = Played.of(asking(tmp_path), TURN, None, {"ask": [{"text": "I do not know."}]}, {"find": []})

    assert played.node("find").outputs == {"result": []}
    assert played.end.outputs["answer"] == "I do not know."
    assert not [event for event in played.events if isinstance(event, SourcesRead)]


def test_an_empty_query_takes_the_error_branch(tmp_path: Path) -> None:
    played = Played.of(asking(tmp_path), FlowTurn("", conversation_id="c1"), None, {}, {"find": SEGMENTS})

    assert played.end.outputs["answer"] == "Query is required."
