"""Measures a node with many tools: the time of a search, and the tools in a request before and after two searches."""

import json
from statistics import median
from time import process_time
from typing import Any

from benchmarks.table import Goal, Row, Table, duration
from internal.node.params import StrategyParams
from internal.node.tool_search import ToolSearch
from internal.node.tools import Toolbox, build_toolbox
from tests.support.wire import parameter, tool

MOST = int(StrategyParams.model_fields["tools_in_prompt"].default)
SEARCH_LIMITS = {1_000: 20}
"""Maximum milliseconds of a search, by the number of tools."""
SIZE_LIMITS = {300: 1.2}
"""Maximum size of the tools in a request, relative to a node that offers all its tools, by the number of tools."""
THINGS = ("invoice", "order", "customer", "ticket", "page", "calendar event", "branch", "comment", "file", "report")


def toolbox(count: int) -> Toolbox:
    """Return the toolbox of a node that offers only its first tools. Each tool has about 200 characters."""
    return build_toolbox(_described(number) for number in range(count)).holding_back(MOST)


def _described(number: int) -> dict[str, Any]:
    thing = f"{THINGS[number % 10]} of group {number // 10}"
    text = (
        f"Finds and changes a {thing}. Takes its number, and gives back all of its fields, with those who changed them."
    )
    named = thing.replace(" ", "_")
    return tool(f"change_{named}", parameter("number"), parameter("name"), description={"human": {}, "llm": text})


def table(repeats: int) -> Table:
    rows = list[Row]()
    of_forty = _size(toolbox(MOST))
    for count in (MOST, 300, 1_000):
        tools = toolbox(count)
        first, next_one = (median(times) for times in zip(*(_searched(tools) for _ in range(repeats)), strict=True))
        search = ToolSearch(tools)
        offered = tools
        for query in ("invoice of group 3", "report of group 7"):
            offered = offered.offering({found.name: found for found in search.best(query)})
        ratio = _size(offered) / of_forty
        goal = Goal.at_most(SEARCH_LIMITS[count], first * 1_000, " ms") if count in SEARCH_LIMITS else Goal()
        goal = Goal.at_most(SIZE_LIMITS[count], ratio) if count in SIZE_LIMITS else goal
        cells = (f"{count:,} tools", duration(first), duration(next_one), f"{_size(tools):,}", f"{_size(offered):,}")
        rows.append(Row((*cells, f"{ratio:.2f}"), goal))
    headings = ("node", "first search", "next one", "in a request", "after two searches", f"beside {MOST} tools")
    return Table("Many tools", headings, rows)


def _searched(tools: Toolbox) -> tuple[float, float]:
    """Return the CPU seconds of the first search of a run and of the next one."""
    search = ToolSearch(tools)
    moments = [process_time()]
    for query in ("create a new invoice for a customer", "who has commented on the report"):
        search.best(query)
        moments.append(process_time())
    return moments[1] - moments[0], moments[2] - moments[1]


def _size(tools: Toolbox) -> int:
    """Return the number of characters of the tools in a request."""
    return len(json.dumps([each.model_dump(mode="json") for each in tools.prompt_tools]))
