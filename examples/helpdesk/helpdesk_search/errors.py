"""What can go wrong in a search, by who can correct it.

HelpdeskError
├── TermsError    the caller: the search terms, the question or the language are not usable
├── ManualError   the author: the manual that ships with the plugin cannot be read
├── AnswersError  the author: the past questions and answers that ship with it cannot be read
└── IndexUnavailableError   the operator: the index cannot be stored in the given place
"""


class HelpdeskError(Exception):
    """The base of all errors of this package; the text is written for people."""


class TermsError(HelpdeskError):
    """The terms, the question or the language cannot be searched; the text says what would be right."""


class ManualError(HelpdeskError):
    """The manual is missing or has the wrong format."""


class AnswersError(HelpdeskError):
    """The past questions and answers are missing or have the wrong format."""


class IndexUnavailableError(HelpdeskError):
    """The index can neither be opened nor built."""
