"""What a failing disk does to an index."""

from pathlib import Path

PAGE = 4096


def pages(file: Path) -> int:
    return file.stat().st_size // PAGE


def damage_page(file: Path, page: int) -> None:
    """Overwrites one page, counted from 0, of an SQLite file."""
    with file.open("r+b") as content:
        content.seek(page * PAGE)
        content.write(b"\xff" * PAGE)
