"""Which files of a package are not as in the last commit.

In: `Contents`. Out: their paths; none without git or a repository. A package of a commit is the same everywhere only
without such files.
"""

import shutil
import subprocess
from pathlib import Path

from devhost.plugin.contents.files import Contents


def uncommitted(contents: Contents) -> tuple[str, ...]:
    changed = _listed(contents.directory, "diff", "--name-only", "--relative", "-z", "HEAD")
    unknown = _listed(contents.directory, "ls-files", "--others", "-z")
    return tuple(path for path in contents.paths if path in changed | unknown)


def _listed(directory: Path, *question: str) -> frozenset[str]:
    git = shutil.which("git")
    if git is None:
        return frozenset()
    told = subprocess.run([git, *question], check=False, capture_output=True, cwd=directory)
    return frozenset(told.stdout.decode(errors="replace").split("\0")) if told.returncode == 0 else frozenset()
