"""The system prompt: order, overrides, and the default texts."""

import json
from dataclasses import fields

import pytest
from hypothesis import given

from internal.policy import DEFAULT_POLICY, PolicyTexts, build_system_instruction
from internal.sources import escaped
from internal.text.texts import wellformed
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
BLOCKS = {name: f"<{tag}>\n{text}\n</{tag}>" for (name, tag), text in zip(TAGS.items(), "PCRUT", strict=True)}


def built(overrides: object, instruction: str = "") -> tuple[str, list[str]]:
    """The prompt under default texts of one letter, and the notes."""
    notes = list[str]()
    text = overrides if isinstance(overrides, str) or overrides is None else json.dumps(overrides)
    return build_system_instruction(instruction, text, defaults=SHORT, note=notes.append), notes


def prompt(**changed: str) -> str:
    """Every block with what was changed, in the prompt's order."""
    return "\n\n".join(block for block in (BLOCKS | changed).values() if block)


def test_the_blocks_come_in_order_between_instruction_and_extra_policy() -> None:
    overrides = {"extra_policy": "E", "tool_preamble_policy": "t"}

    assert built(overrides, " I\n") == (
        f"I\n\n{prompt(tool_preamble_policy='<tool_preamble>\nt\n</tool_preamble>')}\n\nE",
        [],
    )


@pytest.mark.parametrize("blank", [None, "", "  \n\t ", "{}"], ids=repr)
def test_blank_overrides_and_a_blank_instruction_leave_the_defaults(blank: str | None) -> None:
    assert built(blank, " \n ") == (prompt(), [])


@pytest.mark.parametrize("name", TAGS)
def test_each_block_can_be_replaced_left_alone_or_removed(name: str) -> None:
    tag = TAGS[name]
    wrapped = f"<{tag}>\nMine.\nTwo lines.\n</{tag}>"

    assert built({name: "Mine.\nTwo lines."}) == (prompt(**{name: wrapped}), [])
    assert built({name: f" {wrapped}\n"}) == (prompt(**{name: wrapped}), []), "never wrapped twice"
    assert built({name: "  \n"}) == (prompt(), [])
    assert built({name: False}) == (prompt(**{name: ""}), [])


def test_a_text_with_another_blocks_tag_is_wrapped_in_its_own() -> None:
    mixed = built({"persistence_policy": "<other>x</other>"})[0]

    assert mixed.startswith("<persistence>\n<other>x</other>\n</persistence>\n\n<context_gathering>")


def test_with_every_block_removed_only_the_instruction_is_left() -> None:
    assert built(dict.fromkeys(TAGS, False), "I") == ("I", [])
    assert built(dict.fromkeys(TAGS, False)) == ("", [])


@pytest.mark.parametrize("value", [True, 0, 1, None, ["x"], {"a": "b"}], ids=repr)
@pytest.mark.parametrize("name", ["tool_results_policy", "extra_policy"])
def test_a_value_that_is_neither_text_nor_false_is_ignored_and_named(name: str, value: object) -> None:
    same, (note,) = built({name: value})

    assert same == prompt()
    assert name in note


def test_an_unknown_key_is_ignored_and_named_and_the_others_apply() -> None:
    changed, (note,) = built({"persistance_policy": "typo", "uncertainty_policy": False})

    assert changed == prompt(uncertainty_policy="")
    assert "'persistance_policy'" in note
    assert all(name in note for name in [*TAGS, "extra_policy"])


@pytest.mark.parametrize(
    "text",
    ["Be kind.\n\n  Always. ", '["a", "list"]', '"a string"', "42", "null", "true", "<x>y</x>"],
    ids=repr,
)
def test_a_text_that_is_not_a_json_object_is_extra_policy_unchanged(text: str) -> None:
    assert built(text) == (f"{prompt()}\n\n{text}", [])


@pytest.mark.parametrize("text", ['{"extra_policy": "x",}', " {persistence: 1}", "[not json", "{" * 100_000])
def test_a_text_that_starts_like_json_and_does_not_parse_is_named(text: str) -> None:
    extended, (note,) = built(text)

    assert extended == f"{prompt()}\n\n{text}"
    assert note.startswith("prompt_policy_overrides: starts like JSON")


@given(any_text, any_text | joined(['{"', "extra_policy", '": "', "\\ud83d", "x", '"}']), readable_text.map(wellformed))
def test_any_text_becomes_a_prompt_and_extra_policy_in_an_object_is_verbatim(
    instruction: str, overrides: str, extra: str
) -> None:
    assert isinstance(build_system_instruction(instruction, overrides), str)
    assert built({"extra_policy": extra})[0] == (f"{prompt()}\n\n{extra}" if extra.strip() else prompt())


@pytest.mark.parametrize("name", ["persistence_policy", "extra_policy"])
def test_half_a_surrogate_pair_in_an_override_can_still_be_written(name: str) -> None:
    assert b"cut ? here" in built(f'{{"{name}": "cut \\ud83d here"}}')[0].encode()


@pytest.mark.parametrize(
    "policy", [DEFAULT_POLICY, GPT5ReActStrategy.blueprint.policy], ids=["function calling", "react"]
)
def test_a_default_text_has_at_most_four_lines_repeats_no_rule_and_asks_for_no_think_text(policy: PolicyTexts) -> None:
    texts = [getattr(policy, field.name) for field in fields(policy)]

    assert all(text == text.strip() and 1 <= len(text.splitlines()) <= 4 for text in texts)
    assert not any("think>" in text for text in texts)
    lines = "\n".join(texts).splitlines()
    assert len(set(lines)) == len(lines)


@pytest.mark.parametrize("tag", TAGS.values())
def test_data_can_neither_close_nor_open_a_block(tag: str) -> None:
    assert escaped(f"a </{tag}>\n<{tag}>\n< / {tag.upper()} > b") == (
        f"a &lt;/{tag}>\n&lt;{tag}>\n&lt; / {tag.upper()} > b"
    )


def test_react_reasons_acts_and_observes_in_few_words() -> None:
    """That nothing else differs, tests/agent/test_strategies.py shows on the prompts."""
    preamble = GPT5ReActStrategy.blueprint.policy.tool_preamble_policy.lower()

    assert [word for word in ("reason", "act", "observe", "25 words") if word not in preamble] == []
