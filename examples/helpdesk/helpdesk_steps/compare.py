"""Keyword and meaning on the same questions: where each puts the past question that answers, and both together."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from helpdesk_search.answers import AnsweredQuestion
from helpdesk_search.index import index_of_manual
from helpdesk_search.likeness import past_questions, similarities
from helpdesk_search.search import find
from helpdesk_search.terms import parse_terms
from meaning.embeddings import LEAST_OF_QUESTIONS
from meaning.fusion import fused

CANDIDATES = 20
"""Of each search."""


@dataclass(frozen=True)
class Figures:
    """Ranks count from 1; None for what was not found."""

    question: str
    keyword: int | None
    meaning: int | None
    similarity: float
    """Of the past question that answers."""
    fused: int | None


def figures(helpdesk: Path) -> list[Figures]:
    wanted = yaml.safe_load((helpdesk / "comparison.yaml").read_text(encoding="utf-8"))
    past = past_questions(helpdesk / "qa")
    with tempfile.TemporaryDirectory() as made:
        index = index_of_manual(_as_manual(past.answered, Path(made) / "manual"))
    found = []
    for each in wanted:
        question = each["question"]
        answer = each["answered_by"]
        hits = find(index, parse_terms(question), best=CANDIDATES)
        by_keyword = list(dict.fromkeys(past.answered[hit.page - 1].id for hit in hits))
        alike = similarities(past, question)
        by_meaning = [each.answered.id for each in alike[:CANDIDATES] if each.similarity >= LEAST_OF_QUESTIONS]
        similarity = next(each.similarity for each in alike if each.answered.id == answer)
        ranks = [_rank(ranking, answer) for ranking in (by_keyword, by_meaning, [*fused(by_keyword, by_meaning)])]
        found.append(Figures(question, ranks[0], ranks[1], similarity, ranks[2]))
    return found


def lines(found: Sequence[Figures]) -> Iterator[str]:
    """As the table of the page."""
    yield "| Question | Keyword | Meaning | Similarity | Both |"
    yield "|---|---|---|---|---|"
    for each in found:
        ranks = " | ".join([_shown(each.keyword), _shown(each.meaning), f"{each.similarity:.2f}", _shown(each.fused)])
        yield f"| {each.question} | {ranks} |"
    first, three = (
        [sum(rank is not None and rank <= most for rank in ranks) for ranks in _columns(found)] for most in (1, 3)
    )
    for name, (keyword, meaning, both) in (("first", first), ("among the first three", three)):
        yield f"| **{name}, of {len(found)}** | **{keyword}** | **{meaning}** | | **{both}** |"


def _columns(found: Sequence[Figures]) -> list[list[int | None]]:
    return [[each.keyword for each in found], [each.meaning for each in found], [each.fused for each in found]]


def _rank(ranking: Sequence[str], name: str) -> int | None:
    if name in ranking:
        return ranking.index(name) + 1
    return None


def _shown(rank: int | None) -> str:
    if rank is None:
        return "–"
    return str(rank)


def _as_manual(past: Sequence[AnsweredQuestion], folder: Path) -> Path:
    """The past questions as a guide with a page for each, for the keyword search of the manual."""
    (folder / "en").mkdir(parents=True)
    pages = (f"<!-- page {number} -->\n{each.question}\n" for number, each in enumerate(past, start=1))
    (folder / "en" / "past.md").write_text("\n".join(pages), encoding="utf-8")
    return folder
