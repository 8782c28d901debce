"""Reads a trace strictly; an error names the number of the line.

Only the last line may be cut off: the run was killed then.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from devhost.errors import TraceError
from devhost.text.user_file import open_file
from devhost.text.yaml_file import describe
from devhost.trace.lines import VERSION, Header, NoticeLine, TraceLine

_LINE: TypeAdapter[TraceLine] = TypeAdapter(TraceLine)


@dataclass(frozen=True)
class Trace:
    """A trace as it was written: its header and its lines, in order."""

    header: Header
    lines: tuple[TraceLine, ...]
    cut_off: bool
    """The last line is incomplete: the process that wrote it was killed."""

    @property
    def notices(self) -> tuple[str, ...]:
        """Each once, although a chat may start its plugins again."""
        return tuple(dict.fromkeys(line.sentence for line in self.lines if isinstance(line, NoticeLine)))


def read_trace(file: Path, only: re.Pattern[bytes] | None = None) -> Trace:
    """TraceError, with the number of the line, for a file that is not a whole trace; a cut last line is allowed.

    `only`: lines after the header in which it is not found are left out, unread.
    """
    try:
        with open_file(file) as trace:
            data = trace.read()
    except OSError as error:
        raise TraceError(f"{file} cannot be read: {error.strerror}") from error
    *written, rest = data.split(b"\n")
    cut_off = not _is_whole(rest)
    if not cut_off:  # an editor took the last line's end
        written.append(rest)
    numbered = [(number, text) for number, text in enumerate(written, start=1) if text.strip()]
    if not numbered:
        raise TraceError(f"{file}, line 1: there is no complete line, so this is not a trace of devhost")
    (first, text), *others = numbered
    if only is not None:
        others = [(number, line) for number, line in others if only.search(line)]
    return Trace(header_of(file, first, text), tuple(lines_of(file, others)), cut_off)


def _is_whole(rest: bytes) -> bool:
    try:
        json.loads(rest.strip() or b"{}")
    except (ValueError, RecursionError):
        return False
    return True


def header_of(file: Path, number: int, text: bytes) -> Header:
    """The first line of a trace; TraceError if it is not one."""
    data = _object(file, number, text)
    if data.get("trace") != "devhost":
        raise TraceError(f"{file}, line {number}: not a trace of devhost")
    if data.get("version") != VERSION:
        raise TraceError(
            f"{file}, line {number}: "
            f"the trace is of version {data.get('version')!r}; this devhost reads version {VERSION}"
        )
    try:
        return Header.model_validate(data)
    except ValidationError as error:
        raise TraceError(f"{file}, line {number}: {describe(error)}") from error


def lines_of(file: Path, written: Iterable[tuple[int, bytes]]) -> Iterator[TraceLine]:
    """Lines with their numbers; TraceError for one that a trace does not have."""
    for number, text in written:
        try:
            yield _LINE.validate_python(_object(file, number, text))
        except ValidationError as error:
            raise TraceError(f"{file}, line {number}: {describe(error)}") from error


def _object(file: Path, number: int, text: bytes) -> dict[str, object]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{file}, line {number}: not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise TraceError(f"{file}, line {number}: a line must be an object")
    return data
