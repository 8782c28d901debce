"""Bytes of others in a folder of this machine, under names that do no harm.

In: a folder, a name that a tool gave, bytes. Out: the path of a new file. Nothing that exists is overwritten, and the
file is nowhere but directly in the folder.
"""

from itertools import count
from pathlib import Path

LONGEST_NAME = 150
"""Bytes; file systems take 255, and a number may follow."""
_REFUSED = frozenset('/\\:*?"<>|')
"""Elsewhere they part folders or mean something else."""


def save_once(folder: Path, name: str, data: bytes) -> Path:
    """As `save_new`, but a file that has the name and the bytes already serves."""
    there = folder / safe_name(name)
    return there if there.is_file() and there.read_bytes() == data else save_new(folder, name, data)


def save_new(folder: Path, name: str, data: bytes) -> Path:
    """Makes the folder too."""
    folder.mkdir(parents=True, exist_ok=True)
    safe = Path(safe_name(name))
    for number in count(1):
        path = folder / (safe.name if number == 1 else f"{safe.stem}-{number}{safe.suffix}")
        try:
            with path.open("xb") as file:
                file.write(data)
        except FileExistsError:
            continue
        return path
    raise AssertionError  # the numbers do not end


def safe_name(name: str) -> str:
    """The name without what could leave the folder, hide the file or deceive the eye; it keeps its suffix."""
    kept = "".join(letter if letter.isprintable() and letter not in _REFUSED else "_" for letter in name)
    path = Path(kept.strip(" .").lstrip("-") or "file")
    suffix = _cut(path.suffix, LONGEST_NAME // 2)
    return f"{_cut(path.stem, LONGEST_NAME - len(suffix.encode()))}{suffix}"


def _cut(text: str, most_bytes: int) -> str:
    return text.encode()[:most_bytes].decode(errors="ignore")
