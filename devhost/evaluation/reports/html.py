"""An evaluation as one self-contained page, with the look of a run's report.

In: a summary, the threshold, perhaps a comparison. Out: HTML; every text is escaped by the template.
"""

from pathlib import Path

from devhost.errors import SuiteError
from devhost.evaluation.comparison import Comparison
from devhost.evaluation.reports.wording import costs, mark, share
from devhost.evaluation.summary import Summary
from devhost.page.environment import page_environment
from devhost.page.file import HEAD_BYTES, MARK

HERE = Path(__file__).parent


def render_evaluation(summary: Summary, threshold: float, comparison: Comparison | None = None) -> str:
    environment = page_environment(HERE)
    environment.globals.update(costs=costs, mark=mark, share=share)
    return environment.get_template("evaluation.html.j2").render(
        summary=summary, header=summary.evaluation.header, threshold=threshold, comparison=comparison
    )


def refuse_page(file: Path) -> None:
    """Before the first run: SuiteError for a path that cannot become a page, or that holds another file."""
    refuse_output(file, "--report")
    if file.is_file():
        with file.open("rb") as existing:
            head = existing.read(HEAD_BYTES)
        if head and MARK not in head:
            raise SuiteError(f"--report {file}: this file is not a page that devhost made: name another file")


def refuse_output(file: Path, option: str) -> None:
    if file.is_dir():
        raise SuiteError(f"{option} {file}: this is a folder: name a file in it")
    if not file.parent.is_dir():
        raise SuiteError(f"{option} {file}: the folder {file.parent} does not exist")
