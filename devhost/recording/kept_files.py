"""The files of a traced run, which lie beside the trace, and their copies beside the script.

In: a trace's file, the script's file. Out: for each file of the run the path of a copy, relative to the script's
folder; and sentences about the files that are not there.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from devhost.files.run_folder import BESIDE_A_TRACE, SENT
from devhost.node.messages.saved_files import safe_name, save_once
from devhost.protocol.wire import JsonObject


class KeptFiles:
    def __init__(self, trace: Path, script: Path | None) -> None:
        """Without a `script`, the files stay where they are."""
        self._beside = trace.absolute().with_suffix(BESIDE_A_TRACE)
        self._copies = None if script is None else script.absolute().with_suffix(BESIDE_A_TRACE)
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
            yield from sorted(folder.glob(f"{_literal(name.stem)}-*{_literal(name.suffix)}"))

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


def _literal(text: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in text)
