"""What an opened model call says about its prompt: what is new, shortened and removed since the round before."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devhost.page.calls import Part, Said, calls_before, prompt_changes
from devhost.trace.runs import Call
from devhost.trace.timeline import Span

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


def asked(name: str, began: float, *words: str, ended: float | None = None) -> Span:
    """A model call whose prompt is a system message and these messages of the user's."""
    messages = [{"role": "system", "content": "Be brief."}, *({"role": "user", "content": each} for each in words)]
    call = Call("p", "llm", {"prompt_messages": messages}, began, began + 1 if ended is None else ended, id=name)
    return Span(name, name, "success", began, began + 1, calls=[call])


def group(*children: Span) -> Span:
    return Span("group", "group", "success", children[0].began, children[-1].ended, children=list(children))


def ids_before(*spans: Span) -> dict[str, str]:
    return {key: call.id for key, call in calls_before(spans).items()}


def test_the_round_before_stands_in_the_same_group_or_the_one_beside_it() -> None:
    rounds = [
        group(asked("1", 0, "Look.")),
        group(asked("2", 2, "Look.", "more")),
        group(asked("3", 4, "Look.", "all")),
    ]
    assert ids_before(*rounds) == {"2": "1", "3": "2"}
    assert ids_before(asked("1", 0, "Look."), asked("2", 2, "Look.", "more")) == {"2": "1"}


def test_subtasks_side_by_side_are_loops_of_their_own() -> None:
    first = group(group(asked("a1", 0, "Look.")), group(asked("a2", 4, "Look.", "a")))
    second = group(group(asked("b1", 1.5, "Look.")), group(asked("b2", 3, "Look.", "b")))
    assert ids_before(first, second) == {"a2": "a1", "b2": "b1"}


def test_another_question_and_a_call_that_went_on_are_not_the_round_before() -> None:
    assert ids_before(asked("1", 0, "Look."), asked("judge", 2, "Judge.")) == {}
    assert ids_before(asked("1", 0, "Look.", ended=9), asked("2", 2, "Look.")) == {}


def test_the_second_try_is_compared_with_the_first() -> None:
    tried, again = asked("1", 0, "Look."), asked("2", 2, "Look.")
    tried.calls += again.calls
    assert ids_before(group(tried)) == {"2": "1"}
