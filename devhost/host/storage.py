"""What plugins keep in storage, by plugin and key.

In: a plugin's request. Out: the daemon's answer, or its refusal. With a file, what is kept outlives the command; the
file is JSON, with the values in hexadecimal as they cross the wire.
"""

import json
import threading
from collections.abc import Mapping
from pathlib import Path

from devhost.errors import ParameterError, RefusedCallError
from devhost.limits import HostLimits
from devhost.plugin.keys.manifest import Manifest
from devhost.protocol import requests
from devhost.protocol.wire import JsonObject
from devhost.text.user_file import open_file

LONGEST_KEY = 256
MARK = {"storage": "devhost"}
ROOT = "/app/storage/persistence/devhost"
"""Where the daemon would keep it; plugins see it in an error only."""


class PluginStorage:
    """Thread-safe."""

    def __init__(self, file: Path | None = None) -> None:
        """ParameterError if the file exists and is not devhost's own."""
        self._file = file
        self._using = threading.Lock()
        self._plugins: dict[str, dict[str, str]] = {} if file is None else _read(file)

    def answer(self, manifest: Manifest, request: JsonObject, limits: HostLimits) -> JsonObject:
        asked = requests.to_the_api(requests.STORAGE, request)
        plugin, key = f"{manifest.author}/{manifest.name}", str(asked["key"])
        with self._using:
            kept = self._plugins.setdefault(plugin, {})
            match asked["opt"]:
                case "get":
                    if key not in kept:
                        path = f"{ROOT}/{plugin}/{key}"
                        raise RefusedCallError(f"load data failed: open {path}: no such file or directory")
                    return {"data": kept[key]}
                case "exist":
                    return {"data": key in kept}
                case "del":
                    kept.pop(key, None)
                case _:
                    _check(kept, key, str(asked["value"]), _most(manifest, limits))
                    kept[key] = str(asked["value"])
            self._write()
        return {"data": "ok"}

    def _write(self) -> None:
        if self._file is not None:
            text = json.dumps({**MARK, "plugins": self._plugins}, ensure_ascii=False, indent=2)
            beside = self._file.with_name(f"{self._file.name}.new")
            try:
                beside.write_text(text, encoding="utf-8", errors="replace")
                beside.replace(self._file)
            except OSError as error:
                raise RefusedCallError(f"save data failed: {error}") from error


def _most(manifest: Manifest, limits: HostLimits) -> int:
    declared = manifest.resource.permission.storage.size
    return limits.storage_bytes if declared is None else min(declared, limits.storage_bytes)


def _check(kept: Mapping[str, str], key: str, value: str, most: int) -> None:
    """RefusedCallError for a value that the daemon does not keep."""
    try:
        size = len(bytes.fromhex(value))
    except ValueError:
        fault = "odd length hex string" if len(value) % 2 else "invalid byte"
        raise RefusedCallError(f"decode data failed: encoding/hex: {fault}") from None
    if len(key.encode()) > LONGEST_KEY:
        raise RefusedCallError(f"save data failed: key length must be less than {LONGEST_KEY} characters")
    others = sum(len(text) // 2 for name, text in kept.items() if name != key)
    if size + others > most:
        raise RefusedCallError("save data failed: allocated size is greater than max storage size")


def _read(file: Path) -> dict[str, dict[str, str]]:
    if not file.parent.is_dir():
        raise ParameterError(f"the storage {file} cannot be written: there is no folder {file.parent}")
    try:
        with open_file(file) as storage:
            data = json.load(storage)
    except FileNotFoundError:
        data = {**MARK, "plugins": {}}
    except OSError as error:
        raise ParameterError(f"the storage {file} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError):
        data = None
    match data:
        case {"storage": "devhost", "plugins": dict(plugins)}:
            return plugins
        case _:
            raise ParameterError(f"{file} exists and is not a storage of devhost: name another file with --storage")
