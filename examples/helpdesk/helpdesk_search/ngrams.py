"""An embedding without a model, a key or a network: vectors of hashed character n-grams.

It compares letters, not meanings: texts that share words or parts of words are similar. This also works for Japanese,
which has no blanks between words. The same text has the same vector on every machine.
"""

import math
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby

from .embedding import Vector
from .folding import fold

DIMENSIONS = 2048
_WORD_SIZES = (3, 4, 5)
_WIDE_SIZES = (1, 2, 3)

_RUN = re.compile(r"[^\W_]+")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff々ー]")
# Endings and particles, which have little meaning and occur in every sentence.
_HIRAGANA = re.compile(r"[\u3040-\u309f]+")
_WEIGHT_OF_HIRAGANA = 0.2
_WITHOUT_MEANING = (
    "a an and any are as at be but by can did do does for from get had has have how i if in into is it its may me my no"
    " not of on one or our so some that the their them then there they this to us was we what when where which who why"
    " will with without you your"
)
_COMMON_WORDS = frozenset(_WITHOUT_MEANING.split())


class NgramEmbedding:
    name = f"character n-grams {_WORD_SIZES} {_WIDE_SIZES}, {DIMENSIONS} dimensions, 1"
    file_part = "ngrams"
    described = (
        "No OpenAI key is set, so similarity was computed on this machine from letters only (character n-grams): "
        "the same thing in other words may be missed, and a question finds only answers in its own language."
    )
    least_similarity = 0.18

    def vectors(self, texts: Sequence[str], /) -> list[Vector]:
        return [_vector(text) for text in texts]


def _vector(text: str) -> Vector:
    weights: dict[str, float] = defaultdict(float)
    for ngram, weight in _ngrams(fold(text)):
        weights[ngram] += weight
    vector = [0.0] * DIMENSIONS
    for ngram, weight in weights.items():
        hashed = zlib.crc32(ngram.encode())
        # The sign comes from a bit that the position does not use: n-grams at one position cancel as often as they add.
        vector[hashed % DIMENSIONS] += math.sqrt(weight) if hashed >> 31 else -math.sqrt(weight)
    length = math.hypot(*vector)
    return [value / length for value in vector] if length else vector


def _ngrams(text: str) -> Iterator[tuple[str, float]]:
    for match in _RUN.finditer(text):
        for wide, signs in groupby(match[0], key=lambda sign: bool(_WIDE.match(sign))):
            run = "".join(signs)
            if wide:
                yield from ((ngram, _weight(ngram)) for ngram in _cut(run, _WIDE_SIZES))
            elif run not in _COMMON_WORDS:
                yield from ((ngram, 1.0) for ngram in _cut(f" {run} ", _WORD_SIZES))


def _weight(ngram: str) -> float:
    if _HIRAGANA.fullmatch(ngram):
        return _WEIGHT_OF_HIRAGANA
    return 1.0 if len(ngram) > 1 else 0.5


def _cut(run: str, sizes: Sequence[int]) -> Iterator[str]:
    for size in sizes:
        for start in range(len(run) - size + 1):
            yield run[start : start + size]
