"""Searches the rows of a run: names, arguments, results, errors, and what models wrote.

In: a run and words. Out: the ids of rows. Prompts are left out, because each repeats those before it.
"""

from collections.abc import Iterator, Sequence

from devhost.page.calls.opened import model_call, tool_call
from devhost.page.parts.shown import ShownRun
from devhost.page.parts.words import pretty
from devhost.trace.calls import Call
from devhost.trace.timeline import Span


def matching_rows(shown: ShownRun, words: str) -> list[str]:
    """Those that have all the words, each as a part of any text, in the order of the page; none without words."""
    wanted = words.casefold().split()
    if not wanted:
        return []
    return [shown.anchors[id(span)] for _, span in shown.rows if _has_all(wanted, "\n".join(_texts(span)).casefold())]


def _has_all(words: Sequence[str], text: str) -> bool:
    return all(word in text for word in words)


def row_text(span: Span) -> str:
    """All that the row holds, uncut."""
    return "\n\n".join(filter(None, [*_texts(span), *(_prompt(call) for call in span.calls)])) + "\n"


def _texts(span: Span) -> Iterator[str]:
    yield span.label
    yield span.error
    yield from span.printed
    for call in span.calls:
        if call.kind == "llm":
            said = model_call(call)
            yield from (said.thought, said.text, said.error)
            yield from (f"{wrote.name} {pretty(wrote.values)}" for wrote in said.called)
        else:
            asked = tool_call(call)
            yield from (asked.provider, pretty(asked.arguments), asked.error, asked.traceback)
            yield from (pretty(result.value) for result in asked.results)
    if not span.calls and span.data:
        yield pretty(span.data)


def _prompt(call: Call) -> str:
    if call.kind != "llm":
        return ""
    return "\n\n".join(f"[{message.role}]\n{message.text}" for message in model_call(call).prompt)
