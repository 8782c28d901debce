"""One spelling for all text that is indexed or searched.

Both sides pass through `fold`, so full-width letters, case and line breaks make no difference.
"""

import unicodedata


def fold(text: str) -> str:
    """The text in NFKC, case-folded, with each run of white space and control characters as one blank.

    NUL would end a search expression in SQLite, and a lone surrogate cannot be stored.
    """
    storable = text.encode("utf-8", errors="replace").decode("utf-8")
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", storable).casefold())
    blanked = "".join(" " if unicodedata.category(character) == "Cc" else character for character in folded)
    return " ".join(blanked.split())
