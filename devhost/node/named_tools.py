"""Tools by the names under which the nodes of a workflow hold them.

In: a provider and a tool, as the node has them, and the tools that there are. Out: the one that is meant.
"""

from collections.abc import Iterable

type ToolName = tuple[str, str]
"""The whole id of the provider, author/plugin/provider, and the tool's own name."""


def meant_tool(provider: str, name: str, there_are: Iterable[ToolName]) -> ToolName | None:
    """By the whole id of the provider, else by its last part: a plugin under development may have another author."""
    named = [tool for tool in there_are if tool[1] == name]
    if (provider, name) in named:
        return provider, name
    alike = [tool for tool in named if _last(tool[0]) == _last(provider)]
    return alike[0] if len(alike) == 1 else None


def _last(provider: str) -> str:
    return provider.rpartition("/")[2]
