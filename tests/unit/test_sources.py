"""Sources that the answer may cite: read, numbered, escaped, cited."""

import json
import re
from typing import Any

import pytest
from dify_plugin.entities.tool import ToolInvokeMessage
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from internal.sources import (
    RESOURCE_FIELDS,
    NumberedSources,
    Source,
    cited_numbers,
    context_block,
    read_context,
    source_list,
)
from tests.support.generators import any_text, finite_numbers, joined, text_from_the_host
from tests.support.wire import KNOWLEDGE


def knowledge(metadata: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    return {**KNOWLEDGE, **changes, "metadata": {**KNOWLEDGE["metadata"], **(metadata or {})}}


def only(context: object) -> Source:
    (source,) = read_context(context)
    return source


def block(*contents: str, title: str = "T") -> str:
    return context_block(enumerate((Source(title, content) for content in contents), start=1))


def test_a_knowledge_result_is_read_with_all_that_dify_knows_of_it() -> None:
    known = {name: value for name, value in KNOWLEDGE["metadata"].items() if name in RESOURCE_FIELDS}
    renamed = {"hit_count": 3, "word_count": 12, "index_node_hash": "abc"}

    assert only([KNOWLEDGE]) == Source("Leave", "30 days.", {**known, **renamed, "content": "30 days."})


def test_the_resource_fields_are_the_sdks_but_for_the_position() -> None:
    assert {*RESOURCE_FIELDS, "position"} == ToolInvokeMessage.RetrieverResourceMessage.model_fields[
        "retriever_resources"
    ].annotation.__args__[0].model_fields.keys()  # type: ignore[union-attr] # it is list[RetrieverResource]


CONTENTS: list[tuple[object, list[str]]] = [
    *((nothing, []) for nothing in (None, "", " \n", [], [None], ["", {}], {}, {"content": None, "metadata": None})),
    ("plain", ["plain"]),
    (["a", ["b", "", {"content": "c"}]], ["a", "b", "c"]),
    ({"city": "Köln", "n": 1}, ['{"city": "Köln", "n": 1}']),
    (5, ["5"]),
    ({"content": {"nested": ["x"]}}, ['{"nested": ["x"]}']),
]


@pytest.mark.parametrize(("context", "contents"), CONTENTS, ids=repr)
def test_context_is_a_text_an_object_or_a_list_of_either(context: object, contents: list[str]) -> None:
    assert [source.content for source in read_context(context)] == contents


OBJECTS = [
    (knowledge(content=None), "Leave", ""),
    (knowledge(content=None, summary="In short."), "Leave", "In short."),
    (knowledge(title=None), "leave.md", "30 days."),
    ({"content": "x", "title": "A\n  long\ttitle "}, "A long title", "x"),
    ({"title": "T", "url": "https://a.example", "snippet": "s"}, "T", 's\n\n{"url": "https://a.example"}'),
    ({"title": "T", "text": "t"}, "T", "t"),
    (
        {"metadata": {"source": "a.pdf", "page": 3}, "page_content": "p"},
        "Untitled",
        'p\n\n{"metadata": {"source": "a.pdf", "page": 3}}',
    ),
    ({"title": "T", "text": ["a", "b"]}, "T", '{"text": ["a", "b"]}'),
    ({"title": "T", "content": " ", "snippet": "s"}, "T", 's\n\n{"content": " "}'),
    ({"title": "T" * 300}, "T" * 200, json.dumps({"title": "T" * 300})),
]


@pytest.mark.parametrize(("given", "title", "content"), OBJECTS, ids=range(len(OBJECTS)))
def test_of_a_knowledge_result_the_model_reads_the_content_and_of_any_other_object_all(
    given: dict[str, Any], title: str, content: str
) -> None:
    source = only(given)

    assert (source.title, source.content) == (title, content)


FIELDS: list[tuple[dict[str, Any], str, object]] = [
    ({"document_data_source_type": "notion_import", "data_source_type": None}, "data_source_type", "notion_import"),
    ({"segment_hit_count": "many"}, "hit_count", None),
    ({"document_id": 7}, "document_id", "7"),
    ({"page": "3"}, "page", 3),
    *(({"score": score}, "score", None) for score in (None, "", "high", float("nan"), "inf", [1], 10**400)),
    *(({"score": score}, "score", float(score)) for score in ("0.5", 1)),
]


@pytest.mark.parametrize(("metadata", "name", "value"), FIELDS, ids=range(len(FIELDS)))
def test_a_field_has_its_type_or_is_left_out(metadata: dict[str, Any], name: str, value: object) -> None:
    source = only(knowledge(metadata))

    assert source.resource.get(name) == value
    assert source.content == "30 days."


@pytest.mark.parametrize(
    ("fields", "link"),
    [
        ({"url": "https://a.example/x"}, "https://a.example/x"),
        ({"metadata": {"doc_metadata": {"source": "http://a.example"}}}, "http://a.example"),
        ({"document_id": "https://a.example"}, "https://a.example"),
        ({"url": "javascript:alert(1)", "link": "https://a.example/ b"}, ""),
        ({"url": f"https://a.example/{'x' * 2_000}"}, ""),
    ],
    ids=range(5),
)
def test_the_address_of_a_source_on_the_web_is_its_link(fields: dict[str, Any], link: str) -> None:
    assert only({"title": "T", "content": "c", **fields}).link == link


def test_sources_are_numbered_in_the_order_of_their_first_offer_and_listed_once() -> None:
    books = NumberedSources(4)
    first = Source("A", "a")
    second = Source("B", "b")
    third = Source("C", "c", {"document_id": "doc"})

    assert books.add([first, second, first]) == [5, 6, 5]
    assert books.add([third, Source("B", "b"), Source("other title", "c", {"document_id": "doc"})]) == [7, 6, 7]
    assert books.entries() == ((5, first), (6, second), (7, third))
    segments = read_context([knowledge({"segment_id": number}) for number in ("s1", "s2", "s1")])
    assert NumberedSources().add(segments) == [1, 2, 1]


TAGS = ["<context>", "</context>", "</source>", "<source ", "</SOURCE", "<Context\n", *'</>"\n', "context"]


@given(joined(TAGS), joined(TAGS) | any_text)
def test_no_source_can_leave_its_block(content: str, title: str) -> None:
    lowered = block(content, title=title).lower()

    assert re.findall(r"</?(?:context|source)\b", lowered) == ["<context", "<source", "</source", "</context"]
    head = lowered.split("<source ")[1].split("\n")[0]
    assert head.count('"') == 4


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ("It is y [1].", {1}),
        ("[1][2] 【4】 [1、2] [ 5 ]", {1, 2, 4, 5}),
        ("[1, 2,3]", {1, 2, 3}),
        ("a[i], [x1], [12345], (1), [1.5], []", set()),
    ],
)
def test_citations_are_numbers_in_brackets(answer: str, numbers: set[int]) -> None:
    assert cited_numbers(answer) == numbers


