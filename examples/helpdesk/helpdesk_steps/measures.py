"""The tables of the page on search: measures of nearness, rewritten questions, and ways to cut the manual.

Each is a list of rows of texts, with a first row of headings. The questions are those of `comparison.yaml`, whose
answers are past questions, and for the cuts those of `chunking.yaml`, whose answers are passages of the manual.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from helpdesk_search.answers import read_answers
from helpdesk_search.chunks import chunk_spans
from helpdesk_search.likeness import past_questions
from helpdesk_search.manual import read_manual
from meaning.embeddings import Vectors, vectors
from meaning.fusion import fused

if TYPE_CHECKING:
    from numpy.typing import NDArray

type Row = tuple[str, ...]
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")


def table(rows: Iterable[Row]) -> Iterator[str]:
    """The rows as Markdown."""
    headings, *others = rows
    yield f"| {' | '.join(headings)} |"
    yield "|---" * len(headings) + "|"
    for row in others:
        yield f"| {' | '.join(row)} |"


def sentences(text: str) -> list[str]:
    return [each for each in _SENTENCE.split(text) if each.strip()]


def _questions(helpdesk: Path) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = yaml.safe_load((helpdesk / "comparison.yaml").read_text(encoding="utf-8"))
    return read


def _counts(ranks: Sequence[int]) -> Row:
    """How often the right one was first, and among the first three."""
    return str(sum(rank == 1 for rank in ranks)), str(sum(rank <= 3 for rank in ranks))  # noqa: PLR2004 - the heading


# Measures of nearness: the past questions with their answers, each as the vectors of its sentences, added up.


def nearness(helpdesk: Path) -> Iterator[Row]:
    """By measure, and by vectors of length one or as they are added up: ranks, and the length of the first text."""
    import numpy as np  # noqa: PLC0415 - importing this module imports no numpy

    past = read_answers(helpdesk / "qa")
    texts = [f"{each.question}\n{each.answer}" for each in past]
    raw = np.array([vectors(sentences(text)).sum(axis=0) for text in texts])
    asked = _questions(helpdesk)
    questions = vectors([each["question"] for each in asked])
    measures: Mapping[str, Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]] = {
        "cosine": lambda all_, one: all_ @ one / np.linalg.norm(all_, axis=1),
        "dot product": lambda all_, one: all_ @ one,
        "Euclidean distance": lambda all_, one: -np.linalg.norm(all_ - one, axis=1),
    }
    yield "Measure", "Vectors", "First", "Among the first three", "Characters of the first, on average"
    for name, measure in measures.items():
        for kind, every in (("length one", raw / np.linalg.norm(raw, axis=1, keepdims=True)), ("as added up", raw)):
            ranks = list[int]()
            lengths = list[int]()
            for each, question in zip(asked, questions, strict=True):
                order = np.argsort(-measure(every, question))
                ranks.append([past[int(at)].id for at in order].index(each["answered_by"]) + 1)
                lengths.append(len(texts[int(order[0])]))
            yield name, kind, *_counts(ranks), str(round(sum(lengths) / len(lengths)))


# Rewritten questions.


def rewriting(helpdesk: Path) -> Iterator[Row]:
    """By way of rewriting: ranks, and how many questions it moves up and down."""
    past = past_questions(helpdesk / "qa")
    ids = [each.id for each in past.answered]
    of_answers = vectors([each.answer for each in past.answered])

    def ranking(text: str, every: Vectors = past.vectors) -> list[str]:
        numbers = every @ vectors([text])[0]
        return [ids[int(at)] for at in (-numbers).argsort()]

    ways: Mapping[str, Callable[[dict[str, Any]], list[str]]] = {
        "the question as it is": lambda each: ranking(each["question"]),
        "several questions, fused": lambda each: [*fused(*map(ranking, (each["question"], *each["several"])))],
        "a hypothetical answer, right": lambda each: ranking(each["answer"], of_answers),
        "a hypothetical answer, guessed": lambda each: ranking(each["guess"], of_answers),
        "the guess, fused with the question": lambda each: [
            *fused(ranking(each["question"]), ranking(each["guess"], of_answers))
        ],
        "a step back, alone": lambda each: ranking(each["broader"]),
        "a step back, fused with the question": lambda each: [
            *fused(ranking(each["question"]), ranking(each["broader"]))
        ],
    }
    asked = _questions(helpdesk)
    before = list[int]()
    yield "Searched with", "First", "Among the first three", "Better", "Worse"
    for name, way in ways.items():
        ranks = [way(each).index(each["answered_by"]) + 1 for each in asked]
        before = before or ranks
        better = sum(now < was for now, was in zip(ranks, before, strict=True))
        worse = sum(now > was for now, was in zip(ranks, before, strict=True))
        yield name, *_counts(ranks), str(better), str(worse)


# Ways to cut the manual.


@dataclass(frozen=True)
class Passage:
    searched: str
    """What is compared with the question."""
    read: str
    """What the model reads if it is found."""


def cuts(text: str) -> Mapping[str, list[Passage]]:
    """Every way to cut one page."""
    sections = [each.strip() for each in re.split(r"(?m)^(?=#)", text) if each.strip()]
    ends = [text[start:end] for start, end in chunk_spans(text)]
    return {
        "every 300 characters": [Passage(part, part) for part in _every(text, 300)],
        "300 characters, ended at a paragraph or sentence (as here)": [Passage(part, part) for part in ends],
        "every 1,000 characters": [Passage(part, part) for part in _every(text, 1_000)],
        "sentences": [Passage(part, part) for part in sentences(text)],
        "sections, by their headings": [Passage(part, part) for part in sections],
        "sentences, read with their section": [
            Passage(part, section) for section in sections for part in sentences(section)
        ],
    }


def _every(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def chunking(helpdesk: Path) -> Iterator[Row]:
    """By cut: passages, ranks of the first one that holds the answer, and the characters of the first three."""
    asked = yaml.safe_load((helpdesk / "chunking.yaml").read_text(encoding="utf-8"))
    questions = vectors([each["question"] for each in asked])
    pages = [
        page.text
        for document in read_manual(helpdesk / "manual")
        if document.language == "en"
        for page in document.pages
    ]
    cut_pages = [cuts(page) for page in pages]
    yield "Cut", "Passages", "First", "Among the first three", "Characters of the first three, on average"
    for name in cut_pages[0]:
        passages = [passage for cut in cut_pages for passage in cut[name]]
        every = vectors([passage.searched for passage in passages])
        ranks = list[int]()
        lengths = list[int]()
        for each, question in zip(asked, questions, strict=True):
            best = list(dict.fromkeys(passages[int(at)].read for at in (-(every @ question)).argsort()))
            ranks.append(
                next(rank for rank, text in enumerate([*best, each["holds"]], start=1) if each["holds"] in text)
            )
            lengths.append(sum(map(len, best[:3])))
        yield name, str(len(passages)), *_counts(ranks), f"{round(sum(lengths) / len(lengths)):,}"
