"""How alike two names or two orders are, by RapidFuzz over folded text; scores are from 0 to 100. Pure functions."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from rapidfuzz import fuzz

from .orders import Item, Order

LEAST = 65.0
"""Below it, two names have little more in common than letters. Tried with the catalogue of this example."""
SAME = 80.0
"""From here on, two orders are taken for the same one."""
_OF_A_PART = 0.95
"""What is the same as a whole comes before what only contains it."""
_KATAKANA = ord("ァ")
_HIRAGANA = ord("ぁ")
_TO_HIRAGANA = {code: code - _KATAKANA + _HIRAGANA for code in range(_KATAKANA, ord("ヶ") + 1)}
_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−"), "-")


def folded(text: str) -> str:
    """The spelling under which names are compared: `"ﾍﾟｰﾊﾟｰ(100)NAPKIN"` → `"ぺーぱー 100 napkin"`.

    NFKC makes half-width kana and full-width letters plain, and joins a kana with its sound mark.
    """
    plain = unicodedata.normalize("NFKC", text).translate(_DASHES).casefold().translate(_TO_HIRAGANA)
    spaced = "".join(character if character.isalnum() or character in "-ー" else " " for character in plain)
    return " ".join(spaced.split())


def likeness(query: str, names: Iterable[str]) -> float:
    """Of the name that is most like the query; one that is the same but for its spelling has 100."""
    wanted = folded(query)
    return max((_alike(wanted, folded(name)) for name in names), default=0.0)


def is_customer(asked: str, order: Order) -> bool:
    """A number has to be right but for its spelling: that of another customer differs in one digit."""
    number = _without_hyphens(order.customer_number)
    given = _without_hyphens(asked)
    if number == given.replace(" ", "") or number in given.split():
        return True
    names = [order.customer_name, f"{order.customer_name} {order.branch}"]
    return not any(character.isdigit() for character in asked) and likeness(asked, names) >= SAME


def sameness(wanted: Sequence[str], order: Order, items: Mapping[str, Item]) -> float:
    """Both ways: how well each wanted name is met by a line, and each line by a wanted name."""
    if not wanted:
        return 0.0
    named = [
        (*items[line.item_code].names, line.item_name) if line.item_code in items else (line.item_name,)
        for line in order.lines
    ]
    met = fmean(max(likeness(want, names) for names in named) for want in wanted)
    covered = fmean(max(likeness(want, names) for want in wanted) for names in named)
    return (met + covered) / 2


def _alike(wanted: str, name: str) -> float:
    """Word by word, and as a whole: Japanese is written without blanks, and so are codes."""
    if not wanted or not name:
        return 0.0
    whole = wanted.replace(" ", "")
    other = name.replace(" ", "")
    by_words = [max(_part_of(word, each) for each in name.split()) for word in wanted.split()]
    weights = [len(word) for word in wanted.split()]
    return max(fuzz.ratio(whole, other), _part_of(whole, other), fmean(by_words, weights) * _OF_A_PART)


def _part_of(wanted: str, name: str) -> float:
    """A name is usually shortened, not lengthened; a single letter is in nearly every name."""
    if len(wanted) == 1 or len(wanted) > len(name):
        return fuzz.ratio(wanted, name)
    return max(fuzz.ratio(wanted, name), fuzz.partial_ratio(wanted, name) * _OF_A_PART)


def _without_hyphens(text: str) -> str:
    """`"C-1042"` → `"c1042"`, in every width."""
    return folded(text).replace("-", "")
