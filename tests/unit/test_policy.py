"""The system prompt: order, overrides, and the default texts."""

import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given

from internal.policy import DEFAULT_POLICY, PolicyTexts, build_system_instruction, read_policy_overrides
from internal.sources import escaped
from internal.text.texts import wellformed
from strategies.gpt5_function_calling import GPT5FunctionCallingStrategy
from strategies.gpt5_react import GPT5ReActStrategy
from tests.unit.generators import any_text, joined, readable_text

TAGS = {
    "persistence_policy": "persistence",
    "context_gathering_policy": "context_gathering",
    "tool_results_policy": "tool_results",
    "uncertainty_policy": "uncertainty_and_ambiguity",
    "tool_preamble_policy": "tool_preamble",
}
SHORT = PolicyTexts("P", "C", "R", "U", "T")
ALL_BLOCKS = [f"<{tag}>\n{text}\n</{tag}>" for tag, text in zip(TAGS.values(), "PCRUT", strict=True)]


def built(overrides: object = None, instruction: str = "") -> list[str]:
    """The prompt's blocks, under default texts of one letter."""
    text = overrides if isinstance(overrides, str) or overrides is None else json.dumps(overrides)
    prompt = build_system_instruction(instruction, text, defaults=SHORT)
    return prompt.split("\n\n") if prompt else []


def notes(overrides: Any) -> tuple[str, ...]:  # noqa: ANN401 - whatever a developer writes
    return read_policy_overrides(overrides if isinstance(overrides, str) else json.dumps(overrides)).notes


def test_the_blocks_come_in_order_between_instruction_and_extra_policy() -> None:
    assert built({"extra_policy": "E"}, "I") == ["I", *ALL_BLOCKS, "E"]


def test_the_order_of_the_overrides_does_not_matter() -> None:
    overrides = {"extra_policy": "E", "tool_preamble_policy": "t", "persistence_policy": "p"}

    assert built(overrides) == [
        "<persistence>\np\n</persistence>",
        *ALL_BLOCKS[1:4],
        "<tool_preamble>\nt\n</tool_preamble>",
        "E",
    ]


@pytest.mark.parametrize("blank", [None, "", "  \n\t "], ids=repr)
def test_blank_overrides_and_a_blank_instruction_leave_the_defaults(blank: str | None) -> None:
    assert built(blank, " \n ") == ALL_BLOCKS
    assert read_policy_overrides(blank).notes == ()


@pytest.mark.parametrize("name", TAGS)
def test_an_override_replaces_only_its_block_and_is_wrapped(name: str) -> None:
    position = list(TAGS).index(name)
    expected = [*ALL_BLOCKS]
    expected[position] = f"<{TAGS[name]}>\nMine.\nTwo lines.\n</{TAGS[name]}>"

    assert built({name: "Mine.\nTwo lines."}) == expected


@pytest.mark.parametrize("name", TAGS)
@pytest.mark.parametrize("around", ["{}", " {}\n"])
def test_a_text_that_has_its_tag_already_is_not_wrapped_again(name: str, around: str) -> None:
    wrapped = f"<{TAGS[name]}>\nMine.\n</{TAGS[name]}>"

    prompt = "\n\n".join(built({name: around.format(wrapped)}))

    assert wrapped in prompt
    assert prompt.count(f"<{TAGS[name]}>") == prompt.count(f"</{TAGS[name]}>") == 1


def test_a_text_with_another_blocks_tag_is_wrapped_in_its_own() -> None:
    assert built({"persistence_policy": "<other>x</other>"})[0] == "<persistence>\n<other>x</other>\n</persistence>"


@pytest.mark.parametrize("blank", ["", "  \n"], ids=repr)
@pytest.mark.parametrize("name", [*TAGS, "extra_policy"])
def test_a_blank_value_overrides_nothing(name: str, blank: str) -> None:
    assert built({name: blank}) == ALL_BLOCKS
    assert notes({name: blank}) == ()


@pytest.mark.parametrize("name", TAGS)
def test_false_removes_a_block(name: str) -> None:
    expected = [block for block, other in zip(ALL_BLOCKS, TAGS, strict=True) if other != name]

    assert built({name: False}) == expected
    assert notes({name: False}) == ()


def test_with_every_block_removed_only_the_instruction_is_left() -> None:
    assert built(dict.fromkeys(TAGS, False), "I") == ["I"]
    assert built(dict.fromkeys(TAGS, False)) == []


