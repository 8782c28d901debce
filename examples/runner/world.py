"""What an example's `checks.py` gives to the runner: the world around its tools, and what has to be true of it."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from sqlalchemy import URL

from devhost import Host, Run
from devhost.case import Case

type Credentials = Mapping[str, Mapping[str, str]]
"""By the tool provider's name, then by the credential's."""


@dataclass(frozen=True)
class Played:
    """A scenario that was run."""

    scenario: str
    strategy: str
    runs: tuple[Run, ...]
    """One for each message of the user; more if the example runs other agents too."""


class World(Protocol):
    """The database of an example, the servers that its tools call, and the credentials with which they find them."""

    @property
    def credentials(self) -> Credentials: ...

    def begin(self, scenario: str) -> None:
        """Before each run: an empty database, with what the scenario needs."""
        ...

    def problems(self, played: Played) -> Iterator[str]:
        """A sentence for each thing that is not as the scenario promises."""
        ...


@runtime_checkable
class Director(Protocol):
    """A world whose scenarios are more than a script's conversation with one agent."""

    def play(self, case: Case, host: Host) -> tuple[Run, ...]:
        """In place of `playing.conversation`; none for a scenario that asks no agent."""
        ...


class Checks(Protocol):
    """The module `checks` of an example."""

    def world(self, folder: Path, *database: URL) -> AbstractContextManager[World]:
        """`folder`: an empty one for the database. `database`: another one, for examples that take it."""
        ...
