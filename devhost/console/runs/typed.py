"""Paths as a person types them. In: a text of a form or an address. Out: a path, of a file that may not exist."""

from pathlib import Path


def typed_path(text: str) -> Path:
    """`~` is the person's home; with the name of a user that does not exist, it is a character like any other."""
    path = Path(text.strip())
    try:
        return path.expanduser()
    except RuntimeError:
        return path
