"""Large inputs from a model: cases for the benchmark of pauses."""

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice

from benchmarks.answers import Answer, Failure, Json, one_by_one, prepared
from benchmarks.pauses import Case
from benchmarks.scenario import ANSWER, PROSE, SEARCH, Scenario, filled
from devhost.models.backend import chunk, tool_call
from strategies.gpt5_plan_and_reflect import GPT5PlanAndReflectStrategy
from tests.support.wire import MODEL, calls, says, text_message

A_FEW = 4
"""Number of characters in a small chunk."""
SMALL = 0.05
"""Share of the size for cases with small chunks. Each chunk is a line of about 300 characters, so 2 MB of text would be
150 MB of lines."""
SNAPSHOT_STEP = 4
ANSWER_SCHEMA = json.dumps({"type": "object", "properties": {"items": {"type": "array"}}, "required": ["items"]})


def pieces(text: str) -> Iterator[Json]:
    """Yield a text as small chunks."""
    for start in range(0, len(text), A_FEW):
        yield chunk(MODEL, text=text[start : start + A_FEW])
    yield chunk(MODEL, finish_reason="stop")


def says_at_once(pattern: str, before: str = "", after: str = "", **params: object) -> Callable[[int], Scenario]:
    """Return a case with one chunk of text. The node has a tool, so the text could still be a remark before a call."""
    return lambda size: Scenario([prepared(says(before + filled(pattern, size) + after))], params={**SEARCH, **params})


def says_in_pieces(pattern: str, before: str = "", **params: object) -> Callable[[int], Scenario]:
    return lambda size: Scenario(
        [one_by_one(lambda: pieces(before + filled(pattern, size)))], params={**SEARCH, **params}
    )


def calls_with(arguments: Callable[[int], str], finish_reason: str = "tool_calls") -> Callable[[int], Scenario]:
    """Return a case with one tool call whose arguments arrive in one chunk."""
    return lambda size: Scenario(
        [prepared(calls(("search", arguments(size)), finish_reason=finish_reason)), ANSWER],
        [prepared([])],
        SEARCH,
    )


def calls_in_fragments(size: int) -> Scenario:
    arguments = json.dumps({"q": filled(PROSE, size)})

    def fragments() -> Iterator[Json]:
        for start in range(0, len(arguments), A_FEW):
            entry = tool_call("c" if not start else "", "search" if not start else "", arguments[start : start + A_FEW])
            yield chunk(MODEL, tool_calls=[entry])
        yield chunk(MODEL, finish_reason="tool_calls")

    return Scenario([one_by_one(fragments), ANSWER], [prepared([])], SEARCH)


def calls_in_snapshots(finish_reason: str) -> Callable[[int], Scenario]:
    """Return a case in which every chunk has the arguments written so far."""

    def scenario(size: int) -> Scenario:
        arguments = json.dumps({"q": filled(PROSE, size)})

        def snapshots() -> Iterator[Json]:
            for end in range(SNAPSHOT_STEP, len(arguments) + SNAPSHOT_STEP, SNAPSHOT_STEP):
                yield chunk(MODEL, tool_calls=[tool_call("c", "search", arguments[:end])])
            yield chunk(MODEL, finish_reason=finish_reason)

        return Scenario([one_by_one(snapshots), ANSWER], [prepared([])], SEARCH)

    return scenario


