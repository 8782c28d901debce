"""What a person looks for among the runs, and a page of what is found."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from devhost.console.listing.index import Look
from devhost.console.listing.summary import STATES, Listed, State

ON_A_PAGE = 50
PAGE = re.compile(r"[1-9][0-9]{0,5}")


@dataclass(frozen=True)
class Wanted:
    search: str = ""
    """Words, all of which a run must have."""
    ending: State | None = None
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Wanted":
        """Of an address. What makes no sense there is left out."""
        ending = next((state for state in STATES if state == query.get("ending")), None)
        page = PAGE.fullmatch(query.get("page", ""))
        return cls(query.get("search", "").strip(), ending, int(page.group()) if page else 1)

    def address(self, ending: str = "", page: int = 1) -> str:
        """Of the list with the same search, and another ending or page."""
        given = {"search": self.search, "ending": ending, "page": "" if page == 1 else str(page)}
        query = urlencode({name: value for name, value in given.items() if value})
        return f"/?{query}" if query else "/"


@dataclass(frozen=True)
class Found:
    wanted: Wanted
    runs: Sequence[Listed]
    """Those of the page."""
    counts: Mapping[str, int]
    """By state, of all that the search finds; "" for all of them."""
    first: int
    """The number of the first run of the page, from 1."""
    total: int
    """How many there are on all pages."""
    problems: Sequence[Listed]
    """Files that are not traces."""
    is_empty: bool
    """Whether the folder has no run at all."""
    unread: int
    """How many runs were not read yet: they may fit, too."""

    @property
    def pages(self) -> int:
        return max(1, -(-self.total // ON_A_PAGE))

    @property
    def page(self) -> int:
        return min(self.wanted.page, self.pages)


def find(look: Look, wanted: Wanted) -> Found:
    traces = [run for run in look.runs if not run.summary.problem]
    words = wanted.search.casefold().split()
    matching = [run for run in traces if all(word in run.searched for word in words)]
    counts = Counter(run.state for run in matching)
    shown = [run for run in matching if wanted.ending in (None, run.state)]
    page = min(wanted.page, max(1, -(-len(shown) // ON_A_PAGE)))
    begin = (page - 1) * ON_A_PAGE
    return Found(
        wanted=wanted,
        runs=shown[begin : begin + ON_A_PAGE],
        counts={"": len(matching), **{state: counts[state] for state in STATES}},
        first=begin + 1,
        total=len(shown),
        problems=[run for run in look.runs if run.summary.problem],
        is_empty=not traces,
        unread=look.unread,
    )
