"""Groups of the timeline: which are open at first, and what their line says of what is in them."""

from collections.abc import Sequence

from devhost.page.contents import DEEPEST, FEW_ROWS, Axis, every, hint, open_groups
from devhost.page.page import page_environment
from devhost.trace.runs import Call
from devhost.trace.timeline import Span


def span(label: str, *children: Span, status: str = "success", calls: Sequence[Call] = ()) -> Span:
    return Span(label, label, status, 0, 1, children=list(children), calls=list(calls))


def rounds(count: int, name: str = "round") -> list[Span]:
    return [span(f"{name} {number}", span("call")) for number in range(1, count + 1)]


def opened(spans: Sequence[Span]) -> list[str]:
    found = open_groups(spans)
    return [each.label for each in every(spans) if id(each) in found]


def test_all_groups_of_a_short_run_are_open() -> None:
    assert opened([*rounds(3), span("finished")]) == ["round 1", "round 2", "round 3"]


def test_in_a_long_run_the_last_group_is_open_and_every_group_with_a_failure_or_an_open_end() -> None:
    run = [
        span("subtask 1", *rounds(30, "a")),
        span("subtask 2", *rounds(30, "b")),
        span("subtask 3", *rounds(2, "c")),
        span("finished"),
    ]
    run[0].children[6].children[0].status = "error"
    run[1].children[2].children[0].status = "start"
    assert sum(1 for _ in every(run)) > FEW_ROWS
    assert opened(run) == ["subtask 1", "a 7", "subtask 2", "b 3", "subtask 3", "c 2"]


def test_the_line_of_a_group_says_what_is_in_it() -> None:
    model, tool = (Call("p", kind, {}, 0.0) for kind in ("llm", "tool"))
    inner = span("round", span("model", calls=[model, model]), span("tool", calls=[tool], status="error"))
    assert hint(span("subtask", inner)) == "2 model calls, 1 tool call, 1 failed"
    assert hint(span("round", span("note"))) == ""


class Row:
    """What the macro asks of a run."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.axis = Axis(0, 1)
        self.anchors = {id(each): f"row-{number}" for number, each in enumerate(every(spans))}
        self.prompt_changes: dict[str, object] = {}

    def is_open(self, each: Span) -> bool:
        return bool(each.children)


def rows(root: Span) -> str:
    template = page_environment().from_string(
        '{% from "row.html.j2" import row with context %}{{ row(root, 0, shown) }}'
    )
    return template.render(root=root, shown=Row([root]))


def test_children_stand_inside_their_group() -> None:
    html = rows(span("outer", span("inner", span("leaf")), span("beside")))
    inside = html.partition('<div class="children">')[2]
    assert inside.index("inner") < inside.index("leaf") < inside.index("beside")
    assert html.count('<div class="children">') == 2


def test_groups_that_are_too_deep_for_a_browser_stand_side_by_side() -> None:
    deepest = span("leaf")
    for _ in range(3 * DEEPEST):
        deepest = span("group", deepest)
    html = rows(deepest)
    assert html.count('class="span ') == 3 * DEEPEST + 1
    assert html.count('<div class="children">') == html.count('" open>') == DEEPEST + 1