def many_calls(name: str) -> Callable[[int], Scenario]:
    """Return a case with a turn of calls of 200 characters each."""

    def scenario(size: int) -> Scenario:
        wanted = [(name, {"q": f"{number} {filled(PROSE, 180)}"}) for number in range(size // 200 + 1)]
        return Scenario([prepared(calls(*wanted)), ANSWER], [prepared([])], SEARCH)

    return scenario


def calls_of_two_characters(size: int) -> Scenario:
    """Return a turn of this size with as many calls as possible, each in its own chunk."""

    def each() -> Iterator[Json]:
        for number in range(size // 300 + 1):
            yield chunk(MODEL, tool_calls=[tool_call(f"c{number}", "search", "{}")])
        yield chunk(MODEL, finish_reason="tool_calls")

    return Scenario([one_by_one(each), ANSWER], [prepared([text_message(filled(PROSE, 600))])], SEARCH)


def calls_in_one_chunk(size: int) -> Scenario:
    entries = [tool_call(f"c{number}", "search", "{}") for number in range(size // 100 + 1)]
    turn = [chunk(MODEL, tool_calls=entries, finish_reason="tool_calls")]
    return Scenario([prepared(turn), ANSWER], [prepared([text_message("found")])], SEARCH)


def pictures(size: int) -> Scenario:
    """Return a turn of pictures with this total size."""
    data = base64.b64encode(bytes(size * 3 // 16)).decode()
    picture = chunk(MODEL)
    part = {"type": "image", "format": "png", "base64_data": data, "mime_type": "image/png", "url": ""}
    picture["delta"]["message"]["content"] = [part]
    return Scenario([prepared([picture] * 4 + says("Done."))], params=SEARCH)


def priced(size: int) -> Scenario:
    """Return a turn whose price has a few characters and millions of digits."""
    turn = says("Done.")
    turn[-1]["delta"]["usage"] = {
        **turn[-1]["delta"]["usage"],
        "total_price": f"1E+{100 * size}",
        "currency": "x" * size,
    }
    return Scenario([prepared(turn)], params=SEARCH)


def small_values(size: int) -> str:
    """Return the JSON of an object with many small values."""
    return json.dumps({f"key{number}": number for number in range(size // 18)})


def handed_over(size: int) -> Scenario:
    """Return a run with an answer in a schema, of many small objects."""
    items = [{"name": f"item {number}", "price": number, "note": PROSE} for number in range(size // 130 + 1)]
    turn = prepared(calls(("submit_answer", {"items": items})))
    return Scenario([turn], params={"answer_schema": ANSWER_SCHEMA})


def parts(size: int) -> Scenario:
    """Return a turn whose content is a list of small parts."""
    listed = chunk(MODEL, finish_reason="stop")
    listed["delta"]["message"]["content"] = [{"type": "text", "data": PROSE} for _ in range(size // len(PROSE) + 1)]
    return Scenario([prepared([listed])], params=SEARCH)


def opaque(size: int) -> Scenario:
    """Return a run with reasoning that the provider requires in the next request."""
    turn = calls(("search", {"q": "x"}))
    turn[-1]["delta"]["message"]["opaque_body"] = {"items": [{"id": n, "text": PROSE} for n in range(size // 100 + 1)]}
    return Scenario([prepared(turn), ANSWER], [prepared([])], SEARCH)


def planned(size: int) -> Scenario:
    """Return a run with a plan of long subtasks, each of which has a long answer."""
    subtask = filled(PROSE, size // 8)
    answers: Sequence[Answer | Failure] = [
        prepared(calls(("submit_plan", {"subtasks": [subtask, subtask]}))),
        *(prepared(says(turn)) for turn in islice(cycle([subtask]), 3)),
    ]
    return Scenario(answers)


def cut_text(size: int) -> str:
    return '{"q": "' + filled(PROSE, size)


SHOWN = {"emit_intermediate_thoughts": True}

CASES = [
    Case("text in one chunk", says_at_once(PROSE)),
    Case("text in chunks of 4", says_in_pieces(PROSE), share=SMALL),
    Case("text without a space", says_at_once("a")),
    Case("text of line breaks", says_at_once("\n")),
    Case("text of `<`", says_at_once("<")),
    Case("text of `a ", says_at_once("`a "), share=0.2),
    Case("text of ```", says_at_once("```\ncode\n")),
    Case("text of <think", says_at_once("<think ")),
    Case("text of <think>", says_at_once("<think>")),
    Case("text of </think>", says_at_once("</think>")),
    Case("text of thoughts", says_at_once("<think>a</think>b\n")),
    Case("text of citations", says_at_once("as [1] and [2] say, ")),
    Case("text of other scripts", says_at_once("素早い茶色の狐が飛ぶ。")),
    Case("text in parts", parts),
    Case("thought in one chunk, hidden", says_at_once(PROSE, "<think>", "</think>Done.")),
    Case("thought in one chunk, shown", says_at_once(PROSE, "<think>", "</think>Done.", **SHOWN)),
    Case("thought in chunks of 4", says_in_pieces(PROSE, "<think>"), share=SMALL),
    Case("thought that is never closed", says_at_once(PROSE, "<think>")),
    Case("thought of `a ", says_at_once("`a ", "<think>", "</think>Done."), share=0.2),
    Case("call in one chunk", calls_with(lambda size: json.dumps({"q": filled(PROSE, size)}))),
    Case("call of small values", calls_with(small_values)),
    Case("call of quotes and escapes", calls_with(lambda size: json.dumps({"q": filled('"\\\n', size // 2)}))),
    Case("call in fragments of 4", calls_in_fragments, share=SMALL),
    Case("call in snapshots every 4", calls_in_snapshots("tool_calls"), share=0.024),
    Case("call in snapshots, cut", calls_in_snapshots("length"), share=0.024),
    Case("call cut by length", calls_with(cut_text, "length"), share=3),
    Case("call cut, without saying so", calls_with(cut_text), share=3),
    Case("call cut in small values", calls_with(lambda size: small_values(size)[:-1]), share=3),
    Case("call that is not JSON", calls_with(lambda size: filled(PROSE, size)), share=3),
    Case("call of brackets", calls_with(lambda size: filled("[", size))),
    Case("call of secrets' names", calls_with(lambda size: filled('{"token": "abcdef", "password": ', size))),
    Case("calls by the thousand", many_calls("search"), share=0.1),
    Case("calls by the thousand, unknown tool", many_calls("nope"), share=0.1),
    Case("calls by the thousand, a chunk each", calls_of_two_characters),
    Case("calls by the thousand in one chunk", calls_in_one_chunk),
    Case("pictures", pictures, share=8),
    Case("a price of millions of digits", priced),
    Case("an answer in a schema", handed_over),
    Case("an opaque body", opaque),
    Case("an error of the model", lambda size: Scenario([Failure(filled(PROSE, size))], params=SEARCH), share=3),
    Case("a plan with long findings", planned, strategy=GPT5PlanAndReflectStrategy),
]
