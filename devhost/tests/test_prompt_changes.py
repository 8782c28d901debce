"""What an opened model call says about its prompt: what is new, shortened and removed since the round before."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devhost.page.calls import Part, Said, calls_before, prompt_changes
from devhost.trace.runs import Call

SAID = st.builds(Said, role=st.sampled_from(["system", "user", "tool"]), text=st.text("ab", max_size=4))
PROMPT = st.lists(SAID, max_size=12)
SYSTEM, ASKED, WROTE = Said("system", "Be brief."), Said("user", "Look."), Said("assistant", "→ look {}")
LONG, SHORT, LATER = Said("tool", "found " * 50), Said("tool", "found … [cut]"), Said("assistant", "→ look {1}")


@given(PROMPT, PROMPT)
def test_both_prompts_are_found_again_in_the_parts(before: list[Said], now: list[Said]) -> None:
    parts = prompt_changes(before, now).parts

    assert [said for part in parts if part.change != "removed" for said in part.messages] == now
    assert [said for part in parts if part.change != "new" for said in _as_it_was(part)] == before


@given(PROMPT, PROMPT)
def test_what_is_added_at_the_end_is_new(before: list[Said], added: list[Said]) -> None:
    changes = prompt_changes(before, [*before, *added])

    assert (changes.count("same"), changes.count("new")) == (len(before), len(added))
    assert changes.count("removed") == changes.count("shortened") == 0


@given(PROMPT, PROMPT)
def test_a_shortened_message_is_shorter_and_has_its_role(before: list[Said], now: list[Said]) -> None:
    for part in prompt_changes(before, now).parts:
        if part.change == "shortened":
            assert part.before is not None
            assert part.before.role == part.messages[0].role
            assert len(part.before.text) > len(part.messages[0].text)


def _as_it_was(part: Part) -> Sequence[Said]:
    return part.messages if part.before is None else (part.before,)


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        ([SYSTEM, ASKED], [SYSTEM, ASKED, WROTE, LONG], "2 new, 2 as in the round before"),
        (
            [SYSTEM, ASKED, WROTE, LONG],
            [SYSTEM, ASKED, WROTE, SHORT, LATER],
            "1 new, 1 shortened, 3 as in the round before",
        ),
        ([SYSTEM, ASKED, WROTE, LONG], [SYSTEM, ASKED], "2 removed, 2 as in the round before"),
        ([SYSTEM, ASKED], [SYSTEM, ASKED], "2 as in the round before"),
    ],
)
def test_the_words_count_each_change(before: list[Said], now: list[Said], words: str) -> None:
    assert prompt_changes(before, now).words == words


# --- which call was the one of the round before -----------------------------------------------------------------------


def asked(name: str, began: float, *words: str, ended: float | None = None) -> Call:
    """A model call whose prompt is a system message and these messages of the user's."""
    messages = [{"role": "system", "content": "Be brief."}, *({"role": "user", "content": each} for each in words)]
    return Call("p", "llm", {"prompt_messages": messages}, began, began + 1 if ended is None else ended, id=name)


@pytest.mark.parametrize(
    ("calls", "before"),
    [
        ([asked("1", 0, "Look."), asked("2", 2, "Look.", "more"), asked("3", 4, "Look.", "all")], {"2": "1", "3": "2"}),
        (  # subtasks side by side are loops of their own
            [asked("a1", 0, "A."), asked("b1", 1.5, "B."), asked("a2", 4, "A.", "a"), asked("b2", 3, "B.", "b")],
            {"a2": "a1", "b2": "b1"},
        ),
        ([asked("1", 0, "Look."), asked("judge", 2, "Judge.")], {}),
        ([asked("1", 0, "Look.", ended=9), asked("2", 2, "Look.")], {}),
    ],
)
def test_the_round_before_has_the_same_beginning_and_has_ended(calls: list[Call], before: dict[str, str]) -> None:
    assert {key: call.id for key, call in calls_before(calls).items()} == before
