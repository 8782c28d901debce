"""Tool results as a model reads them outside of their conversation: cut short.

In: results. Out: text.
"""

from collections.abc import Iterable

from internal.text.kept_text import cut_to_size
from prompt import template

_ONE_RESULT, _ALL_RESULTS = 4_000, 12_000
"""Characters of one result, and of all results that no answer puts into words."""


def quoted_result(result: str) -> str:
    return cut_to_size(result, _ONE_RESULT)


def unread_results(results: Iterable[str]) -> str:
    """What a finding has where its model did not put the results into words."""
    quoted = "\n\n".join(map(quoted_result, results))
    return template.UNREAD_RESULTS.format(results=cut_to_size(quoted, _ALL_RESULTS))
