"""Keyword and meaning on the same questions: where each puts the past question that answers, and both together."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml
from helpdesk_search.answers import AnsweredQuestion, read_answers
from helpdesk_search.index import index_of_manual
from helpdesk_search.search import find
from helpdesk_search.terms import parse_terms
from meaning.embeddings import BundledEmbedding

CANDIDATES = 20
"""Of each search."""
SMOOTHING = 60
"""k of reciprocal rank fusion: how little the first ranks differ."""


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
    past = read_answers(helpdesk / "qa")
    model = BundledEmbedding()
    vectors = model.vectors([each.question for each in past])
    asked = model.vectors([each["question"] for each in wanted])
    with tempfile.TemporaryDirectory() as made:
        index = index_of_manual(_as_manual(past, Path(made) / "manual"), Path(made))
        found = []
        for each, vector in zip(wanted, asked, strict=True):
            terms = parse_terms(each["question"])
            hits = index.search(partial(find, terms=terms, best=CANDIDATES))
            by_keyword = list(dict.fromkeys(past[hit.page - 1].id for hit in hits))
            alike = [sum(a * b for a, b in zip(vector, other, strict=True)) for other in vectors]
            nearest = sorted(range(len(past)), key=lambda place: -alike[place])[:CANDIDATES]
            by_meaning = [past[place].id for place in nearest if alike[place] >= model.least_of_questions]
            answer = each["answered_by"]
            similarity = next(alike[place] for place, one in enumerate(past) if one.id == answer)
            ranks = [_rank(ranking, answer) for ranking in (by_keyword, by_meaning, fused(by_keyword, by_meaning))]
            found.append(Figures(each["question"], ranks[0], ranks[1], similarity, ranks[2]))
    return found


def fused(*rankings: Sequence[str]) -> list[str]:
    """Reciprocal rank fusion: what stands high in one ranking, or fairly high in several, comes first."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, name in enumerate(ranking, start=1):
            scores[name] = scores.get(name, 0) + 1 / (SMOOTHING + rank)
    return sorted(scores, key=lambda name: -scores[name])


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
    return ranking.index(name) + 1 if name in ranking else None


def _shown(rank: int | None) -> str:
    return "–" if rank is None else str(rank)


def _as_manual(past: Sequence[AnsweredQuestion], folder: Path) -> Path:
    """The past questions as a guide with a page for each, for the keyword search of the manual."""
    (folder / "en").mkdir(parents=True)
    pages = (f"<!-- page {number} -->\n{each.question}\n" for number, each in enumerate(past, start=1))
    (folder / "en" / "past.md").write_text("\n".join(pages), encoding="utf-8")
    return folder
