"""What the office's database must hold after each scenario."""

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from office_store.store import FILE_NAME, Store
from office_store.tool import VARIABLE

from examples.runner.world import Credentials, Played

DEEDS = {
    "script": {"send_mail": 5, "change_setting": 3, "delete_document": 3},
    "allowed-tools": {},
    "approval": {},
    "mail": {"send_mail": 1},
}
"""By scenario, what was done to the world."""


@dataclass(frozen=True)
class Office:
    directory: Path

    @property
    def credentials(self) -> Credentials:
        return {}

    def begin(self, _scenario: str) -> None:
        (self.directory / FILE_NAME).unlink(missing_ok=True)
        Store(Path(__file__).parent / "documents", self.directory).search("")  # makes the database

    def problems(self, played: Played) -> Iterator[str]:
        with closing(sqlite3.connect(self.directory / FILE_NAME)) as database:
            done = Counter(tool for (tool,) in database.execute("SELECT tool FROM deeds"))
        if done != DEEDS[played.scenario]:
            yield f"done was {dict(done)}, expected is {DEEDS[played.scenario]}"
        for run in played.runs:
            if run.error is not None:
                yield run.error.message
        if (reason := played.runs[-1].outputs.variables.get("stop_reason")) != "answered":
            yield f"the conversation ends with {reason}"


@contextmanager
def world(folder: Path) -> Iterator[Office]:
    with patch.dict(os.environ, {VARIABLE: str(folder)}):
        yield Office(folder)
