"""Paths as a person types them. In: a text of a form or an address. Out: a path, of a file that may not exist."""

from pathlib import Path


def typed_path(text: str) -> Path:
    """`~` is the person's home; with the name of a user that does not exist, it is a character like any other."""
    path = Path(text.strip())
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def refusal(path: Path) -> str:
    """Why no file can have this path, such as one that is too long; empty if one can."""
    try:
        path.exists()
    except OSError as error:
        return f"{path}: {error.strerror}"
    return f"{path}: a path cannot hold a NUL character" if "\0" in str(path) else ""
