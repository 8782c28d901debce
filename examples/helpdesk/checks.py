"""What the help desk's answers must hold after each scenario."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from examples.runner.world import Credentials, Played

WITHOUT_SOURCES = {"not-found"}


class HelpDesk:
    @property
    def credentials(self) -> Credentials:
        return {}

    def begin(self, _scenario: str) -> None:
        """It keeps nothing."""

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
        if not played.runs[-1].asked.get("tool"):
            yield "nothing was searched"


@contextmanager
def world(_folder: Path) -> Iterator[HelpDesk]:
    yield HelpDesk()
