"""Damage to an index, as a failing disk causes it."""

from pathlib import Path

PAGE = 4096


def pages(file: Path) -> int:
    return file.stat().st_size // PAGE


def damage_page(file: Path, page: int) -> None:
    """Overwrite one page of an SQLite file; pages count from 0."""
    with file.open("r+b") as content:
        content.seek(page * PAGE)
        content.write(b"\xff" * PAGE)
