"""Which model call came before which, in the same loop of rounds.

In: the spans of a timeline. Out: by the id of a model call, the one of the round before.
"""

from collections.abc import Iterator, Mapping, Sequence

from devhost.page.calls.opened import Said, prompt_of
from devhost.trace.calls import Call
from devhost.trace.timeline import Span

type Found = tuple[int, int, Call]
"""The `id()` of the list in which the span stands, of the list in which its group stands, and the call."""


def calls_before(spans: Sequence[Span]) -> Mapping[str, Call]:
    """Calls of one loop stand beside each other, or in groups that do, and their prompts begin with the same messages.

    Without an entry: the first call of a loop, and one whose prompt begins differently, such as a judgement.
    """
    before: dict[str, Call] = {}
    loops: dict[tuple[int, tuple[Said, ...]], Call] = {}
    for own, around, call in sorted(_model_calls(spans, 0), key=lambda found: found[2].began):
        begin = _beginning(prompt_of(call))
        for place in (own, around):
            earlier = loops.get((place, begin))
            if earlier is not None and earlier.ended is not None and earlier.ended <= call.began:
                before[call.id] = earlier
                break
        loops[own, begin] = loops[around, begin] = call
    return before


def _model_calls(spans: Sequence[Span], around: int) -> Iterator[Found]:
    for span in spans:
        for call in span.calls:
            if call.kind == "llm":
                yield id(spans), around, call
        yield from _model_calls(span.children, id(spans))


def _beginning(prompt: Sequence[Said]) -> tuple[Said, ...]:
    """The messages up to the first one of the user's."""
    first = next((place for place, said in enumerate(prompt) if said.role == "user"), 0)
    return tuple(prompt[: first + 1])
