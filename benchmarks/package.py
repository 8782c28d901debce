"""Measures the plugin's package: the packed files according to .difyignore, and the packages in requirements.txt."""

import io
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from benchmarks.table import Row, Table, number_of_bytes

ROOT = Path(__file__).parent.parent
SDK = "dify-plugin"


def packed_files() -> list[Path]:
    """Return the sorted files of a .difypkg: all files except those whose name matches a pattern of .difyignore."""
    lines = (ROOT / ".difyignore").read_text(encoding="utf-8").splitlines()
    patterns = [line.rstrip("/") for line in lines if line and not line.startswith("#")]
    return sorted(_unless_ignored(ROOT, patterns))


def _unless_ignored(folder: Path, patterns: list[str]) -> Iterator[Path]:
    for entry in folder.iterdir():
        if any(fnmatch(entry.name, pattern) for pattern in patterns):
            continue
        if entry.is_dir():
            yield from _unless_ignored(entry, patterns)
        else:
            yield entry


def zipped(files: list[Path]) -> int:
    """Return the size in bytes of the .difypkg, which is a zip file."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as package:
        for path in files:
            package.write(path, path.relative_to(ROOT))
    return len(written.getvalue())


def required(names: list[str]) -> dict[str, Distribution]:
    """Return these distributions and all their requirements by name, as far as they are installed."""
    found: dict[str, Distribution] = {}
    waiting = [Requirement(name) for name in names]
    while waiting:
        requirement = waiting.pop()
        name = requirement.name.lower().replace("_", "-")
        if name in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue
        waiting += [Requirement(line) for line in found[name].requires or ()]
    return found


def installed_bytes(package: Distribution) -> int:
    """Return the size in bytes of a distribution's files, without compiled Python files."""
    files = [Path(str(file.locate())) for file in package.files or () if file.suffix != ".pyc"]
    return sum(path.stat().st_size for path in files if path.exists())


def table() -> Table:
    """Return a table of the package, its requirements, and the largest of those that the SDK does not require."""
    files = packed_files()
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    everything = required([line for line in lines if line and not line.startswith("#")])
    sizes = {name: installed_bytes(package) for name, package in everything.items()}
    of_the_sdk = required([SDK])
    own = sorted(sizes.keys() - of_the_sdk.keys(), key=lambda name: -sizes[name])
    return Table(
        "Package",
        ("what", "parts", "bytes", "size"),
        [
            _row("files in the package", len(files), sum(path.stat().st_size for path in files)),
            _row("the package, zipped", len(files), zipped(files)),
            _row("installed by requirements.txt", len(sizes), sum(sizes.values())),
            _row("of it, by the SDK alone", len(of_the_sdk), sum(sizes[name] for name in of_the_sdk)),
            *(_row(f"of it, {name} {everything[name].version}", 1, sizes[name]) for name in own),
        ],
    )


def _row(name: str, parts: int, size: int) -> Row:
    return Row((name, str(parts), f"{size:,}", number_of_bytes(size)))
