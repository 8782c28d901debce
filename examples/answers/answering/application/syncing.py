"""Makes the index that of a folder: only files that changed are read into it again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from answering.index.folder import MarkdownFile, markdown_files


class Index(Protocol):
    def digests(self) -> Mapping[str, str]:
        """Of the documents in it, by their ids."""
        ...

    def update(self, folder: str, changed: Sequence[MarkdownFile], removed: Sequence[str], /) -> None:
        """`changed`: new ones too. All or nothing."""
        ...


@dataclass(frozen=True)
class Synced:
    """Ids of documents."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: tuple[str, ...]


class SyncService:
    def __init__(self, index: Index) -> None:
        self._index = index

    def sync(self, folder: Path) -> Synced:
        """Read what is new or has changed, and drop what is gone.

        Raises:
            UnreadableError: The folder or one of its files cannot be read; the index stays as it was.
        """
        files = {file.id: file for file in markdown_files(folder)}
        known = self._index.digests()
        differing = [file for file in files.values() if known.get(file.id) != file.digest]
        removed = [name for name in known if name not in files]
        self._index.update(str(folder.resolve()), differing, removed)
        return Synced(
            added=tuple(file.id for file in differing if file.id not in known),
            changed=tuple(file.id for file in differing if file.id in known),
            removed=tuple(sorted(removed)),
            unchanged=tuple(name for name, file in files.items() if known.get(name) == file.digest),
        )
