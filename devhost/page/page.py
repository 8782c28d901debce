"""Fills the page from a trace: one section for each run in it.

In: a `Trace`. Out: HTML. Every text is escaped by the template, except what `answer.py` made of Markdown.
"""

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from devhost.node.memory import files_among
from devhost.node.outputs.outputs import NodeOutputs
from devhost.node.outputs.run import Ending, Run
from devhost.page.answer import Passage, passages
from devhost.page.attachments import Attachments, ShownFile
from devhost.page.bars import Axis, written
from devhost.page.file import GENERATOR
from devhost.page.legend import Colour, legend
from devhost.page.opened import OfferedTool, model_call, offered_tools, tool_call
from devhost.page.printed import add_moments, lines_of_calls
from devhost.protocol.wire import JsonObject
from devhost.text.price import price_text
from devhost.trace.lines import PrintedLine
from devhost.trace.outcome import run_of
from devhost.trace.reader import Trace
from devhost.trace.runs import TracedRun, traced_runs
from devhost.trace.timeline import Span, timeline

HERE = Path(__file__).parent
LONGEST = 20_000
"""Characters of one text; the trace has the rest."""
LONGEST_OPEN = 2_000
"""Characters of a text variable; a longer one, such as a state, is folded."""


@dataclass(frozen=True)
class ShownRun:
    """A run with all that the template asks of it."""

    number: int
    traced: TracedRun
    run: Run
    spans: list[Span]
    axis: Axis
    answer: list[Passage]
    sources: list[JsonObject]
    given: list[ShownFile]
    """The files of the question."""
    files: list[ShownFile]
    printed_in: Mapping[str, list[PrintedLine]]
    """By the id of a tool's call."""
    printed_around: list[PrintedLine]
    """Before and after the run."""

    @property
    def outputs(self) -> NodeOutputs:
        return self.run.outputs

    @property
    def variables(self) -> Mapping[str, object]:
        return {name: value for name, value in self.outputs.variables.items() if name != "sources" or not self.sources}

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
        """By the `id()` of a span, the fragment of the page's address that leads to its row."""
        return {id(span): f"row-{self.number}-{position}" for position, (_, span) in enumerate(self.rows, start=1)}

    @property
    def legend(self) -> list[Colour]:
        return legend(span for _, span in self.rows)

    @cached_property
    def offered(self) -> Mapping[OfferedTool, str]:
        """Each tool as the models of the run were told of it, with its fragment of the page's address."""
        calls = (call for call in self.traced.calls if call.kind == "llm")
        tools = dict.fromkeys(tool for call in calls for tool in offered_tools(call))
        return {tool: f"tool-{self.number}-{position}" for position, tool in enumerate(tools, start=1)}

    @property
    def json(self) -> list[Any]:
        return self.outputs.json_of_strategy()

    def count(self, kind: str) -> int:
        return sum(call.kind == kind for call in self.traced.calls)


def page_environment(*folders: Path) -> Environment:
    """`folders`: those of templates besides the ones here."""
    environment = Environment(
        loader=FileSystemLoader([HERE, *folders]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        clip=clip, pretty=pretty, written=written, hint=hint, number=number, price=price_text, identity=id
    )
    environment.globals.update(
        model_call=model_call,
        tool_call=tool_call,
        written_values=written_values,
        LONGEST_OPEN=LONGEST_OPEN,
        GENERATOR=GENERATOR,
    )
    return environment


def render_page(trace: Trace, folder: Path | None = None) -> str:
    """`folder`: where the page will be, if that is known."""
    attachments = Attachments(folder)
    return (
        page_environment()
        .get_template("page.html.j2")
        .render(
            header=trace.header,
            notices=trace.notices,
            cut_off=trace.cut_off,
            printed=[line for line in trace.lines if isinstance(line, PrintedLine)],
            runs=[
                shown_run(number, traced, trace, attachments)
                for number, traced in enumerate(traced_runs(trace), start=1)
            ],
        )
    )


def shown_run(number: int, traced: TracedRun, trace: Trace, attachments: Attachments) -> ShownRun:
    run = run_of(traced, trace.header.strategy)
    sources = run.outputs.variables.get("sources")
    listed = [source for source in sources if isinstance(source, dict)] if isinstance(sources, list) else []
    numbers = {str(source.get("number")) for source in listed}
    spans = timeline(traced)
    printed_around = add_moments(spans, traced)
    return ShownRun(
        number=number,
        traced=traced,
        run=run,
        spans=spans,
        axis=Axis(traced.began, traced.finished),
        answer=passages(run.outputs.text, numbers, f"source-{number}-"),
        sources=listed,
        given=attachments.shown(files_among(traced.parameters)),
        files=attachments.shown(run.outputs.files),
        printed_in=lines_of_calls(traced),
        printed_around=printed_around,
    )


def _rows(spans: Sequence[Span], depth: int = 0) -> Iterator[tuple[int, Span]]:
    for span in spans:
        yield depth, span
        yield from _rows(span.children, depth + 1)


def written_values(span: Span) -> object:
    """What the model wrote as the arguments of this tool call; None if the log does not say that it is one."""
    if span.written is not None:
        return span.written.values
    return span.data.get("arguments", {}) if "tool_call_id" in span.data else None


def pretty(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str)


def clip(text: str) -> str:
    """Without control characters, and cut at `LONGEST` characters."""
    shown = "".join(
        "�" if unicodedata.category(letter) == "Cc" and letter not in "\n\t" else letter for letter in text[:LONGEST]
    )
    left = len(text) - LONGEST
    return f"{shown}\n… {left:,} more characters are in the trace" if left > 0 else shown


def number(value: object) -> str:
    """A number of the usage as text; a plugin may have sent any other value in its place."""
    return f"{value:,}" if isinstance(value, int | float) else "–"


def hint(span: Span) -> str:
    """A few words beside the name: what a tool was given, or what a model call cost."""
    for call in span.calls:
        if call.kind == "llm":
            tokens = [number(call.usage.get(name)) for name in ("prompt_tokens", "completion_tokens")]
            return f"{' → '.join(tokens)} tokens" if call.usage else ""
        return _arguments(tool_call(call).arguments)
    return _arguments(written_values(span))


def _arguments(values: object) -> str:
    if not isinstance(values, dict):
        return str(values or "")[:200]
    return ", ".join(f"{name}: {pretty(value)}" for name, value in values.items())[:200]
