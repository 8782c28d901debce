"""The drawing of a flow: no two nodes overlap, ways lead to the right, and the path that was taken is marked."""

from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from devhost.page.graph import Drawing, drawing
from devhost.page.layout import Edge, layered
from devhost.page.page import render_page
from devhost.trace import flow
from devhost.trace.lines import read_trace
from devhost.trace.played import PlayedTurn
from support.tracing import tracing
from test_flow_view import END, FACTS, ran

NAMES = [f"n{number}" for number in range(9)]
SIZES = st.tuples(st.sampled_from([172.0, 400.0]), st.sampled_from([46.0, 130.0]))
EDGES = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=20)


@given(st.lists(SIZES, min_size=9, max_size=9), EDGES)
def test_no_two_nodes_overlap_and_every_way_leads_to_the_right(
    sizes: list[tuple[float, float]], edges: list[Edge]
) -> None:
    boxes = dict(zip(NAMES, sizes, strict=True))
    layout = layered(boxes, edges)

    for one, other in combinations(NAMES, 2):
        x, y = layout.places[one]
        other_x, other_y = layout.places[other]
        beside = x + boxes[one][0] <= other_x or other_x + boxes[other][0] <= x
        below = y + boxes[one][1] <= other_y or other_y + boxes[other][1] <= y
        assert beside or below, (one, other)
    for name, (x, y) in layout.places.items():
        assert 0 <= x <= layout.width - boxes[name][0] + 1e-6
        assert -1e-6 <= y <= layout.height - boxes[name][1] + 1e-6
    for route in layout.routes.values():
        assert all(before[0] <= after[0] for before, after in pairwise(route))


@given(EDGES)
def test_only_ways_that_lead_back_are_left_out(edges: list[Edge]) -> None:
    layout = layered(dict.fromkeys(NAMES, (172.0, 46.0)), edges)

    forward = [(source, target) for source, target in edges if source < target]
    if len(forward) == len(edges):
        assert set(layout.routes) == set(edges)
    assert set(layout.routes) <= set(edges)


def graph(*edges: tuple[str, str, str], **containers: str) -> flow.FlowGraph:
    names = dict.fromkeys(name for edge in edges for name in edge[:2])
    nodes = [flow.GraphNode(name, "code", name.title(), containers.get(name)) for name in names]
    return flow.FlowGraph(tuple(nodes), tuple(flow.GraphEdge(*edge) for edge in edges))


def drawn(of: flow.FlowGraph, *events: flow.FlowEvent) -> Drawing:
    turn = PlayedTurn(began=0.0)
    for event in events:
        turn.add(event, 0.0)
    return drawing(of, {each: f"node-{each}" for each in turn.rows}, list(turn.rows.values()))


def node(name: str, kind: str = "code", container: str | None = None) -> flow.FlowNode:
    return flow.FlowNode(name, kind, name.title(), {}, container)


BRANCHES = graph(("start", "ask", "source"), ("ask", "sent", "yes"), ("ask", "kept", "no"), ("kept", "sent", "source"))


def taken(found: Drawing) -> int:
    return sum(edge.is_taken for edge in found.edges)


def test_the_way_behind_a_button_is_taken_and_the_other_is_not_although_both_nodes_ran() -> None:
    asked = ran("2", node("ask", "human-input"), outputs={"__action_id": "no"})
    found = drawn(BRANCHES, *ran("1", node("start")), *asked, *ran("3", node("kept")), *ran("4", node("sent")))

    assert taken(found) == 3
    assert {each.title: each.state for each in found.nodes} == dict.fromkeys(("Start", "Ask", "Sent", "Kept"), "ran")


def test_of_a_node_that_failed_only_its_error_branch_is_taken() -> None:
    of = graph(("a", "b", "source"), ("a", "c", "fail-branch"))
    failing = replace(node("a"), data={"error_strategy": "fail-branch"})
    found = drawn(of, *ran("1", failing, status="exception", error="no"), *ran("2", node("c")))

    assert taken(found) == 1
    assert [(each.words, each.mark, each.anchor) for each in found.nodes] == [
        ("A, code: failed", "✗", "node-1"),
        ("B, code: did not run", "", ""),
        ("C, code: ran", "✓", "node-2"),
    ]
    assert found.description == "3 nodes. Ran: A, C. Did not run: B."


def test_what_is_in_a_loop_stands_in_its_frame_with_the_number_of_its_rounds() -> None:
    of = graph(("a", "loop", "source"), ("one", "two", "source"), one="loop", two="loop")
    begun, ended = ran("1", node("loop", "loop"))
    rounds = [event for number in (1, 2) for event in ran(f"r{number}", node("one", container="loop"), number)]
    found = {each.title: each for each in drawn(of, begun, *rounds, ended).nodes}

    frame = found["Loop"]
    inside = found["One"]
    assert frame.is_container
    assert frame.place[0] < inside.place[0]
    assert inside.place[1] + inside.size[1] < frame.place[1] + frame.size[1]
    assert (inside.words, inside.mark) == ("One, code: ran, 2 times", "✓ × 2")


def test_the_page_has_the_drawing_in_words_and_of_an_older_trace_none(tmp_path: Path) -> None:
    for name, of in (("new", BRANCHES), ("old", None)):
        with tracing(tmp_path / f"{name}.jsonl", command="flow") as writer:
            writer.flow(replace(FACTS, graph=of))
            for event in (*ran("1", node("start")), END):
                assert isinstance(event, flow.TurnEvent)
                writer.flow(event)
    page = render_page(read_trace(tmp_path / "new.jsonl"))

    assert '<desc id="graph-1-words">4 nodes. Ran: Start. Did not run: Ask, Sent, Kept.</desc>' in page
    assert '<a href="#node-1-1" aria-label="Start, code: ran">' in page
    assert '<g role="img" aria-label="Kept, code: did not run">' in page
    assert "<svg" not in render_page(read_trace(tmp_path / "old.jsonl"))
