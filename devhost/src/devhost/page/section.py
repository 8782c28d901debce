"""A run with everything that its page asks of it."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from devhost.node.outputs.outputs import NodeOutputs
from devhost.node.outputs.run import Ending, Run
from devhost.node.parameters import files_among
from devhost.page.calls import (
    OfferedTool,
    PromptChanges,
    Source,
    calls_before,
    offered_tools,
    prompt_changes,
    prompt_of,
    sources_of,
)
from devhost.page.contents import (
    Attachments,
    Axis,
    Passage,
    ShownFile,
    add_moments,
    lines_of_calls,
    open_groups,
    passages,
)
from devhost.protocol.wire import JsonObject
from devhost.trace.lines import PrintedLine, Trace
from devhost.trace.runs import TracedRun, run_of
from devhost.trace.timeline import Span, timeline

# A run with all that a page asks of it.


@dataclass(frozen=True)
class ShownRun:
    """One section of a page."""

    number: int
    traced: TracedRun
    run: Run
    spans: list[Span]
    axis: Axis
    answer: list[Passage]
    sources: list[Source]
    given: list[ShownFile]
    """The files of the question."""
    files: list[ShownFile]
    printed_in: Mapping[str, list[PrintedLine]]
    """By the id of a tool's call."""
    printed_around: list[PrintedLine]
    """Before and after the run."""
    goes_on: bool = False
    """Whether a process still writes what follows."""

    @property
    def outputs(self) -> NodeOutputs:
        return self.run.outputs

    @property
    def variables(self) -> Mapping[str, object]:
        return {name: value for name, value in self.outputs.variables.items() if name != "sources" or not self.sources}

    @property
    def parameters(self) -> Mapping[str, object]:
        """What the node gave the strategy, without the question and what is empty."""
        given = self.traced.parameters
        return {name: value for name, value in given.items() if name != "query" and not _is_empty(value)}

    @property
    def empty_parameters(self) -> Sequence[str]:
        return [name for name, value in self.traced.parameters.items() if _is_empty(value)]

    @property
    def usage(self) -> JsonObject:
        return self.run.usage if isinstance(self.run.usage, dict) else {}

    @property
    def usage_is_summed(self) -> bool:
        """Whether it is the sum of what the answers of models reported."""
        return self.run.usage is self.run.calls.spent

    @property
    def ending(self) -> Ending:
        return Ending("not ended", "bad") if self.traced.end is None else self.run.ending

    @cached_property
    def rows(self) -> list[tuple[int, Span]]:
        """Each row with its depth, in the order of the page."""
        return list(_rows(self.spans))

    @cached_property
    def anchors(self) -> Mapping[int, str]:
        """By the `id()` of a span, the fragment of the page's address that leads to its row.

        It stays the same while the run goes on. The ids of log entries are any text, which a fragment cannot be.
        """
        seen = Counter[str]()
        found = {}
        for _, span in self.rows:
            digest = hashlib.blake2s(span.id.encode(errors="replace"), digest_size=6).hexdigest()
            seen[digest] += 1
            again = f"-{seen[digest]}" if seen[digest] > 1 else ""
            found[id(span)] = f"row-{self.number}-{digest}{again}"
        return found

    def is_open(self, span: Span) -> bool:
        """Whether the children of a group are shown at first."""
        return id(span) in self._open_groups

    @cached_property
    def _open_groups(self) -> Collection[int]:
        return open_groups(self.spans)

    @cached_property
    def offered(self) -> Mapping[OfferedTool, str]:
        """Each tool as the models of the run were told of it, with its fragment of the page's address."""
        calls = (call for call in self.traced.calls if call.kind == "llm")
        tools = dict.fromkeys(tool for call in calls for tool in offered_tools(call))
        return {tool: f"tool-{self.number}-{position}" for position, tool in enumerate(tools, start=1)}

    @cached_property
    def prompt_changes(self) -> Mapping[str, PromptChanges]:
        """By the id of a model call, how its prompt differs from the one of the round before."""
        before, calls = calls_before(self.traced.calls), {call.id: call for call in self.traced.calls}
        return {key: prompt_changes(prompt_of(call), prompt_of(calls[key])) for key, call in before.items()}

    @property
    def json(self) -> list[Any]:
        return self.outputs.json_of_strategy()

    def count(self, kind: str) -> int:
        return sum(call.kind == kind for call in self.traced.calls)


def shown_run(
    number: int, traced: TracedRun, trace: Trace, attachments: Attachments, *, is_written: bool = False
) -> ShownRun:
    run = run_of(traced, trace.header.strategy)
    sources = sources_of(run.outputs.variables.get("sources"), traced)
    numbers = {source.number for source in sources}
    spans = timeline(traced)
    printed_around = add_moments(spans, traced)
    return ShownRun(
        number=number,
        traced=traced,
        run=run,
        spans=spans,
        axis=Axis(traced.began, traced.finished),
        answer=passages(run.outputs.text, numbers, f"source-{number}-"),
        sources=sources,
        given=attachments.shown(files_among(traced.parameters)),
        files=attachments.shown(run.outputs.files),
        printed_in=lines_of_calls(traced),
        printed_around=printed_around,
        goes_on=is_written and traced.end is None,
    )


def _is_empty(value: object) -> bool:
    return value is None or value in ("", [], {})


def _rows(spans: Sequence[Span], depth: int = 0) -> Iterator[tuple[int, Span]]:
    for span in spans:
        yield depth, span
        yield from _rows(span.children, depth + 1)
