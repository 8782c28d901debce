"""One fingerprint of many files, from which an index can tell whether it was built from them."""

import hashlib
from collections.abc import Iterable
from pathlib import Path


def digest(files: Iterable[Path], folder: Path) -> str:
    """A fingerprint of names and contents: any edit, rename or removal changes it."""
    made = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        made.update(f"{file.relative_to(folder).as_posix()}\0{len(content)}\0".encode())
        made.update(content)
    return made.hexdigest()
