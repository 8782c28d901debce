"""A fork beside its origin as a self-contained HTML page, with the colours and fonts of a trace's page.

In: a `ForkReport`. Out: HTML; every text is escaped by the template.
"""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from devhost.comparison.fork_report import ForkReport
from devhost.comparison.lines import is_part
from devhost.page.environment import HERE as PAGE
from devhost.page.environment import clip
from devhost.page.file import GENERATOR

HERE = Path(__file__).parent


def render_fork(fork: ForkReport) -> str:
    environment = Environment(
        loader=FileSystemLoader([HERE, PAGE]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(clip=clip, is_part=is_part)
    environment.globals.update(GENERATOR=GENERATOR)
    return environment.get_template("fork.html.j2").render(fork=fork, comparison=fork.comparison)
