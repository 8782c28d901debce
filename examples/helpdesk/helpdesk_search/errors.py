"""What can go wrong in a search, by who can correct it; the text is written for people."""


class TermsError(Exception):
    """The caller: the terms, the question or the language cannot be searched; it says what would be right."""


class TextsError(Exception):
    """The author: the manual or the past questions are missing, or have the wrong format."""
