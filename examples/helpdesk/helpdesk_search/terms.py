"""The search terms of a model or a person.

In: a text, which may be a whole question. Out: literal terms, of which a passage need not hold all. The only syntax is
blanks between terms and double quotes around a phrase, straight or of another kind. Outside phrases, punctuation around
a word and words without a meaning of their own are left out, and a Japanese sentence is split where the script changes.
A term of three characters or more is in the trigram index; a shorter one has no trigram.
"""

import re
from dataclasses import dataclass

from meaning.folding import fold

from .errors import TermsError

SHORTEST_INDEXED = 3
MAX_TERMS = 16
MAX_CHARACTERS = 500

_QUOTES = ('""', "“”", "„“", "„”", "«»", "「」", "『』")
# A straight quote is never part of a phrase: it would end the FTS5 string.
_PHRASES = (f'{pair[0]}([^{pair}"]*){pair[1]}' for pair in _QUOTES)
_TERM = re.compile(rf"{'|'.join(_PHRASES)}|([^\s{''.join(_QUOTES)}]+)")

_PUNCTUATION = ".,;:!?。、…()[]'‘’"
_HIRAGANA = re.compile("[\u3041-\u309f]")
# Runs of katakana, of kanji, and of anything else that is neither hiragana nor punctuation.
_JAPANESE_PARTS = re.compile(
    "[\u30a1-\u30ff]+|[\u3400-\u9fff々]+|[^\u3041-\u30ff\u3400-\u9fff々.,;:!?。、…()\\[\\]'‘’]+"
)

# Words that say nothing about what a person looks for.
_WORDS = (
    "a about after again all am an and another any anything are as at be because been before being but by can cannot"
    " could did do does doing done for from get got had has have having help here how i if in into is it its just let"
    " like may me might mine much must my need no not now of on one only or our out please shall should so some someone"
    " something tell than that the their them then there these they this those to too up us use used using want wants"
    " was we were what when where which while who whom whose why will with would you your"
    " can't couldn't didn't doesn't don't hasn't haven't i'm i've isn't it's that's what's where's won't"
)
_ENGLISH = frozenset(_WORDS.split())
# Particles, endings and questions, of which a run of hiragana may consist.
_WITHOUT_MEANING = re.compile(
    "(?:です|ます|ません|ました|でした|ない|する|した|して|します|しない|したい|すれば|しています|ください|下さい|できる|できない"
    "|できます|できません|どう|どの|どこ|どれ|どんな|いつ|なぜ|なに|だれ|いい|よい|いる|いない|ある|あり|なり|なる|こと|とき|もの|ため"
    "|これ|それ|この|その|について|から|まで|より|たら|れば|ので|のに|[のはがをにへともでやかなねよ])+"
)
_JAPANESE = frozenset(("方法", "場合", "時", "何", "事"))


@dataclass(frozen=True)
class Terms:
    """Folded search terms without duplicates, in their original order."""

    indexed: tuple[str, ...]
    short: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.indexed, *self.short)

    @property
    def match_expression(self) -> str:
        """Any of the terms as FTS5 strings, in which only the quote, never part of a term, has a meaning."""
        return " OR ".join(f'"{term}"' for term in self.indexed)


def parse_terms(typed: str) -> Terms:
    """Split at white space, the ideographic too; a phrase in double quotes is one term; a lone quote is dropped."""
    if len(typed) > MAX_CHARACTERS:
        raise TermsError(f"The search terms have {len(typed)} characters; at most {MAX_CHARACTERS} are searched.")
    # Fold before splitting, so that a full-width quote is a quote and a control character is a blank.
    found = _TERM.findall(fold(typed))  # one group matches: the last one is a word, the others are phrases
    meant = [term for *phrases, word in found for term in ("".join(phrases).strip(), *_meant(word))]
    terms = list(dict.fromkeys(filter(None, meant))) or list(dict.fromkeys(word for *_, word in found if word))
    if not terms:
        raise TermsError("The search terms are blank; give one or more words, or a phrase in double quotes.")
    if len(terms) > MAX_TERMS:
        raise TermsError(f"There are {len(terms)} search terms; at most {MAX_TERMS} are searched at once.")
    return Terms(
        indexed=tuple(term for term in terms if len(term) >= SHORTEST_INDEXED),
        short=tuple(term for term in terms if len(term) < SHORTEST_INDEXED),
    )


def _meant(word: str) -> list[str]:
    """What a word is searched by: nothing, itself, or the parts of a Japanese sentence that have a meaning."""
    bare = word.strip(_PUNCTUATION)
    parts = [part for part in _JAPANESE_PARTS.findall(bare) if len(part) > 1] if _HIRAGANA.search(bare) else []
    return [term for term in parts or [bare] if term and not _says_nothing(term)]


def _says_nothing(word: str) -> bool:
    return word.replace("’", "'") in _ENGLISH or word in _JAPANESE or _WITHOUT_MEANING.fullmatch(word) is not None
