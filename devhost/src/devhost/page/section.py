"""One run of a strategy, with everything that a page shows about it."""

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
"""How many rows a person can take in at a glance."""


@dataclass(frozen=True)
class ShownRun:
    """A strategy's run as a section of the page: the content of an Agent node, or the turn of a strategy run alone."""

    number: int
    traced: TracedRun
    run: Run
    spans: list[Span]
    axis: Axis
    sources: list[ShownSource]
    given: list[ShownFile]
    """The files that came with the question."""
    files: list[ShownFile]
    goes_on: bool = False
    """Whether a process is still writing this part of the trace."""

    @property
    def ending(self) -> RunEnd:
        return self.run.ending

    @property
    def source_anchor(self) -> str:
        """The fragment that links to a source, without the number at its end."""
        return f"source-{self.number}-"

    @cached_property
    def answer(self) -> list[Passage]:
        return passages(self.run.outputs.text, self.sources, self.source_anchor)

    @property
    def variables(self) -> Mapping[str, object]:
        """The output variables that have no section of their own on the page."""
        given = self.run.outputs.variables
        return {name: value for name, value in given.items() if name != "sources" or not self.sources}

    @property
    def parameters(self) -> Mapping[str, object]:
        """The strategy's parameters, without the question and without empty values."""
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
        """Returns the fragment that links to the row of a span, which stays the same while the run goes on.

        The id of a log entry may contain any character, so the fragment has a hash of the id.
        """
        return f"row-{self.number}-{hashlib.blake2s(span.id.encode(errors='replace'), digest_size=6).hexdigest()}"

    def is_open(self, span: Span) -> bool:
        """Returns whether the children of a group are shown at first.

        In a run of more than `FEW_ROWS` rows, a group is open only if a row below it has failed or has not ended.
        """
        return len(self.rows) <= FEW_ROWS or any(each.status != "success" for each in every(span.children))

    @cached_property
    def offered(self) -> Mapping[ShownTool, str]:
        """Each tool as it was offered to the models of the run, with the fragment that links to it."""
        calls = (call for call in self.traced.calls if call.kind == "llm")
        tools = dict.fromkeys(tool for call in calls for tool in offered_tools(call))
        return {tool: f"tool-{self.number}-{position}" for position, tool in enumerate(tools, start=1)}

    @cached_property
    def prompt_changes(self) -> Mapping[str, PromptChanges]:
        return changes_since(self.traced.calls)


def shown_run(
    number: int, traced: TracedRun, strategy: str, folder: Path | None = None, *, is_written: bool = False
) -> ShownRun:
    """Collects what a page shows about a run.

    `strategy` is the strategy's name in the trace. `folder` is the folder of the page, if that is known.
    """
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
