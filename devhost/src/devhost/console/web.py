"""What the pages of one console have in common: runs, templates, and how a page follows what goes on."""

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
    """The address of the run whose trace it is; empty for one that is elsewhere, or gone."""
    file = Path(trace)
    if file.is_file() and is_name(file.stem):
        return f"/runs/{file.stem}"
    return ""


def node_address(name: str, turn: int, row: NodeRow) -> str:
    """The address of the page that runs a node alone; empty if it cannot. `name`: that of the run; `turn`: from 1."""
    if row.node.type in NOT_ALONE:
        return ""
    return f"/runs/{name}/node?{urlencode({'turn': turn, 'node': row.node.id})}"


def can_be_real() -> bool:
    """Whether a model behind an API can be asked."""
    return not ModelOptions().asks_the_script()


MOST_UNSEARCHED = 12


def is_long(entries: int) -> bool:
    """Whether a list of so many entries has a search field."""
    return entries > MOST_UNSEARCHED


_OF_REPORTS = (report.costs, report.mark, report.share, report.passed_of, report.compared_words, report.all_together)
FUNCTIONS = (*_OF_REPORTS, report.mean_text, is_long, page_of, can_be_real, label_of, shortened, node_address)
"""Templates call them by their names."""


def style_sheet() -> str:
    """What the console shares with reports, then its frame, then every other style sheet of its own."""
    environment = page_environment()
    frame = STATIC / "console.css"
    shared = [environment.get_template(name).render() for name in ("shared.css.j2", "versus.css", "evaluation.css")]
    others = sorted(file for file in STATIC.glob("*.css") if file != frame)
    return "\n".join([*shared, *(file.read_text(encoding="utf-8") for file in (frame, *others))])


@dataclass(frozen=True)
class Console:
    folder: RunFolder
    plugin: Path | None = None
    """The strategy plugin; None for the nearest one."""
    children: Children = field(default_factory=Children)
    evaluations: dict[str, tuple[Values, Evaluation | None]] = field(default_factory=dict)
    """What each evaluation was asked, and the evaluation before it, by the name of its child process."""
    calls: dict[str, Values] = field(default_factory=dict)
    """What the form of each called tool held, by the name of its child process."""
    servers: dict[str, Sequence[ProvidedTool]] = field(default_factory=dict)
    """The tools of each connected MCP server, by its command or address."""
    read: Callable[..., ReadTrace] = field(default_factory=lambda: lru_cache(KEPT)(read_seen))

    @cached_property
    def index(self) -> Index:
        return Index(self.folder)

    def goes_on(self, name: str) -> bool:
        """Whether a process writes the trace, or will."""
        return is_written(self.folder.beside(name, TRACE)) or self.children.is_running(name)

    def seen(self, name: str) -> ReadTrace:
        """The run as far as its trace is written; UnknownRunError, TraceError."""
        file = self.folder.trace(name)
        written = is_written(file)  # asked first: nothing is added after a no
        return self.read(file, changed_at(file), is_written=written)

    def version(self, name: str) -> str:
        """Another one whenever the page of the run would be."""
        child = self.children.of(name)
        at = None if child is None else (child.exit_code, child.told)  # first: what it wrote before it ended is seen
        file = self.folder.trace(name)
        output = self.folder.beside(name, OUTPUT)
        return version_of(at, is_written(file), changed_at(file), changed_at(output))

    def render(self, template: str, **values: object) -> str:
        """Without halves of surrogate pairs, which traces and scripts can hold, and UTF-8 cannot."""
        return well_formed(page_environment(*FUNCTIONS).get_template(template).render(**values))

    def page(self, template: str, status: int = 200, **values: object) -> HTMLResponse:
        return HTMLResponse(self.render(template, **values), status)

    def title(self, name: str) -> str:
        return read_run(self.folder, name).title

    def start(self, setup: Setup) -> str:
        """Starts a run, with its setup beside its trace; its name."""
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


# A page that follows what goes on asks for itself again and again, with the version that it shows.

NOTHING_NEW = 204


def version_of(*facts: object) -> str:
    return f"{hash(facts) & 0xFFFFFFFF:x}"
