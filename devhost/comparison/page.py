"""A fork beside its origin as a self-contained HTML page, with the colours and fonts of a trace's page.

In: a `ForkReport`. Out: HTML; every text is escaped by the template.
"""

from pathlib import Path

from devhost.comparison.fork_report import ForkReport
from devhost.comparison.lines import is_part
from devhost.page.environment import page_environment

HERE = Path(__file__).parent


def render_fork(fork: ForkReport) -> str:
    environment = page_environment(HERE)
    environment.filters.update(is_part=is_part)
    return environment.get_template("fork.html.j2").render(fork=fork, comparison=fork.comparison)
