"""A strategy's run with everything that a page shows of it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from devhost.node.outputs.run import Run, RunEnd
from devhost.node.parameters import files_among
from devhost.page.calls import PromptChanges, ShownSource, ShownTool, changes_since, offered_tools, sources_of
from devhost.page.contents import Axis, Passage, ShownFile, every, passages, shown_file
from devhost.protocol.wire import JsonObject
from devhost.trace.runs import TracedRun, run_of
from devhost.trace.timeline import Span, timeline

FEW_ROWS = 60
"""So many rows are read at a glance."""


@dataclass(frozen=True)
class ShownRun:
    """What an Agent node holds; of a strategy that is played alone, the whole turn."""

    number: int
    traced: TracedRun
    run: Run
    spans: list[Span]
    axis: Axis
    sources: list[ShownSource]
    given: list[ShownFile]
    """The files of the question."""
    files: list[ShownFile]
    goes_on: bool = False
    """Whether a process still writes what follows."""

    @property
    def ending(self) -> RunEnd:
        return self.run.ending

    @property
    def source_anchor(self) -> str:
        """The fragment of the page's address that leads to a source, without its number."""
        return f"source-{self.number}-"

    @cached_property
    def answer(self) -> list[Passage]:
        return passages(self.run.outputs.text, self.sources, self.source_anchor)

    @property
    def variables(self) -> Mapping[str, object]:
        """Those that no card of the page shows."""
        given = self.run.outputs.variables
        return {name: value for name, value in given.items() if name != "sources" or not self.sources}

    @property
    def parameters(self) -> Mapping[str, object]:
        """What the node gave the strategy, without the question and what is empty."""
        given = self.traced.parameters
        return {name: value for name, value in given.items() if name != "query" and value not in (None, "", [], {})}

    @property
    def usage(self) -> JsonObject:
        if isinstance(self.run.usage, dict):
            return self.run.usage
        return {}

    @cached_property
    def rows(self) -> list[Span]:
        return list(every(self.spans))

    def anchor(self, span: Span) -> str:
        """The fragment of the page's address that leads to its row. It stays the same while the run goes on.

        The ids of log entries are any text, which a fragment cannot be.
        """
        return f"row-{self.number}-{hashlib.blake2s(span.id.encode(errors='replace'), digest_size=6).hexdigest()}"

    def is_open(self, span: Span) -> bool:
        """Whether the children of a group are shown at first: in a long run, if one has failed or has not ended."""
        return len(self.rows) <= FEW_ROWS or any(each.status != "success" for each in every(span.children))

    @cached_property
    def offered(self) -> Mapping[ShownTool, str]:
        """Each tool as the models of the run were told of it, with its fragment of the page's address."""
        calls = (call for call in self.traced.calls if call.kind == "llm")
        tools = dict.fromkeys(tool for call in calls for tool in offered_tools(call))
        return {tool: f"tool-{self.number}-{position}" for position, tool in enumerate(tools, start=1)}

    @cached_property
    def prompt_changes(self) -> Mapping[str, PromptChanges]:
        return changes_since(self.traced.calls)


def shown_run(
    number: int, traced: TracedRun, strategy: str, folder: Path | None = None, *, is_written: bool = False
) -> ShownRun:
    """`folder`: where the page will be, if that is known. `strategy`: as the trace names it."""
    run = run_of(traced, strategy)
    sources = sources_of(run.outputs.variables.get("sources"), traced)
    return ShownRun(
        number=number,
        traced=traced,
        run=run,
        spans=timeline(traced),
        axis=Axis(traced.began, traced.finished),
        sources=sources,
        given=[shown_file(file, folder) for file in files_among(traced.parameters)],
        files=[shown_file(file, folder) for file in run.outputs.files],
        goes_on=is_written and traced.end is None,
    )
