"""Names of tools and files: matched with an allow-list, and unique and valid for every model API.

In: Dify's tool dicts and this turn's files. Out: identities, unique names, and which allow-list entries mean a tool.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count
from typing import Any, NamedTuple

from dify_plugin.file.file import File

_NAME_LENGTH = 64
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")


class ToolIdentity(NamedTuple):
    name: str
    provider: str
    icon: str = ""
    """An address or a file name. Dify's emoji icons, which are objects, are left out."""


def identify(raw: Mapping[str, Any]) -> ToolIdentity:
    identity = raw["identity"]
    icon = identity.get("icon")
    return ToolIdentity(identity["name"], identity.get("provider") or "", icon if isinstance(icon, str) else "")


def matching_entries(identity: ToolIdentity, allowed: frozenset[str]) -> frozenset[str]:
    """The allow-list entries that mean this tool: its name, or ``provider/name`` with the whole provider or its end."""
    parts = [*identity.provider.split("/"), identity.name]
    meanings = {"/".join(parts[start:]) for start in range(len(parts))}
    return allowed & meanings


def name_in_history(name: str) -> str:
    """The name of a call as model APIs accept it; a model may invent a tool of any name."""
    return _NOT_IN_A_NAME.sub("_", name)[:_NAME_LENGTH] or "unnamed"


def free_name(identity: ToolIdentity, taken: Iterable[str]) -> str:
    """A unique name that model APIs accept; tools of the same name get their provider's name in front."""
    plain = _NOT_IN_A_NAME.sub("_", identity.name)[:_NAME_LENGTH]
    plain = plain if re.search(r"[a-zA-Z0-9]", plain) else "tool"
    qualified = _NOT_IN_A_NAME.sub("_", f"{identity.provider.rsplit('/', 1)[-1]}_{plain}")[:_NAME_LENGTH]
    unavailable = frozenset(taken)
    return next(name for name in _candidates(plain, qualified) if name not in unavailable)


def _candidates(plain: str, qualified: str) -> Iterator[str]:
    yield plain
    yield qualified
    number = 2
    while True:
        ending = f"_{number}"
        yield plain[: _NAME_LENGTH - len(ending)] + ending
        number += 1


def name_files(files: Iterable[File]) -> dict[str, File]:
    """A distinct, readable name for each of this turn's files."""
    named: dict[str, File] = {}
    for position, file in enumerate(files, start=1):
        name = file.filename or f"{file.type.value}-{position}{file.extension or ''}"
        free = next(each for each in chain([name], (f"{number}-{name}" for number in count(2))) if each not in named)
        named[free] = file
    return named
