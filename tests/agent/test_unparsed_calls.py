"""Calls that a model writes in its template's markup, because its server does not parse it: they never run."""

import json
from collections.abc import Sequence
from itertools import batched

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.model.unparsed_calls import UnparsedCalls
from internal.plan_and_reflect import PLAN_AND_REFLECT
from prompt import template, user_texts
from prompt.call_markup import CLOSING_TAGS
from tests.support.host import Step, When
from tests.support.plans import plans
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER, CITY, search
from tests.support.wire import calls, replies, says

FOUND = {"search": replies("found")}

CALLS: dict[str, str] = {
    "hermes": '<tool_call>\n{"name": "search", "arguments": {"q": "a"}}\n</tool_call>',
    "hermes2": (
        '<tool_call>\n{"name": "search", "arguments": {"q": "a"}}\n</tool_call>\n'
        '<tool_call>\n{"arguments": {"q": "a"}, "name": "search"}\n</tool_call>'
    ),
    "qwen coder": ("<tool_call>\n<function=search>\n<parameter=q>\na b. c\n</parameter>\n</function>\n</tool_call>"),
    "glm": "<tool_call>search\n<arg_key>q</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
    "glm2": "<tool_call>search</tool_call>",
    "llama": '<function=search>{"q": "a"}</function>',
    "python": '<|python_tag|>{"name": "search", "parameters": {"q": "a"}}',
    "python2": '<|python_tag|>search.call(q="a")<|eom_id|>',
    "python3": '<|python_tag|>search.call(q="a")',
    "mistral": '[TOOL_CALLS] [{"name": "search", "arguments": {"q": "a"}}]',
    "mistral2": '[TOOL_CALLS]search{"q": "a"}',
    "mistral3": '[TOOL_CALLS]search[ARGS]{"q": "a"}[TOOL_CALLS]search[ARGS]{"q": "a"}</s>',
    "mistral4": '[TOOL_CALLS]search[CALL_ID]abcdefghi[ARGS]{"q": "a"}',
    "kimi": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0"
        '<|tool_call_argument_begin|>{"q": "a"}<|tool_call_end|><|tool_calls_section_end|>'
    ),
    "kimi2": '<|tool_call_begin|>functions.search:0<|tool_call_argument_begin|>{"q": "a"}<|tool_call_end|>',
    "deepseek": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function"
        '<｜tool▁sep｜>search\n```json\n{"q": "a"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
    ),
    "deepseek3.1": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>search"
        '<｜tool▁sep｜>{"q": "a"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
    ),
    "deepseek nowrap": '<｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n```json\n{"q": "a"}\n```<｜tool▁call▁end｜>',
    "dsml": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="search">\n'
        '<｜DSML｜parameter name="q" string="true">a</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>'
    ),
    "dsml of v4": '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="search">\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
    "minimax": (
        '<minimax:tool_call>\n<invoke name="search">\n<parameter name="q">a'
        "</parameter>\n</invoke>\n</minimax:tool_call>"
    ),
    "invoke": '<invoke name="search">\n<parameter name="q">a</parameter>\n</invoke>',
    "granite": '<|tool_call|>[{"name": "search", "arguments": {"q": "a"}}]',
    "gemma": '<|tool_call>call:search{q:<|"|>a<|"|>}<tool_call|>',
    "harmony": '<|channel|>commentary to=functions.search <|constrain|>json<|message|>{"q": "a"}<|call|>',
    "harmony2": '<|channel|>commentary to=functions.search <|constrain|>json<|message|>{"q": "a"}',
    "phi": 'functools[{"name": "search", "arguments": {"q": "a"}}]',
    "internlm": '<|action_start|><|plugin|>\n{"name": "search", "parameters": {"q": "a"}}<|action_end|>',
    "cohere": (
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "search", "parameters": {"q": "a"}}]<|END_ACTION|>'
    ),
    "nemotron": '<TOOLCALL>[{"name": "search", "arguments": {"q": "a"}}]</TOOLCALL>',
    "seed": "<seed:tool_call>\n<function=search>\n<parameter=q>a</parameter>\n</function>\n</seed:tool_call>",
    "longcat": (
        "<longcat_tool_call>search\n<longcat_arg_key>q</longcat_arg_key>\n"
        "<longcat_arg_value>a</longcat_arg_value>\n</longcat_tool_call>"
    ),
    "olmo": '<function_calls>\nsearch(q="a")\n</function_calls>',
    "jamba": '<tool_calls>[\n{"name": "search", "arguments": {"q": "a"}}\n]</tool_calls>',
    "args closing": ('<tool_call>\n{"name": "search", "arguments": {"q": "what is </tool_call> for"}}\n</tool_call>'),
    "noclose": '<tool_call>\n{"name": "search", "arguments": {"q": "a"}}',
    "broken": '<tool_call>\n{"name": "search", "arguments": {"q": "a"}\n</tool_call>',
    "lfm": '<|tool_call_start|>[search(q="a")]<|tool_call_end|>',
    "function gemma": "<start_function_call>call:search{q:<escape>a<escape>}<end_function_call>",
}

