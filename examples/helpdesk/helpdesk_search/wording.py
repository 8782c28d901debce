"""Hits in, the text a model reads out.

Hits are called "Hit 1", not "[1]": bracketed numbers belong to the agent, which numbers the sources of a whole run.
"""

from collections.abc import Sequence

from .search import Hit


def hits_as_text(typed: str, hits: Sequence[Hit]) -> str:
    asked = " ".join(typed.split())
    if not hits:
        return (
            f"Nothing in the manual contains all of these terms: {asked}. "
            "Try fewer terms, a shorter form of a word, or a synonym, in the language of the manual (ja or en)."
        )
    found = "1 hit" if len(hits) == 1 else f"The best {len(hits)} hits"
    return "\n\n".join([f"{found} in the manual for: {asked}", *(_hit(n, hit) for n, hit in enumerate(hits, start=1))])


def _hit(number: int, hit: Hit) -> str:
    return f"Hit {number}: {hit.file}, page {hit.page} ({hit.heading})\n{excerpt(hit)}"


def excerpt(hit: Hit) -> str:
    """The chunk as it stands in the manual; an ellipsis where it continues from the chunk before."""
    return f"…{hit.text.strip()}" if hit.start > 0 else hit.text.strip()