@pytest.mark.parametrize("value", [True, 0, 1, None, [], ["x"], {"a": "b"}], ids=repr)
@pytest.mark.parametrize("name", [*TAGS, "extra_policy"])
def test_a_value_that_is_neither_text_nor_false_is_ignored_and_named(name: str, value: object) -> None:
    assert built({name: value}) == ALL_BLOCKS
    (note,) = notes({name: value})
    assert name in note


def test_an_unknown_key_is_ignored_and_named_and_the_others_apply() -> None:
    overrides = {"persistance_policy": "typo", "uncertainty_policy": "u"}

    assert built(overrides)[3] == "<uncertainty_and_ambiguity>\nu\n</uncertainty_and_ambiguity>"
    assert "typo" not in "".join(built(overrides))
    (note,) = notes(overrides)
    assert "'persistance_policy'" in note
    assert all(name in note for name in [*TAGS, "extra_policy"])


@pytest.mark.parametrize(
    "text",
    ["Be kind.", "Be kind.\n\n  Always. ", '["a", "list"]', '"a string"', "42", "null", "true", "<x>y</x>"],
    ids=repr,
)
def test_a_text_that_is_not_a_json_object_is_extra_policy_unchanged(text: str) -> None:
    assert build_system_instruction("I", text, defaults=SHORT) == "\n\n".join(["I", *ALL_BLOCKS, text])
    assert notes(text) == ()


@pytest.mark.parametrize("text", ['{"extra_policy": "x",}', " {persistence: 1}", "[not json", "{" * 100_000])
def test_a_text_that_starts_like_json_and_does_not_parse_is_named(text: str) -> None:
    assert build_system_instruction("", text, defaults=SHORT).endswith("\n\n" + text)
    (note,) = notes(text)
    assert note.startswith("prompt_policy_overrides: starts like JSON")


def test_extra_policy_in_an_object_is_verbatim() -> None:
    extra = "  indented\n\n<persistence>not a block</persistence>  "

    assert build_system_instruction("", json.dumps({"extra_policy": extra}), defaults=SHORT).endswith("\n\n" + extra)


@given(any_text, any_text | joined(['{"', "extra_policy", '": "', "\\ud83d", "x", '"}']), readable_text.map(wellformed))
def test_any_text_becomes_a_prompt(instruction: str, overrides: str, extra: str) -> None:
    assert isinstance(build_system_instruction(instruction, overrides), str)
    assert build_system_instruction("", json.dumps({"extra_policy": extra})).endswith(extra if extra.strip() else ">")


@pytest.mark.parametrize("name", [*TAGS, "extra_policy"])
def test_half_a_surrogate_pair_in_an_override_can_still_be_written(name: str) -> None:
    prompt = build_system_instruction("", f'{{"{name}": "cut \\ud83d here"}}')

    assert "cut ? here" in prompt
    assert prompt.encode()


@pytest.mark.parametrize(
    "policy", [DEFAULT_POLICY, GPT5ReActStrategy.blueprint.policy], ids=["function calling", "react"]
)
def test_a_default_text_has_at_most_four_lines_and_asks_for_no_think_text(policy: PolicyTexts) -> None:
    for field in fields(policy):
        text = getattr(policy, field.name)
        assert 1 <= len(text.splitlines()) <= 4
        assert "think>" not in text
        assert text == text.strip()


@pytest.mark.parametrize("tag", TAGS.values())
def test_data_can_neither_close_nor_open_a_block(tag: str) -> None:
    assert escaped(f"a </{tag}>\n<{tag}>\n< / {tag.upper()} > b") == (
        f"a &lt;/{tag}>\n&lt;{tag}>\n&lt; / {tag.upper()} > b"
    )


def test_no_default_rule_is_repeated() -> None:
    lines = [line for field in fields(DEFAULT_POLICY) for line in getattr(DEFAULT_POLICY, field.name).splitlines()]

    assert len(set(lines)) == len(lines)


def test_react_differs_only_in_its_tool_preamble() -> None:
    react, plain = GPT5ReActStrategy.blueprint.policy, GPT5FunctionCallingStrategy.blueprint.policy

    assert [field.name for field in fields(react) if getattr(react, field.name) != getattr(plain, field.name)] == [
        "tool_preamble_policy"
    ]
    assert "25 words" in react.tool_preamble_policy
    assert all(word in react.tool_preamble_policy.lower() for word in ("reason", "act", "observe"))
