"""Text in, the one spelling under which it is indexed and asked for out.

Both sides pass through `fold`, so that full-width letters, case and line breaks never decide what is found.
"""

import unicodedata


def fold(text: str) -> str:
    """NFKC, case folded, every run of white space and control characters one blank.

    NUL would end SQLite's reading of a search expression, and a lone surrogate cannot be stored at all.
    """
    storable = text.encode("utf-8", errors="replace").decode("utf-8")
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", storable).casefold())
    blanked = "".join(" " if unicodedata.category(character) == "Cc" else character for character in folded)
    return " ".join(blanked.split())
