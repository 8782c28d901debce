"""The files of a traced run next to the script, and secrets that were streamed in pieces."""

import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from glob import escape
from pathlib import Path, PurePosixPath

from devhost.files import BESIDE_A_TRACE, SENT
from devhost.node.messages import safe_name, save_once
from devhost.node.outputs.run import Run
from devhost.protocol.wire import JsonObject
from devhost.text import MASK, Secrets

# Secrets that stand in a trace in pieces, hidden again where the pieces are joined.
#
# A secret that a model streams in several pieces is in none of them whole, so that the trace has the pieces; but the
# run's outcome at the end of the trace has the whole text, with the secret replaced.

LONGEST_SECRET = 10_000
"""Characters."""


def hidden[T](value: T, outcomes: Iterable[Run]) -> T:
    """A copy of the same shape."""
    masked = {text for outcome in outcomes for text in _texts(asdict(outcome)) if MASK in text}
    whole = [text for text in _texts(value) if text]
    return Secrets({found for text in masked for found in _found(text, whole)}).masked(value)


def _found(masked: str, texts: Iterable[str]) -> Iterator[str]:
    """What stands in one of the texts where the masked one has a mask; a mask alone could stand for anything."""
    around = masked.split(MASK)
    if not any(part.strip() for part in around):
        return
    pattern = re.compile(f"(.{{1,{LONGEST_SECRET}}}?)".join(map(re.escape, around)), re.DOTALL)
    for text in texts:
        found = pattern.fullmatch(text.strip()) if MASK not in text else None
        yield from found.groups() if found else ()


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list() | tuple():
            for item in value:
                yield from _texts(item)


# The files of a traced run, which lie beside the trace, and their copies beside the script.


class KeptFiles:
    def __init__(self, trace: Path, script: Path | None) -> None:
        """Without a `script`, the files stay where they are."""
        self._beside = trace.absolute().with_suffix(BESIDE_A_TRACE)
        self._copies = None if script is None else script.absolute().with_suffix(BESIDE_A_TRACE)
        self.home = Path() if script is None else script.absolute().parent
        """The folder from which the script's paths go."""
        self.lacking: list[str] = []

    def sent(self, file: JsonObject) -> str | None:
        """A file of a question; None if there is no copy of it."""
        return self._kept(file, self._candidates(self._beside / SENT, file))

    def made(self, file: JsonObject) -> str | None:
        """A file of a tool, as the node's output or the message's meta describes it."""
        named = [self._beside / Path(str(file["path"])).name] if file.get("path") else []
        return self._kept(file, iter([*named, *self._candidates(self._beside, file)]))

    def _candidates(self, folder: Path, file: JsonObject) -> Iterator[Path]:
        """The file itself, and others that were numbered because another had its name."""
        name = Path(safe_name(str(file.get("filename") or "")))
        if folder.is_dir() and file.get("filename"):
            yield folder / name
            yield from sorted(folder.glob(f"{escape(name.stem)}-*{escape(name.suffix)}"))

    def _kept(self, file: JsonObject, candidates: Iterator[Path]) -> str | None:
        size = file.get("size")
        found = next((path for path in candidates if path.is_file() and size in (None, path.stat().st_size)), None)
        if found is None:
            name = str(file.get("filename") or "without a name")
            self.lacking.append(f"the file {name}: it is not in {self._beside.name}, the folder beside the trace")
            return None
        if self._copies is None:
            return str(found)
        copy = save_once(self._copies, found.name, found.read_bytes())
        shutil.copystat(found, copy)
        return str(PurePosixPath(self._copies.name, copy.name))
