"""Fills the page from a trace: one section for each run in it.

In: a `Trace`. Out: HTML. Every text is escaped by the template, except what `parts/answer.py` made of Markdown.
"""

from pathlib import Path

from devhost.page.environment import page_environment
from devhost.page.parts.attachments import Attachments
from devhost.page.parts.shown import shown_run
from devhost.trace.lines import PrintedLine
from devhost.trace.reader import Trace
from devhost.trace.runs import traced_runs


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
