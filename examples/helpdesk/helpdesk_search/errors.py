"""What can go wrong in a search, by who can mend it.

HelpdeskError
├── TermsError    the caller: the search terms, the question or the language cannot be meant
├── ManualError   the author: the manual that ships with the plugin cannot be read
├── AnswersError  the author: the past questions and answers that ship with it cannot be read
├── EmbeddingError          the operator: the embeddings API cannot be used as it is set up
└── IndexUnavailableError   the operator: the index cannot be kept where it should be
"""


class HelpdeskError(Exception):
    """The base of everything this package raises on purpose; its text is meant to be read by a person."""


class TermsError(HelpdeskError):
    """The terms, the question or the language asked for cannot be searched; the text says what would be right."""


class ManualError(HelpdeskError):
    """The manual is missing or not laid out as its reader expects."""


class AnswersError(HelpdeskError):
    """The past questions and answers are missing or not laid out as their reader expects."""


class EmbeddingError(HelpdeskError):
    """The embeddings API refused or cannot be reached; the text never holds the key."""


class IndexUnavailableError(HelpdeskError):
    """The index can neither be opened nor built."""