HERMES = CALLS["hermes"]
NOTE = "set the tool-call parser or template of the model at the server, or tool_calls of this node to text"


def cut(text: str, size: int) -> list[str]:
    return ["".join(piece) for piece in batched(text, size)]


def split(pieces: Sequence[str], *, is_cut: bool = False) -> tuple[str, str]:
    """What is shown, and the calls."""
    reader = UnparsedCalls({"search"}, is_cut)
    shown = "".join([*map(reader.feed, pieces), reader.finish()])
    return shown, reader.block


def talk(*turns: str, size: int = 3, **params: object) -> Outcome:
    return run([says(*cut(turn, size)) for turn in turns], FOUND, params)


# --- what is one -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", ["", "I look.\n\n", "So: "])
@pytest.mark.parametrize("size", [1, 3, 7, 1_000])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_markup_with_an_offered_tool_at_the_end_of_a_turn_is_a_call(call: str, size: int, before: str) -> None:
    assert split(cut(before + call, size)) == (before, call)


def test_every_tag_of_the_list_is_tried() -> None:
    assert [tag for tag in CLOSING_TAGS if not any(tag in call for call in CALLS.values())] == []


ANSWERS = {
    "in a code block": "```\n{}\n```",
    "in a code block that is not closed": "Like this:\n~~~xml\n{}",
    "as inline code": "`{}`",
    "with prose behind it": "{} is how it is written.",
    "with prose on the next line": "{}\nThat is the form.",
    "with a list behind it": "{}\n- This is the form.",
}


@pytest.mark.parametrize("size", [1, 5, 1_000])
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_answer_may_quote_a_call(call: str, answer: str, size: int) -> None:
    text = answer.replace("{}", call)

    assert split(cut(text, size)) == (text, "")


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_of_a_tool_that_is_not_offered_is_an_answer(call: str) -> None:
    text = call.replace("search", "find")

    assert split(cut(text, 3)) == (text, "")


@pytest.mark.parametrize(
    "text", ["Use <tool_call> or [TOOL_CALLS].", "<tool_call>", "if a <b and c> d: functools[0]", '{"name": "search"}']
)
def test_tags_and_bare_json_are_no_calls(text: str) -> None:
    assert split(cut(text, 2)) == (text, "")


def test_a_call_behind_one_that_was_quoted_is_found() -> None:
    quoted = f"{HERMES} is what I write:\n"

    assert split(cut(quoted + HERMES, 3)) == (quoted, HERMES)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_of_a_cut_turn_no_begun_call_is_shown(call: str) -> None:
    name_ends = call.index("search") + len("search") + 1

    for end in range(name_ends, len(call)):
        assert split(["Well. ", call[:end]], is_cut=True) == ("Well. ", call[:end])


PIECES = [*CLOSING_TAGS, *CALLS.values(), "search", "```", "\n", " ", "a", "{", "}", "<", "[", "(", "f", ".", '"']


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.data())
def test_text_is_split_the_same_however_it_is_cut(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    places = data.draw(st.lists(st.integers(0, len(text)), max_size=8).map(sorted))
    parts = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]

    whole = split([text])

    assert "".join(whole) == text
    assert split(parts) == split(list(text)) == whole


