"""The text that a model reads, made from what was found.

Hits are called "Hit 1", not "[1]": the agent uses bracketed numbers for the sources of a whole run.
"""

from collections.abc import Sequence

from .likeness import Likeness
from .search import Hit

ENDS = tuple(".?!。？！")
"""Of a sentence: the terms may be a whole question."""


def hits_as_text(typed: str, hits: Sequence[Hit]) -> str:
    asked = " ".join(typed.split())
    if not hits:
        end = "" if asked.endswith(ENDS) else "."
        return (
            f"Nothing in the manual contains any of these terms: {asked}{end} "
            "Try a shorter form of a word, or a synonym, in the language of the manual (ja or en)."
        )
    found = "1 hit" if len(hits) == 1 else f"The best {len(hits)} hits"
    return "\n\n".join([f"{found} in the manual for: {asked}", *(_hit(n, hit) for n, hit in enumerate(hits, start=1))])


def _hit(number: int, hit: Hit) -> str:
    return f"Hit {number}: {hit.file}, page {hit.page} ({hit.heading})\n{excerpt(hit)}"


def excerpt(hit: Hit) -> str:
    """The chunk as it is in the manual, after an ellipsis if it does not begin its page."""
    if hit.start > 0:
        return f"…{hit.text.strip()}"
    return hit.text.strip()


def answers_as_text(question: str, found: Sequence[Likeness]) -> str:
    if not found:
        return f"No past question is similar to this one: {question}"
    count = "1 past question" if len(found) == 1 else f"The {len(found)} past questions"
    listed = (_likeness(number, likeness) for number, likeness in enumerate(found, start=1))
    return "\n\n".join([f"{count} most similar to: {question}", *listed])


def _likeness(number: int, likeness: Likeness) -> str:
    answered = likeness.answered
    head = f"Past question {number}: {named(likeness)}, answered on {answered.answered_on}"
    return f"{head} ({answered.topic}; similarity {likeness.similarity:.2f})\n{pair(likeness)}"


def named(likeness: Likeness) -> str:
    return f"{likeness.answered.file}, {likeness.answered.id}"


def pair(likeness: Likeness) -> str:
    return f"Question: {likeness.answered.question}\nAnswer: {likeness.answered.answer}"
