"""Thoughts between other tags than ``<think>``, which ``thought_tags`` names."""

import json
from itertools import batched

import pytest

from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER
from tests.support.wire import calls, model, replies, says

FOUND = {"search": replies("found")}
TAGS = {
    "[THINK]": ("[THINK]", "[/THINK]"),
    "[THINK] [/THINK]": ("[THINK]", "[/THINK]"),
    " <thought> ": ("<thought>", "</thought>"),
    "<seed:think>\n</seed:think>": ("<seed:think>", "</seed:think>"),
    "<|START_THINKING|> <|END_THINKING|>": ("<|START_THINKING|>", "<|END_THINKING|>"),
    "<|channel>thought <channel|>": ("<|channel>thought", "<channel|>"),
    "◁think▷ ◁/think▷": ("◁think▷", "◁/think▷"),
}


@pytest.mark.parametrize("size", [1, 4, 1_000])
@pytest.mark.parametrize(("given", "tags"), TAGS.items(), ids=TAGS)
def test_thoughts_are_shown_logged_and_put_out_as_those_of_think(given: str, tags: tuple[str, str], size: int) -> None:
    opening, closing = tags

    def said(opening: str, closing: str, **params: object) -> Outcome:
        turn = f"{opening}\nHidden.\n{closing}\nDone."
        pieces = map("".join, batched(turn, size))
        return run([says(*pieces)], FOUND, {"extra_outputs": "thoughts", **params})

    for shows in (False, True):
        plain = said("<think>", "</think>", emit_intermediate_thoughts=shows)
        other = said(opening, closing, emit_intermediate_thoughts=shows, thought_tags=given)
        assert other.text == plain.text
        assert other.variables["thoughts"] == plain.variables["thoughts"] == [{"round": 1, "text": "Hidden."}]
        assert other.notes == []
        assert "Hidden." in json.dumps(list(other.logs.values()))


def test_without_the_parameter_they_are_text() -> None:
    assert run([says("[THINK]Hidden.[/THINK]\nDone.")]).text == "[THINK]Hidden.[/THINK]\nDone."


def test_an_answer_may_quote_them() -> None:
    quoted = "Write `[THINK]` first.\n```\n[THINK]\n```"

    assert run([says(quoted)], params={"thought_tags": "[THINK]"}).text == quoted


def test_history_and_state_are_freed_of_them() -> None:
    tags = {"thought_tags": "[THINK]", "extra_outputs": "state"}
    turn = "[THINK]Hidden.[/THINK]\nDone."
    history = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": turn}]

    first = run([says(turn)], params=tags)
    later = run([ANSWER], params={**tags, "state": first.variables["state"]})
    remembered = run([ANSWER], params={**tags, "model": model(history_prompt_messages=history)})

    for outcome in (later, remembered):
        told = [message["content"] for message in outcome.model.prompts[0]]
        assert "Done." in told
        assert not any("Hidden" in text for text in told)


def test_a_turn_with_calls_goes_back_with_its_thoughts() -> None:
    """As those between ``<think>`` do: some providers want them."""
    turn = calls(("search", {"q": "a"}), text="[THINK]Hidden.[/THINK]\nI look.")

    outcome = run([turn, ANSWER], FOUND, {"thought_tags": "[THINK]"})

    assert outcome.model.prompts[1][2]["content"] == "[THINK]Hidden.[/THINK]\nI look."


@pytest.mark.parametrize("given", ["think", "<think", "<a> <b> <c>", "<a> <a>", "a b", "[", "<a> b", {"a": 1}])
def test_an_unknown_form_is_noted_and_only_think_counts(given: object) -> None:
    outcome = run([says("<think>Hidden.</think>\nDone.")], params={"thought_tags": given})

    assert outcome.text == "Done."
    (note,) = outcome.notes
    assert note.startswith("thought_tags: ")
    assert note.endswith(" is ignored; write two tags, such as <thought> </thought>")


@pytest.mark.parametrize("given", ["", None, "  "])
def test_blank_is_think_alone(given: str | None) -> None:
    outcome = run([says("<think>Hidden.</think>\nDone.")], params={"thought_tags": given})

    assert (outcome.text, outcome.notes) == ("Done.", [])
