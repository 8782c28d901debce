"""Texts: what the wire takes, which part of a long one is kept, what a pasted one means, and its language."""

import ast
import json
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.errors import InvalidParameters, StopReason
from internal.loop import tools_line
from internal.node.params import StrategyParams
from internal.node.tools import build_toolbox
from internal.node.virtual_tools import answer_tool
from internal.policy import build_system_instruction
from internal.sources import read_context
from internal.text import texts
from internal.text.secrets import Redactor
from prompt import template, user_texts
from tests.support.generators import any_text, json_objects, json_values
from tests.support.generators import joined as drawn
from tests.support.wire import model, tool

json_with_any_text: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | any_text,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(any_text, children, max_size=3),
    max_leaves=8,
)
SECRET = "hunter2-hunter2"
LONGEST = 200_000
TAIL = 50_000
MARK = "\ufeff"
VARIABLE = "looks like a variable that does not exist"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "default": None}}, "additionalProperties": False}


@given(any_text)
def test_well_formed_text_can_be_written_and_loses_nothing_but_nul(text: str) -> None:
    written = texts.wellformed(text)

    assert written.encode().decode() == written
    assert len(written) == len(text.replace("\0", ""))
    assert texts.has_lone_surrogate(text) or written == text.replace("\0", "")


@given(json_with_any_text)
def test_every_text_and_name_of_a_json_value_becomes_well_formed(value: object) -> None:
    def each(node: object) -> object:
        if isinstance(node, dict):
            return {texts.wellformed(name): each(item) for name, item in node.items()}
        if isinstance(node, list):
            return [each(item) for item in node]
        if isinstance(node, str):
            return texts.wellformed(node)
        return node

    assert texts.wellformed_json(value) == each(value)


@given(st.text(st.sampled_from('\\u0{}"a'), max_size=20))
def test_json_text_loses_escaped_nul_only(text: str) -> None:
    said = {text: ["\0", text]}

    assert json.loads(texts.without_escaped_nul(json.dumps(said))) == {text: ["", text]}
    assert "\0" not in texts.without_escaped_nul(text)


def kept_of(text: str, size: int) -> texts.KeptText:
    """A text that came in pieces of this size."""
    kept = texts.KeptText(LONGEST, TAIL)
    for start in range(0, len(text), size):
        kept.add(text[start : start + size])
    return kept


