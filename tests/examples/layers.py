"""Which packages of an example a file imports, for the tests of the examples' layers."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

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


def misplaced(package: ModuleType) -> Iterator[str]:
    """Each import of a module that is not to the left of its own in the order that the package's docstring names.

    Also each module that the order does not name.
    """
    folder = Path(package.__path__[0])
    (chain,) = re.findall(r"`([^`]*→[^`]*)`", (package.__doc__ or "").replace("\n", " "))
    ranks = [set(re.findall(r"\w+", rank)) for rank in chain.split("→")]
    yield from set().union(*ranks) ^ {file.stem for file in folder.glob("[a-z]*.py")}
    for place, rank in enumerate(ranks):
        for module in rank:
            used = parts(folder / f"{module}.py") & set().union(*ranks[place:])
            yield from (f"{module} imports {other}" for other in used)


def parts(file: Path) -> set[str]:
    """The roots of what a file imports; of its own package the modules."""
    names = (name.removeprefix(f"{file.parent.name}.") for name in imported(file))
    return {name.split(".")[0] for name in names}
