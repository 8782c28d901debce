"""Which packages of an example a file imports, for the tests of the examples' layers."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from support.imports import imported


def wrong_directions(folder: Path, order: Sequence[str]) -> Iterator[str]:
    """Each import that points to the right in `order`: the parts of a package, from what all use to what uses all."""
    for file in sorted(folder.rglob("*.py")):
        if file == folder / "__init__.py":
            continue
        own = file.relative_to(folder).parts[0].removesuffix(".py")
        used = {name.split(".")[1] for name in imported(file) if name.startswith(f"{folder.name}.")}
        allowed = {*order[: order.index(own) + 1]}
        yield from (f"{file.relative_to(folder)} imports {part}" for part in sorted(used - allowed))


def used_by(folder: Path) -> set[str]:
    """Full names of all modules that the files of a folder import, and of what they take from them."""
    return {name for file in folder.rglob("*.py") for name in imported(file)}