@pytest.mark.parametrize("size", [7, 49_999, 100_000, 1_000_000])
@pytest.mark.parametrize("length", [0, 1, 100_001, LONGEST, LONGEST + 1, LONGEST + TAIL + 1, 777_777])
def test_of_a_text_beyond_the_limit_the_beginning_and_the_end_are_kept(length: int, size: int) -> None:
    text = ("0123456789\r\n" * length)[:length]
    kept = kept_of(text, size)
    shown = kept.excerpt(str)

    assert (kept.length, kept.last, kept.says_something) == (length, text[-1:], length > 0)
    assert len(kept.whole()) <= LONGEST
    if length <= LONGEST:
        assert shown == text
        return
    head, _, rest = shown.partition("\n[… ")
    number, _, tail = rest.partition(" characters were not kept …]\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert min(len(head), len(tail)) >= TAIL - 20_000
    assert int(number) == length - len(head) - len(tail)


@given(st.integers(99_900, 100_010), st.integers(-20, 20), st.sampled_from([1, 10, 1_000]))
def test_no_half_of_a_secret_is_left_at_a_gap(before: int, after: int, pieces: int) -> None:
    text = "m" * before + SECRET + "m" * 500_000 + SECRET + "m" * (TAIL + after)
    shown = kept_of(text, len(text) // pieces + 1).excerpt(Redactor.of([SECRET]).text)

    assert not [end for end in range(4, len(SECRET)) if SECRET[:end] + "\n" in shown or "\n" + SECRET[-end:] in shown]
    assert SECRET not in shown


@given(st.text(min_size=1, max_size=20), st.integers(1, 200), st.integers(100, 300), st.sampled_from([0, 1_000_000]))
def test_a_cut_result_is_never_longer_than_the_limit_and_says_what_is_left_out(
    unit: str, times: int, limit: int, missing: int
) -> None:
    gap = ""
    if missing:
        gap = template.CHARACTERS_NOT_KEPT.format(count=missing)
        times = max(times, 300)
    around = unit * times
    whole = f"{around}{gap}{around}"
    result = texts.cut_to_size(whole, limit)

    assert len(result) <= limit
    if len(whole) <= limit:
        assert result == whole
        return
    head, _, rest = result.partition("\n[… ")
    number, _, rest = rest.partition(" characters left out")
    tail = rest.partition("…]\n")[2]
    assert head
    assert tail
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert int(number) == len(whole) - len(gap) + missing - len(head) - len(tail)


@given(st.lists(json_values, max_size=4) | json_objects)
def test_pythons_repr_of_a_list_or_object_is_read_like_its_json(value: object) -> None:
    assert json.loads(texts.read_pasted(repr(value))) == value
    assert json.loads(texts.read_pasted(json.dumps(value))) == value


@given(any_text | drawn(["[", "{", "'a'", '"', ",", ":", "1", "-", "None", "nan", "b''", "(", "}", "]", " ", "\\"]))
def test_text_that_is_neither_json_nor_a_repr_stays_unchanged(text: str) -> None:
    with warnings.catch_warnings(action="error"):
        meant = texts.read_pasted(text)

    if meant != text and MARK not in text:
        assert meant == json.dumps(ast.literal_eval(text.strip()), ensure_ascii=False)


@pytest.mark.parametrize(
    "text",
    [
        *("{1, 2}", "[b'a']", "[1e999]", "[1 + 1]", "[f'{1}']", "[search]", "[__import__('os')]", "{'a': {'b'}}"),
        # nested too deeply for Python's parser, or too long to be parsed at once
        *("[" * 90_000, "['x', " + "[" * 90_000, "[" + "-" * 99_000 + "1]", "['" + "x" * 100_000 + "']"),
    ],
    ids=lambda text: text[:7],
)
def test_a_repr_of_other_types_than_those_of_json_is_not_read(text: str) -> None:
    assert texts.read_pasted(text) == text


@pytest.mark.parametrize("before", [MARK, f" \n{MARK}", f"{MARK}{MARK}"], ids=ascii)
def test_a_byte_order_mark_is_not_part_of_the_pasted_text(before: str) -> None:
    assert texts.read_pasted(before + '{"a": 1}') == '{"a": 1}'
    assert texts.read_pasted(before + "plain") == "plain"
    assert texts.read_pasted(f"a{MARK}b") == f"a{MARK}b"


@pytest.mark.parametrize("write", [json.dumps, repr])
def test_fields_that_hold_json_may_be_pasted_or_come_from_a_variable(write: Any) -> None:  # noqa: ANN401
    form = answer_tool(MARK + write(SCHEMA)).check
    prompt = build_system_instruction("", MARK + write({"persistence_policy": False, "extra_policy": "It's ours."}))
    context = [{"title": "Leave", "content": "It's 30 days."}, {"title": "Pay", "content": "Monthly."}]

    assert form is not None
    assert form.schema == SCHEMA
    assert "<persistence>" not in prompt
    assert prompt.endswith("\n\nIt's ours.")
    assert read_context(MARK + write(context)) == read_context(context)


def test_a_bare_selector_is_recognised() -> None:
    selectors = ["start.tools", " 1732007415808.text\n", "sys.query", "node.result.items"]
    others = ["3.14", "search", "a.b c", "See start.tools", "{{#a.b#}}", "a..b", ["a.b"], None]

    assert [texts.looks_like_selector(value) for value in [*selectors, *others]] == [True] * 4 + [False] * 8


def test_a_missing_variable_is_named() -> None:
    with pytest.raises(InvalidParameters, match=rf"parameter 'answer_schema': 'start\.schema' {VARIABLE}"):
        answer_tool("start.schema")
    for name in ("context", "instruction", "tools", "files"):
        params = StrategyParams.model_validate({"model": model(), "query": "example.com", name: "start.docs"})
        assert params.notes[0].startswith(f"{name}: 'start.docs' {VARIABLE}")
    notes = list[str]()
    build_system_instruction("", "conversation.policy", note=notes.append)
    assert notes[0].startswith(f"prompt_policy_overrides: 'conversation.policy' {VARIABLE}")
    notes = [*build_toolbox([tool("search")], allowed=["start.tools"]).notes]
    assert [note for note in notes if "'start.tools'" in note and VARIABLE in note]


def test_every_reason_has_a_sentence_of_its_own_in_every_language() -> None:
    reasons = {reason.value for reason in StopReason if reason is not StopReason.ANSWERED}
    assert user_texts.NO_ANSWER.keys() == reasons, "NO_ANSWER in prompt/user_texts.py has to name these reasons"
    sentences = [sentence for each in user_texts.NO_ANSWER.values() for sentence in each.values()]

    assert all(sentences)
    assert len(set(sentences)) == len(sentences)


@pytest.mark.parametrize(
    ("tools", "query", "line"),
    [
        (["b", "a", "b"], "why", "Used b, a."),
        (["a", "b", "c", "d", "e"], "why", "Used a, b, c and 2 more."),
        (["a", "b", "c", "d"], "なぜ", "a、b、c ほか 1 件のツールを使用しました。"),
        (["a", "b", "c", "d"], "为什么", "使用了 a、b、c 和另外 1 个工具。"),
        (["a", "b", "c", "d"], "você pode?", "Ferramentas usadas: a, b, c e mais 1."),
        ([], "why", ""),
    ],
)
def test_a_line_names_the_first_tools_of_a_silent_round(tools: list[str], query: str, line: str) -> None:
    assert tools_line(tools, query) == line