@given(st.sampled_from(sorted(CALLS)), st.data())
def test_while_it_streams_no_piece_of_a_call_is_shown(name: str, data: st.DataObject) -> None:
    call = CALLS[name]
    place = data.draw(st.integers(0, len(call)))
    reader = UnparsedCalls({"search"})

    shown = [reader.feed(piece) for piece in ("Well. ", call[:place], call[place:])]

    assert "".join(shown) == "Well. "
    assert reader.take_back() == call


# --- what follows ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 1_000])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_model_is_told_once_and_calls_natively(call: str, size: int) -> None:
    outcome = run([says(*cut(f"I look.\n{call}", size)), search("b"), ANSWER], FOUND)

    assert (outcome.error, outcome.stop_reason, outcome.text) == (None, "answered", "Done.")
    assert [request["tool_parameters"] for request in outcome.tools.requests] == [{"q": "b"}]
    *_, turn, note = outcome.model.prompts[1]
    assert (turn["role"], turn["content"]) == ("assistant", f"I look.\n{call}")
    assert (note["role"], note["content"]) == ("user", template.UNPARSED_CALL)
    assert not any(NOTE in each for each in outcome.notes)


@pytest.mark.parametrize("words", ["", "Here it comes.", "This is plainly an answer. " * 40])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_second_time_ends_the_run_without_markup(call: str, words: str) -> None:
    outcome = talk(f"First.\n{call}", f"{words}\n\n{call}")

    assert (outcome.error, outcome.stop_reason) == (None, "unparsed_call")
    assert outcome.tools.requests == []
    assert outcome.text == (words.strip() or user_texts.NO_ANSWER["unparsed_call"]["en"])
    assert len([note for note in outcome.notes if NOTE in note]) == 1


def test_what_was_shown_before_the_first_one_stays_and_is_no_answer_twice() -> None:
    words = "This is plainly an answer. " * 40

    outcome = talk(f"{words}\n{HERMES}", f"Again.\n{HERMES}")

    assert outcome.text == f"{words.strip()}\n\nAgain."


def test_a_draft_that_is_judged_ends_too_and_its_words_are_shown() -> None:
    outcome = talk(HERMES, f"So far.\n{HERMES}", answer_criteria="It names a price.")

    assert (outcome.stop_reason, outcome.text) == ("unparsed_call", "So far.")


def test_shown_thoughts_hold_no_markup() -> None:
    outcome = talk(f"I look.\n{HERMES}", "Done.", emit_intermediate_thoughts=True)

    assert outcome.text == "<think>\nI look.\n</think>\n\nDone."


def test_in_a_thought_it_is_no_call() -> None:
    outcome = talk(f"<think>\n{HERMES}\n</think>\nDone.")

    assert (outcome.stop_reason, outcome.text, len(outcome.model.requests)) == ("answered", "Done.", 1)


def test_without_tools_it_is_the_answer() -> None:
    outcome = run([says(HERMES)], {})

    assert (outcome.stop_reason, outcome.text) == ("answered", HERMES)


def test_a_turn_with_native_calls_runs_these_and_hides_the_markup() -> None:
    both = calls(("search", {"q": "b"}), text=f"I look.\n{HERMES}")

    outcome = run([both, ANSWER], FOUND, {"emit_intermediate_thoughts": True})

    assert len(outcome.tools.requests) == 1
    assert "tool_call" not in outcome.text


def test_after_the_last_round_it_is_refused_as_other_calls_are() -> None:
    outcome = run([search(), says(f"What I have.\n{HERMES}")], FOUND, {"maximum_iterations": 1})

    assert (outcome.stop_reason, outcome.text) == ("iteration_limit", "What I have.")


def test_a_cut_turn_says_why_it_was_cut() -> None:
    begun = f"Well, first I look. {HERMES[:40]}"

    outcome = run([says(begun, finish_reason="length")], FOUND)

    assert outcome.stop_reason == "length"
    assert outcome.text.startswith("Well, first I look.")
    assert "tool_call" not in outcome.text


