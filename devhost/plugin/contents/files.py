"""The files of a folder that Dify's packager takes: all but those that `.difyignore` names.

In: a plugin's folder. Out: `Contents`, and problems of the rule `ignore-file`. Without a `.difyignore`, `.gitignore`
counts; without both, all is packed.
"""

import posixpath
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from devhost.errors import DeclarationError
from devhost.plugin.contents.ignored import Ignored
from devhost.plugin.rules.listed import Level, Problem

IGNORE_FILES = (".difyignore", ".gitignore")
FORBIDDEN_FOLDERS = frozenset(
    {
        *(".git", ".venv", "venv", "env", "node_modules", ".idea", ".vscode", "__pycache__"),
        *(".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".tox"),
    }
)


@dataclass(frozen=True)
class Contents:
    directory: Path
    ignored_by: str
    """The name of the file with the patterns; empty without one."""
    paths: tuple[str, ...]
    """Relative, with slashes, in the order of their code points."""
    forbidden_folders: tuple[str, ...]
    """Not looked into: what they hold is not among the paths."""
    negations: tuple[tuple[int, str], ...] = ()
    """Lines of the ignore file that Dify's packager does not understand, with their numbers from 1."""

    @classmethod
    def of(cls, directory: Path) -> Self:
        ignored_by = next((name for name in IGNORE_FILES if (directory / name).is_file()), "")
        lines = (directory / ignored_by).read_text(encoding="utf-8", errors="replace") if ignored_by else ""
        ignored = Ignored.of(lines)
        forbidden: list[str] = []
        paths = sorted(_walk(directory, ignored, forbidden))
        return cls(directory, ignored_by, tuple(paths), tuple(sorted(forbidden)), ignored.negations)

    def __contains__(self, path: str) -> bool:
        return path in self.paths

    def absent(self, path: str) -> str:
        """Why the package does not have the file, as the end of a sentence; empty if it has it."""
        path = posixpath.normpath(path)
        if path in self.paths:
            return ""
        if not (self.directory / path).is_file():
            return "does not exist"
        if path.startswith(("../", "/")):
            return "is outside the plugin"
        return f"is left out by {self.ignored_by}" if self.ignored_by else "is in a folder that is not packaged"

    def is_regular(self, path: str) -> bool:
        """Neither a link nor a pipe, a socket or a device."""
        return stat.S_ISREG((self.directory / path).lstat().st_mode)

    def read(self, path: str) -> bytes:
        """What is not a regular file reads as empty: it is refused by the rule `forbidden-file`."""
        try:
            return (self.directory / path).read_bytes() if self.is_regular(path) else b""
        except OSError as error:
            raise DeclarationError(f"{self.directory / path} cannot be read: {error.strerror}") from error

    def text(self, path: str) -> str:
        """With replacement characters for what is not UTF-8."""
        return self.read(path).decode("utf-8", errors="replace")


def ignore_problems(contents: Contents) -> Iterator[Problem]:
    """A `.gitignore` is git's first, where such a line is right: there it is a notice."""
    for number, line in contents.negations:
        sentence = f"{line!r} does nothing: Dify's packager has no exceptions; name only the files to leave out"
        level: Level = "refused" if contents.ignored_by == IGNORE_FILES[0] else "notice"
        yield Problem("ignore-file", contents.ignored_by, f"line {number}", sentence, level=level)


def _walk(directory: Path, ignored: Ignored, forbidden: list[str]) -> Iterator[str]:
    for folder, folders, files in directory.walk():
        relative = folder.relative_to(directory)
        kept = []
        for name in folders:
            path = (relative / name).as_posix()
            if ignored.leaves_out(path, is_folder=True):
                continue
            if name in FORBIDDEN_FOLDERS:
                forbidden.append(path)
            else:
                kept.append(name)
        folders[:] = kept
        for name in files:
            path = (relative / name).as_posix()
            if not ignored.leaves_out(path, is_folder=False):
                yield path
