"""Adds a case at the end of a file of cases; all that is there stays as it is, with its comments and its order.

In: the file, a case as plain data. Out: the file with one case more. A file to which nothing can be added so is
refused, and keeps its bytes.
"""

import secrets
from pathlib import Path
from textwrap import indent

import yaml

from devhost.errors import HostError, SuiteError
from devhost.evaluation.suite import Suite
from devhost.protocol.wire import JsonObject
from devhost.recording.file import readable
from devhost.text.user_file import read_file

CASES = "cases"


def names_in(file: Path) -> list[str]:
    """Of its cases; none of a file that is not there yet. HostError for one that cannot be read."""
    return [case.name for case in Suite.read(file).cases] if file.exists() else []


def append_case(file: Path, case: JsonObject) -> None:
    """The new file takes the old one's place only when it reads as the old cases and this one."""
    before = names_in(file)
    written = _added(file, case) if before else readable({CASES: [case]})
    fresh = file.with_name(f".{file.stem}-{secrets.token_hex(4)}{file.suffix}")
    try:
        fresh.write_bytes(written.encode())
        after = [each.name for each in Suite.read(fresh).cases]
        if after != [*before, case["name"]]:
            raise SuiteError(_cannot(file, "the case would not be its last one"))
        fresh.replace(file)
    except OSError as error:
        raise SuiteError(f"{file} cannot be written: {error.strerror}") from error
    except HostError as error:
        raise SuiteError(str(error).replace(str(fresh), str(file))) from error
    finally:
        fresh.unlink(missing_ok=True)


def _added(file: Path, case: JsonObject) -> str:
    """As bytes in UTF-8, so that the ends of lines stay as they are."""
    text = read_file(file).decode()
    whole = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(whole, yaml.MappingNode):
        raise SuiteError(_cannot(file, "it is not a mapping"))
    key, cases = whole.value[-1]
    if key.value != CASES:
        raise SuiteError(_cannot(file, f"its last key is {key.value!r}: move {CASES} to the end"))
    if cases.flow_style:
        raise SuiteError(_cannot(file, f"{CASES} stands in brackets: write a line with - for each"))
    entry = indent(readable([case]), " " * cases.start_mark.column)
    return f"{text}{'' if text.endswith('\n') else '\n'}{entry}"


def _cannot(file: Path, why: str) -> str:
    return f"{file}: no case can be added at its end: {why}"