def test_the_state_has_no_markup() -> None:
    outcome = talk(HERMES, f"So far.\n{HERMES}", extra_outputs="state")
    later = run([ANSWER], FOUND, {"state": outcome.variables["state"]})

    said = [message["content"] for message in later.model.prompts[0]]
    assert "So far." in said
    assert not any("<tool_call>" in text for text in said)


SUBMITTED = '<tool_call>\n{"name": "submit_answer", "arguments": {"city": "Bonn"}}\n</tool_call>'


def test_with_a_schema_the_answer_as_a_text_call_is_not_taken() -> None:
    schema = {"answer_schema": json.dumps(CITY)}

    corrected = run([says(SUBMITTED), calls(("submit_answer", {"city": "Bonn"}))], {}, schema)
    ended = run([says(SUBMITTED), says(SUBMITTED)], {}, schema)

    assert (corrected.stop_reason, corrected.variables["structured_output"]) == ("answered", {"city": "Bonn"})
    assert (ended.stop_reason, ended.variables["structured_output"]) == ("unparsed_call", None)
    assert ended.text == user_texts.NO_ANSWER["unparsed_call"]["en"]


def test_a_call_that_needs_approval_neither_runs_nor_asks() -> None:
    guarded = {"approval_required": "search"}

    ended = run([says(HERMES), says(HERMES)], FOUND, guarded)
    corrected = run([says(HERMES), search()], FOUND, guarded)

    assert (ended.stop_reason, ended.variables["pending_calls"]) == ("unparsed_call", [])
    assert (corrected.stop_reason, len(corrected.variables["pending_calls"])) == ("approval_required", 1)
    assert ended.tools.requests == corrected.tools.requests == []


def planned(*steps: Step) -> Outcome:
    return run(list(steps), FOUND, {}, blueprint=PLAN_AND_REFLECT)


PLANNED = '<tool_call>\n{"name": "submit_plan", "arguments": {"subtasks": ["alpha"]}}\n</tool_call>'


def test_a_subtask_ends_the_same_way_and_the_run_says_so() -> None:
    outcome = planned(plans("alpha"), says(HERMES), says(f"Near.\n{HERMES}"), says("Not found."))

    assert (outcome.error, outcome.stop_reason, outcome.text) == (None, "unparsed_call", "Not found.")
    assert outcome.variables["subtasks"][0]["attempts"] == 1
    assert outcome.variables["subtasks"][0]["answer"] == template.SUBTASK_FAILED + template.NEAREST.format(
        answer="Near."
    )
    assert len([note for note in outcome.notes if NOTE in note]) == 1


def test_a_plan_written_as_text_is_asked_for_once_more() -> None:
    outcome = planned(says(PLANNED), When(template.UNPARSED_CALL, plans("alpha")), says(HERMES), says(HERMES), ANSWER)

    assert outcome.variables["plan"] == ["alpha"]


def test_where_no_plan_comes_a_subtask_is_not_told_again() -> None:
    outcome = planned(says(PLANNED), says(PLANNED), says(HERMES), says("Nothing was found."))

    assert (outcome.stop_reason, outcome.text) == ("unparsed_call", "Nothing was found.")
    assert len(outcome.model.requests) == 4


REFLECTED = (
    '<tool_call>\n{"name": "submit_reflection", "arguments": {"is_completed": true, "advice": ""}}\n</tool_call>'
)


def test_a_judgement_as_text_ends_the_attempts() -> None:
    outcome = planned(plans("alpha"), says("A."), says(REFLECTED), says(REFLECTED), says("A, perhaps."))

    assert (outcome.stop_reason, outcome.text) == ("unparsed_call", "A, perhaps.")
    assert outcome.variables["subtasks"][0]["attempts"] == 1


def test_a_review_as_text_leaves_the_draft_the_answer_and_the_note_says_what_to_set() -> None:
    review = '<tool_call>\n{"name": "submit_review", "arguments": {"passes": true, "problems": []}}\n</tool_call>'

    outcome = talk("A lamp costs 40.", review, review, answer_criteria="It names a price.")

    assert (outcome.stop_reason, outcome.text) == ("answered", "A lamp costs 40.")
    assert len([note for note in outcome.notes if NOTE in note]) == 1
