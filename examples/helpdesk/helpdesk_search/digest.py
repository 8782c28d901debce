"""Files in, one fingerprint of them all out, so that an index can tell whether it was made from these."""

import hashlib
from collections.abc import Iterable
from pathlib import Path


def digest(files: Iterable[Path], folder: Path) -> str:
    """Made of every file's name inside the folder and its content: any edit, rename or removal changes it."""
    made = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        made.update(f"{file.relative_to(folder).as_posix()}\0{len(content)}\0".encode())
        made.update(content)
    return made.hexdigest()
