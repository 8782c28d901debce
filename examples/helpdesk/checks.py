"""What the help desk's indexes and answers must hold after each scenario."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from examples.runner.world import Credentials, Played

MANUAL = "manual.sqlite3"
WITHOUT_SOURCES = {"not-found"}


@dataclass(frozen=True)
class HelpDesk:
    directory: Path

    @property
    def credentials(self) -> Credentials:
        return {"helpdesk": {"index_directory": str(self.directory)}}

    def begin(self, _scenario: str) -> None:
        for file in self.directory.iterdir():
            file.unlink()

    def rows(self) -> int:
        """The passages of the manual's index, which the first search makes."""
        if not (self.directory / MANUAL).exists():
            return 0
        with closing(sqlite3.connect(self.directory / MANUAL)) as index:
            (count,) = index.execute("SELECT count(*) FROM chunk").fetchone()
        return int(count)

    def problems(self, played: Played) -> Iterator[str]:
        for run in played.runs:
            if run.error is not None:
                yield run.error.message
        outputs = played.runs[-1].outputs
        cited = {int(number) for number in re.findall(r"\[(\d+)\]", outputs.text)}
        known = {source["number"] for source in outputs.variables.get("sources", ())}
        if not cited <= known:
            yield f"the answer cites {sorted(cited)}, the sources are {sorted(known)}"
        if bool(cited) == (played.scenario in WITHOUT_SOURCES):
            yield f"the answer cites {sorted(cited) or 'nothing'}"
        if not self.rows():
            yield "no search made an index"


@contextmanager
def world(folder: Path) -> Iterator[HelpDesk]:
    yield HelpDesk(folder)