HANDBOOK = Source("Handbook", "a", link="https://example.com/hand book(1)?q=<b>", resource={"page": 3})
CITABLE = [
    (1, HANDBOOK),
    (2, Source("x](y) *b* `c`\n<img> $1$ _d_ a_b/c-d.md", "b")),
    (3, Source("Handbook", "c")),
    (4, HANDBOOK),
]


def listed(answer: str) -> list[str]:
    return source_list(answer, CITABLE).splitlines()


def test_cited_sources_are_listed_under_their_own_numbers_each_title_and_link_once() -> None:
    link = "[Handbook, page 3](https://example.com/hand%20book%281%29?q=%3Cb%3E)"

    assert listed("Yes [3]. No [4, 1].") == [f"- [1] [4] {link}", "- [3] Handbook"]


def test_a_title_stays_plain_text_in_its_line() -> None:
    (line,) = listed("Yes [2].")
    inline = MarkdownIt().parseInline(line.removeprefix("- "))[0].children

    assert {token.type for token in inline or ()} == {"text"}
    assert line.endswith(r"a_b/c-d.md")
    assert "".join(token.content for token in inline or ()) == "[2] x](y) *b* `c` <img> $1$ _d_ a_b/c-d.md"


@pytest.mark.parametrize(
    "answer",
    [
        "Nothing cited.",
        "No such source [9].",
        "In code: `a[1]`\n```\nb[2]\n```\n",
        "Yes [1].\n\n[1] Handbook",
        "Yes [1].\n- **[1]**: Handbook",
        "Yes【1】。\n\n出典：Handbook [1]",
        "Yes [1].\n\n## Sources\nHandbook",
        "Yes [1].\n\n[1] The handbook of 2025",
        "I found these:\n\n[3] Handbook.\n",
        "I found these:\n\n1. [1] *Handbook, page 3*\n",
        "Yes [3].\n\n[3] https://example.com/other",
    ],
)
def test_an_answer_that_cites_nothing_or_lists_its_sources_itself_gets_no_list(answer: str) -> None:
    assert listed(answer) == []


@pytest.mark.parametrize(
    "answer",
    [
        "[3] adds that delivery is free.",
        "Lamps cost 40 [3].\n[3] adds that delivery is free.",
        "Two facts:\n- [3] Delivery is free\n- Returns are not",
        "送料は無料です。\n【3】によると、返品もできます。",
        '**[3]** says: "it is free."\nYes [3].',
        "[3] Handbook says that it is free [3].",
    ],
)
def test_a_line_of_prose_that_begins_with_a_citation_is_no_list(answer: str) -> None:
    assert listed(answer) == ["- [3] Handbook"]


@given(
    st.dictionaries(
        st.sampled_from([*RESOURCE_FIELDS, "title", "summary", "metadata"]),
        text_from_the_host | st.none() | finite_numbers | st.lists(text_from_the_host),
    )
)
def test_any_text_of_a_source_can_be_written(item: dict[str, Any]) -> None:
    for source in read_context([item]):
        said = [source.resource, source.title, source.content]
        assert json.loads(json.dumps(said, ensure_ascii=False, allow_nan=False).encode()) == said
