"""Lets two pytest processes share one run: each takes test files from its own end of the list until they meet.

A file is taken by making a directory named after it in ``--taken``, so each file runs exactly once, whichever process
is faster. ``FAILURES`` in the same place collects the names of failed tests from both. Load it with ``-p``.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, pairwise
from pathlib import Path

import pytest

FAILURES = "failures"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--end", choices=["front", "back"], required=True)
    parser.addoption("--taken", type=Path, required=True)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_End(config.getoption("end"), config.getoption("taken")))


class _End:
    def __init__(self, end: str, taken: Path) -> None:
        self._is_back = end == "back"
        self._taken = taken
        self._is_mine: dict[str, bool] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """The usual loop over the items that this process takes; None leaves all else to the usual loop."""
        if session.testsfailed or session.config.getoption("collectonly"):
            return None
        for item, following in pairwise(chain(self._mine(session.items), [None])):
            assert item is not None
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def _mine(self, items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
        groups: Sequence[tuple[str, list[pytest.Item]]] = [
            (file, list(group)) for file, group in groupby(items, lambda item: item.nodeid.partition("::")[0])
        ]
        for file, group in reversed(groups) if self._is_back else groups:
            if self._take(file):
                yield from group

    def _take(self, file: str) -> bool:
        """Whether this process runs the file; a session's fixtures may spread its tests over several groups."""
        if file not in self._is_mine:
            try:
                (self._taken / file.replace("/", "__")).mkdir()
                self._is_mine[file] = True
            except FileExistsError:
                self._is_mine[file] = False
        return self._is_mine[file]

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed:
            with (self._taken / FAILURES).open("a", encoding="utf-8") as failures:
                failures.write(f"{report.nodeid}\n")
