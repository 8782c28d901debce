"""Files that a package must not hold, and how much it may hold.

In: `Contents`. Out: problems of the rules `forbidden-file` and `size`. The names are those of the marketplace's
pre-check; the sizes are the daemon's (MAX_PLUGIN_PACKAGE_SIZE) and the pre-check's.
"""

from collections.abc import Iterator
from fnmatch import fnmatch

from devhost.plugin.contents.files import Contents
from devhost.plugin.rules.listed import Problem

MAX_BYTES = 50 * 1024 * 1024
"""Of all files together, and of the package."""
MAX_FILES = 5000
PATTERNS = (
    *(".env", ".env.*", ".DS_Store", "*.pyc", "*.pyo", "*.log", "*.pem", "*.key", "*.tmp", "*.bak", "*.difypkg"),
    *("*~", "*.swp", "*.swo"),
    *("*.so", "*.dll", "*.dylib", "*.exe", "*.o", "*.a"),
)
ALLOWED = frozenset({".env.example"})
PROGRAMS = (b"\x7fELF", b"MZ\x90\x00", b"\xcf\xfa\xed\xfe", b"\xfe\xed\xfa\xcf", b"\xca\xfe\xba\xbe")
"""How programs of Linux, Windows and macOS begin."""


def forbidden_problems(contents: Contents) -> Iterator[Problem]:
    remedy = f"add it to {contents.ignored_by or '.difyignore'}"
    for folder in contents.forbidden_folders:
        yield Problem("forbidden-file", f"{folder}/", "", f"a package must not hold it; {remedy}")
    for path in contents.paths:
        name = path.rpartition("/")[2]
        if not contents.is_regular(path):
            sentence = f"a link or a device, not a file; put the file itself here, or {remedy}"
            yield Problem("forbidden-file", path, "", sentence)
        elif name not in ALLOWED and any(fnmatch(name, pattern) for pattern in PATTERNS):
            yield Problem("forbidden-file", path, "", f"a package must not hold it; {remedy}")
        elif contents.read(path).startswith(PROGRAMS):
            yield Problem("forbidden-file", path, "", f"a program for one kind of machine; {remedy}")


def size_problems(contents: Contents, most_bytes: int = MAX_BYTES, most_files: int = MAX_FILES) -> Iterator[Problem]:
    sizes = {path: (contents.directory / path).lstat().st_size for path in contents.paths}
    if (total := sum(sizes.values())) > most_bytes:
        largest = max(sizes, key=lambda path: sizes[path])
        sentence = f"{total:,} bytes are more than {most_bytes:,}; the largest file is {largest}"
        yield Problem("size", ".", "", f"{sentence} ({sizes[largest]:,})")
    if len(sizes) > most_files:
        yield Problem("size", ".", "", f"{len(sizes):,} files are more than {most_files:,}")
