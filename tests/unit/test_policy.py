"""The system prompt: order, overrides, and the default texts."""

import json
from dataclasses import fields

import pytest

from internal.plan_and_reflect import PLAN_POLICY
from internal.policy import DEFAULT_POLICY, PolicyTexts, build_system_instruction
from internal.sources import escaped
from strategies.gpt5_react import GPT5ReActStrategy

TAGS = {
    "persistence_policy": "persistence",
    "context_gathering_policy": "context_gathering",
    "tool_results_policy": "tool_results",
    "uncertainty_policy": "uncertainty_and_ambiguity",
    "tool_preamble_policy": "tool_preamble",
}
SHORT = PolicyTexts("P", "C", "R", "U", "T")


def wrapped(tag: str, text: str) -> str:
    return f"<{tag}>\n{text}\n</{tag}>"


BLOCKS = {name: wrapped(tag, text) for (name, tag), text in zip(TAGS.items(), "PCRUT", strict=True)}


def built(overrides: object, instruction: str = "") -> tuple[str, list[str]]:
    """The prompt under default texts of one letter, and the notes."""
    notes = list[str]()
    text = overrides if isinstance(overrides, str) or overrides is None else json.dumps(overrides)
    return build_system_instruction(instruction, text, defaults=SHORT, note=notes.append), notes


def prompt(**changed: str) -> str:
    """Every block with what was changed or added, in the prompt's order."""
    return "\n\n".join(block for block in (BLOCKS | changed).values() if block)


BROKEN = "{" * 100_000
TEXTS = ["Be kind.\n\n  Always. ", '["a", "list"]', '"a string"', "42", "null", "true", "<x>y</x>"]
BUILT: list[tuple[object, str, list[str]]] = [
    *((blank, prompt(), []) for blank in (None, "", "  \n\t ", "{}")),
    (
        {"extra_policy": "E", "tool_preamble_policy": "t"},
        prompt(tool_preamble_policy=wrapped("tool_preamble", "t"), x="E"),
        [],
    ),
    (
        {"persistence_policy": "<other>x</other>"},
        prompt(persistence_policy=wrapped("persistence", "<other>x</other>")),
        [],
    ),
    # What is neither text nor false is ignored and named.
    *(({"tool_results_policy": odd}, prompt(), ["tool_results_policy"]) for odd in (True, 0, None, ["x"], {"a": "b"})),
    ({"extra_policy": 1}, prompt(), ["extra_policy"]),
    ('{"extra_policy": "cut \\ud83d here"}', prompt(x="cut ? here"), []),
    # A placeholder that means nothing here stays as text and is named.
    ({"extra_policy": "Hi {name}, {a b} {}"}, prompt(x="Hi {name}, {a b} {}"), ["{name}"]),
    # So is an unknown key; the others apply.
    (
        {"persistance_policy": "typo", "uncertainty_policy": False},
        prompt(uncertainty_policy=""),
        ["'persistance_policy'"],
    ),
    # A text that is not a JSON object is extra policy, unchanged; it is named where it starts like JSON.
    *((text, prompt(x=text), []) for text in TEXTS),
    *(
        (text, prompt(x=text), ["starts like JSON"])
        for text in ('{"extra_policy": "x",}', " {persistence: 1}", "[no", BROKEN)
    ),
]


@pytest.mark.parametrize(("overrides", "expected", "named"), BUILT, ids=lambda value: ascii(value)[:40])
def test_overrides_change_the_prompt_as_far_as_they_mean_something(
    overrides: object, expected: str, named: list[str]
) -> None:
    text, notes = built(overrides, " \n ")

    assert text == expected
    assert built(overrides, " I\n")[0] == f"I\n\n{expected}"
    assert len(notes) == len(named)
    assert all(each in note for each, note in zip(named, notes, strict=True))


@pytest.mark.parametrize("name", TAGS)
def test_each_block_can_be_replaced_left_alone_or_removed(name: str) -> None:
    mine = wrapped(TAGS[name], "Mine.\nTwo lines.")

    assert built({name: "Mine.\nTwo lines."}) == (prompt(**{name: mine}), [])
    assert built({name: f" {mine}\n"}) == (prompt(**{name: mine}), []), "never wrapped twice"
    assert built({name: "  \n"}) == (prompt(), [])
    assert built({name: False}) == (prompt(**{name: ""}), [])
    assert built(dict.fromkeys(TAGS, False)) == ("", [])


@pytest.mark.parametrize(
    "policy",
    [DEFAULT_POLICY, GPT5ReActStrategy.blueprint.policy, PLAN_POLICY],
    ids=["function calling", "react", "plan and reflect"],
)
def test_a_default_text_has_at_most_four_lines_repeats_no_rule_and_asks_for_no_think_text(policy: PolicyTexts) -> None:
    texts = [text for field in fields(policy) if (text := getattr(policy, field.name))]

    assert all(text == text.strip() and 1 <= len(text.splitlines()) <= 4 for text in texts)
    assert not any("think>" in text for text in texts)
    lines = "\n".join(texts).splitlines()
    assert len(set(lines)) == len(lines)


@pytest.mark.parametrize("tag", TAGS.values())
def test_data_can_neither_close_nor_open_a_block(tag: str) -> None:
    assert escaped(f"a </{tag}>\n<{tag}>\n< / {tag.upper()} > b") == (
        f"a &lt;/{tag}>\n&lt;{tag}>\n&lt; / {tag.upper()} > b"
    )
