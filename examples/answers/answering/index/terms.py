"""The terms of a text: what the index compares, in any language.

In: a text. Out: how often each term is in it. Words are cut into pieces of four characters, so that "drill" finds
"drills"; Japanese and Chinese, which have no blanks between words, into pairs of characters.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from meaning.folding import fold

FORM = "3"
"""To be changed with this module and with the embeddings, so that the next `sync` reads every document again."""
_WORD_PIECE = 4
_WIDE_PIECE = 2
_RUN = re.compile(r"[^\W_]+")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff々ー]")
_HIRAGANA = re.compile(r"[\u3040-\u309f]")
_WEIGHTS = (1.0, 0.4, 0.2)
"""By the number of hiragana: these are mostly endings and particles, which are in every sentence."""
_WITHOUT_MEANING = (
    "a an and any are as at be but by can could did do does for from get had has have how i if in into is it its "
    "may me must my no not of on one or our shall should so some that the their them then there they this to us "
    "was we were what when where which who why will with would you your"
)
_COMMON_WORDS = frozenset(_WITHOUT_MEANING.split())


def terms(text: str) -> Counter[str]:
    return Counter(_pieces(fold(text)))


def weight(term: str) -> float:
    """How much a term counts in a question, apart from how rare it is."""
    return _WEIGHTS[len(_HIRAGANA.findall(term))]


def _pieces(folded: str) -> Iterator[str]:
    for run in _RUN.findall(folded):
        for is_wide, characters in groupby(run, key=lambda character: bool(_WIDE.match(character))):
            part = "".join(characters)
            if is_wide:
                yield from _cut(part, _WIDE_PIECE)
            elif part not in _COMMON_WORDS:
                yield from _cut(f" {part} ", _WORD_PIECE)


def _cut(run: str, size: int) -> Iterator[str]:
    for start in range(max(len(run) - size, 0) + 1):
        yield run[start : start + size]
