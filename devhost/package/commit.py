"""How the files of a package compare with the last commit.

In: `Contents`. Out: paths; none without git, or in a folder of which git knows no file. A package of a commit is the
same everywhere, and holds nothing that a person or a program left in the folder.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from devhost.plugin.contents.files import Contents


def unknown_files(contents: Contents) -> tuple[str, ...]:
    """Those that were never added to git, also where git ignores them."""
    known = _listed(contents.directory, "ls-files", "-z")
    strange = tuple(path for path in contents.paths if path not in known)
    return strange if len(strange) < len(contents.paths) else ()


def changed_files(contents: Contents) -> tuple[str, ...]:
    """Those that git knows, and that are not as in the last commit."""
    changed = _listed(contents.directory, "diff", "--name-only", "--relative", "-z", "HEAD")
    return tuple(path for path in contents.paths if path in changed)


def folded(paths: Sequence[str], whole: Sequence[str]) -> tuple[str, ...]:
    """A folder in place of what it holds, if all of the `whole` paths in it are among these paths."""
    others = set(whole) - set(paths)

    def shown(path: str) -> str:
        folders = (path[: place + 1] for place, letter in enumerate(path) if letter == "/")
        return next((folder for folder in folders if not any(each.startswith(folder) for each in others)), path)

    return tuple(dict.fromkeys(map(shown, paths)))


def _listed(directory: Path, *question: str) -> frozenset[str]:
    git = shutil.which("git")
    if git is None:
        return frozenset()
    told = subprocess.run([git, *question], check=False, capture_output=True, cwd=directory)
    return frozenset(told.stdout.decode(errors="replace").split("\0")) if told.returncode == 0 else frozenset()
