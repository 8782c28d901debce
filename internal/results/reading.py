"""More of a result that was too long to be shown whole: the part from an offset on, or the places where a text stands.

In: the arguments of a ``read_result`` call and the results that its conversation may read. Out: what the model reads,
within the limit of one result. What was never kept of a result is a line in its text, at its place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from internal.conversation.long_results import ReadableResults
from internal.text.finding import Place, places
from internal.text.kept_text import Excerpt
from internal.text.notes import OurWords
from prompt import template

_MAX_PLACES = 2_000
"""Places that are shown at most; all are counted."""
_AROUND = (60, 400)
"""Characters that are shown before and after a place: at least, and at most."""
_MAX_NAMED = 20
"""Ids that are named to a model that asked for another."""
_MAX_QUOTE_LENGTH = 50


@dataclass(frozen=True)
class Reply:
    """What the model reads, and for the log why that is not what it asked for."""

    text: str
    error: OurWords | None = None


def read_result(results: ReadableResults, arguments: Mapping[str, Any], limit: int) -> Reply:
    """Answer a call with valid arguments in at most ``limit`` characters, which are at least 1,000."""
    name, wanted, offset = str(arguments["id"]), str(arguments.get("find", "")), int(arguments.get("offset", 0))
    whole = results.get(name)
    if whole is None and name in results.ids:
        return Reply(template.RESULT_IS_GONE.format(id=name), OurWords("the full text is not kept any more"))
    if whole is None:
        known = ", ".join(results.ids[-_MAX_NAMED:])
        text = template.UNKNOWN_RESULT.format(id=name[:_MAX_QUOTE_LENGTH], known=known)
        return Reply(text, OurWords("this conversation has no long result of that id"))
    if wanted:
        return Reply(_found(name, whole, wanted, limit))
    if offset >= len(whole.text):
        text = template.BEYOND_THE_END.format(id=name, length=len(whole.text))
        return Reply(text, OurWords("the offset is beyond the end"))
    return Reply(_part(name, whole.text, offset, limit))


def _part(name: str, text: str, offset: int, limit: int) -> str:
    """As much as fits from the offset on, and where it goes on."""
    facts = {"id": name, "start": offset, "length": len(text)}
    to_the_end = template.READ_TO_THE_END.format(**facts)
    if len(text) - offset + len(to_the_end) <= limit:
        return text[offset:] + to_the_end
    end = offset + limit - len(template.READ_IN_PART.format(**facts, end=len(text)))
    return text[offset:end] + template.READ_IN_PART.format(**facts, end=end)


def _found(name: str, whole: Excerpt, wanted: str, limit: int) -> str:
    """The first places with their surroundings, as many as fit, and where the next one is."""
    everywhere = places(whole.text, wanted)
    first = list(islice(everywhere, _MAX_PLACES + 1))
    count = len(first) + sum(1 for _ in everywhere)
    header = (template.FOUND if count else template.NOT_FOUND).format(id=name, count=count, length=len(whole.text))
    if whole.missing:
        header += template.NOT_SEARCHED
    more = template.FOUND_MORE.format(id=name, count=count, offset=len(whole.text))
    entries, shown = _entries(whole.text, first[:_MAX_PLACES], limit - len(header) - len(more))
    if shown < count:
        entries.append(template.FOUND_MORE.format(id=name, count=count - shown, offset=first[shown].start))
    return "".join([header, *entries])


def _entries(text: str, found: Sequence[Place], room: int) -> tuple[list[str], int]:
    """Places with their surroundings, and how many places are in them."""
    least, most = _AROUND
    around = max(least, min(most, room // max(1, len(found)) // 2 - least))
    entries, shown = list[str](), 0
    for entry, in_it in _excerpts(text, found, around):
        cut = entry[:room] if not entries else entry
        if len(cut) > room:
            break
        entries.append(cut)
        room -= len(cut)
        shown += in_it
    return entries, shown


def _excerpts(text: str, found: Sequence[Place], around: int) -> Iterator[tuple[str, int]]:
    """Each place with its surroundings; a place that stands in the excerpt before needs none of its own."""
    at, covered = 0, 0
    while at < len(found):
        first = at
        begin = min(max(found[at].start - around, covered), found[at].start)
        covered = min(found[at].end + around, len(text))
        while at < len(found) and found[at].end <= covered:
            at += 1
        yield template.FOUND_AT.format(offset=found[first].start, text=text[begin:covered]), at - first
