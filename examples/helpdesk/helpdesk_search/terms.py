"""The search terms that the model typed.

In: its text. Out: literal terms, all of which must be present. The only syntax is blanks between terms and double
quotes around a phrase, straight or of another kind. A term of three characters or more is searched in the trigram
index; a shorter one has no trigram and is searched with LIKE.
"""

import re
from dataclasses import dataclass

from .errors import TermsError
from .folding import fold

SHORTEST_INDEXED = 3
MAX_TERMS = 16
MAX_CHARACTERS = 500

_QUOTES = ('""', "“”", "„“", "„”", "«»", "「」", "『』")
# A straight quote is never part of a phrase: it would end the FTS5 string.
_PHRASES = (f'{pair[0]}([^{pair}"]*){pair[1]}' for pair in _QUOTES)
_TERM = re.compile(rf"{'|'.join(_PHRASES)}|([^\s{''.join(_QUOTES)}]+)")


@dataclass(frozen=True)
class Terms:
    """Folded search terms without duplicates, in their original order."""

    indexed: tuple[str, ...]
    short: tuple[str, ...]

    @property
    def match_expression(self) -> str:
        """Every term as an FTS5 string, in which only the quote, never part of a term, has a meaning."""
        return " AND ".join(f'"{term}"' for term in self.indexed)

    @property
    def like_patterns(self) -> list[str]:
        return [like_pattern(term) for term in self.short]


def like_pattern(term: str) -> str:
    r"""A pattern for `LIKE … ESCAPE '\'` that means the term and nothing else."""
    literal = term.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{literal}%"


def parse_terms(typed: str) -> Terms:
    """Split at white space, the ideographic too; a phrase in double quotes is one term; a lone quote is dropped."""
    if len(typed) > MAX_CHARACTERS:
        raise TermsError(f"The search terms have {len(typed)} characters; at most {MAX_CHARACTERS} are searched.")
    # Fold before splitting, so that a full-width quote is a quote and a control character is a blank.
    found = ("".join(groups).strip() for groups in _TERM.findall(fold(typed)))  # only one group matches
    terms = list(dict.fromkeys(term for term in found if term))
    if not terms:
        raise TermsError("The search terms are blank; give one or more words, or a phrase in double quotes.")
    if len(terms) > MAX_TERMS:
        raise TermsError(f"There are {len(terms)} search terms; at most {MAX_TERMS} are searched at once.")
    return Terms(
        indexed=tuple(term for term in terms if len(term) >= SHORTEST_INDEXED),
        short=tuple(term for term in terms if len(term) < SHORTEST_INDEXED),
    )
