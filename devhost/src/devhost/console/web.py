"""What all pages of a console share: runs, templates, and how a page follows a run in progress."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from urllib.parse import urlencode

from starlette.responses import HTMLResponse

from devhost.console.children import Children
from devhost.console.conversation import said
from devhost.console.folder import OUTPUT, TRACE, RunFolder, changed_at
from devhost.console.found import label_of, shortened
from devhost.console.index import Index
from devhost.console.listing import read_run
from devhost.console.readers import KEPT, ReadTrace, read_seen
from devhost.console.setup import SETUP, Setup, Values, is_name
from devhost.errors import ConsoleError
from devhost.evaluation import report
from devhost.evaluation.table import Evaluation
from devhost.flow.alone import NOT_ALONE
from devhost.golang import well_formed
from devhost.hosting import ModelOptions
from devhost.page.page import page_environment
from devhost.plugin.declaration import ProvidedTool
from devhost.trace.lines import is_written
from devhost.trace.played import NodeRow

HERE = Path(__file__).parent
TEMPLATES = HERE / "templates"
STATIC = HERE / "static"


def page_of(trace: str) -> str:
    """Returns the address of the run with this trace, or an empty text if the trace does not exist."""
    file = Path(trace)
    if file.is_file() and is_name(file.stem):
        return f"/runs/{file.stem}"
    return ""


def node_address(name: str, turn: int, row: NodeRow) -> str:
    """Returns the address of the page that runs a node alone, or an empty text for a node that cannot run alone.

    `name` is the name of the run. Turns are counted from 1.
    """
    if row.node.type in NOT_ALONE:
        return ""
    return f"/runs/{name}/node?{urlencode({'turn': turn, 'node': row.node.id})}"


def can_be_real() -> bool:
    """Returns whether a model behind an API is configured."""
    return not ModelOptions().asks_the_script()


MOST_UNSEARCHED = 12


def is_long(entries: int) -> bool:
    """Returns whether a list with this number of entries gets a search field."""
    return entries > MOST_UNSEARCHED


_OF_REPORTS = (report.costs, report.mark, report.share, report.passed_of, report.compared_words, report.all_together)
FUNCTIONS = (*_OF_REPORTS, report.mean_text, is_long, page_of, can_be_real, label_of, shortened, node_address)
"""Functions that templates call by name."""


def style_sheet() -> str:
    """Returns one style sheet: the styles shared with reports, then the console's frame, then its other styles."""
    environment = page_environment()
    frame = STATIC / "console.css"
    shared = [environment.get_template(name).render() for name in ("shared.css.j2", "versus.css", "evaluation.css")]
    others = sorted(file for file in STATIC.glob("*.css") if file != frame)
    return "\n".join([*shared, *(file.read_text(encoding="utf-8") for file in (frame, *others))])


@dataclass(frozen=True)
class Console:
    """One console: its folder of runs, its child processes, and what its pages remember."""

    folder: RunFolder
    plugin: Path | None = None
    """The strategy plugin, or `None` for the nearest one."""
    children: Children = field(default_factory=Children)
    evaluations: dict[str, tuple[Values, Evaluation | None]] = field(default_factory=dict)
    """The form values of each evaluation and the results before it, by the name of its child process."""
    calls: dict[str, Values] = field(default_factory=dict)
    """The form values of each called tool, by the name of its child process."""
    servers: dict[str, Sequence[ProvidedTool]] = field(default_factory=dict)
    """The tools of each connected MCP server, by the server's command or address."""
    read: Callable[..., ReadTrace] = field(default_factory=lambda: lru_cache(KEPT)(read_seen))

    @cached_property
    def index(self) -> Index:
        return Index(self.folder)

    def goes_on(self, name: str) -> bool:
        """Returns whether a process writes the trace or is about to."""
        return is_written(self.folder.beside(name, TRACE)) or self.children.is_running(name)

    def seen(self, name: str) -> ReadTrace:
        """Returns what the trace of the run contains so far. Raises UnknownRunError or TraceError."""
        file = self.folder.trace(name)
        written = is_written(file)  # checked first: after a "no", the file does not grow any more
        return self.read(file, changed_at(file), is_written=written)

    def page_version(self, name: str) -> str:
        """Returns a text that changes whenever the page of the run changes."""
        child = self.children.of(name)
        at = None if child is None else (child.exit_code, child.told)  # read first, because the files may still grow
        file = self.folder.trace(name)
        output = self.folder.beside(name, OUTPUT)
        return version_of(at, is_written(file), changed_at(file), changed_at(output))

    def render(self, template: str, **values: object) -> str:
        """Renders a template without lone surrogates, which traces and scripts can contain but UTF-8 cannot."""
        return well_formed(page_environment(*FUNCTIONS).get_template(template).render(**values))

    def page(self, template: str, status: int = 200, **values: object) -> HTMLResponse:
        return HTMLResponse(self.render(template, **values), status)

    def title(self, name: str) -> str:
        return read_run(self.folder, name).title

    def start(self, setup: Setup) -> str:
        """Starts a run, writes its setup beside its trace, and returns the run's name."""
        name = self.folder.new_name(setup.about)
        written = self.folder.beside(name, SETUP)
        output = self.folder.beside(name, OUTPUT)
        lines = () if setup.kind == "fork" else ("--json-lines",)
        options = ("--trace", str(self.folder.beside(name, TRACE)), "--no-color", *lines)
        setup.write(written)
        try:
            child = self.children.start(name, (*setup.arguments(self.folder.trace), *options), output)
        except ConsoleError:
            written.unlink()
            output.unlink(missing_ok=True)
            raise
        if setup.converses:
            child.tell(said(setup.question))
        return name


# A page that follows a run requests itself again and again and sends the version that it shows.

NOTHING_NEW = 204


def version_of(*facts: object) -> str:
    """Returns a text that changes whenever one of the facts changes."""
    return f"{hash(facts) & 0xFFFFFFFF:x}"
