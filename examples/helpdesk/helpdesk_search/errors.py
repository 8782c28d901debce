"""What can go wrong in a search, by who can mend it.

HelpdeskError
├── TermsError    the caller: the search terms or the language cannot be meant
├── ManualError   the author: the manual that ships with the plugin cannot be read
└── IndexUnavailableError   the operator: the index cannot be kept where it should be
"""


class HelpdeskError(Exception):
    """The base of everything this package raises on purpose; its text is meant to be read by a person."""


class TermsError(HelpdeskError):
    """The terms or the language asked for cannot be searched; the text says what would be right."""


class ManualError(HelpdeskError):
    """The manual is missing or not laid out as its reader expects."""


class IndexUnavailableError(HelpdeskError):
    """The index can neither be opened nor built."""
