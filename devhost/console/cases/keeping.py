"""Keeps a run as a case: its recorded script in a file, and its expectations in a file of cases.

In: a trace, a name, what is expected. Out: a `Kept`. If anything cannot be written, nothing stays of it.
"""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from devhost.console.cases.appending import append_case, names_in
from devhost.console.cases.expecting import Expecting
from devhost.console.runs.typed import refusal
from devhost.console.suites.known import SCRIPT_OF_A_CASE
from devhost.errors import HostError, SuiteError
from devhost.files.run_folder import BESIDE_A_TRACE
from devhost.recording.case import recorded_case
from devhost.recording.file import write_case
from devhost.recording.kept_files import KeptFiles
from devhost.trace.reader import read_trace

LONGEST = 120
"""Characters of a case's name."""
LONGEST_FILE = 200
"""Bytes of the name of a file of cases: file systems allow 255, and the files beside it have longer names."""


@dataclass(frozen=True)
class Kept:
    case: str
    file: Path
    script: Path
    lacks: tuple[str, ...]
    """A sentence for each thing of the run that the case does not have."""


def mistakes_of(name: str, file: Path) -> dict[str, str]:
    """By field, before anything is written."""
    found = {}
    if not name or len(name) > LONGEST:
        found["name"] = f"a case needs a name of 1 to {LONGEST} characters"
    if len(bytes(Path(file.name))) > LONGEST_FILE:
        found["file"] = f"the name of the file is too long: it may have {LONGEST_FILE} bytes"
    elif why := refusal(file):
        found["file"] = why
    elif file.suffix not in {".yaml", ".yml"} or file.is_dir():
        found["file"] = "name a file that ends with .yaml"
    elif not file.parent.is_dir():
        found["file"] = f"there is no folder {file.parent}"
    else:
        try:
            taken = names_in(file)
        except (HostError, OSError, ValueError) as error:
            return {**found, "file": str(error)}
        if name in taken:
            found["name"] = f"{file} has a case of this name already"
    return found


def keep(trace: Path, name: str, file: Path, expecting: Expecting) -> Kept:
    """HostError if the run cannot be recorded, or the file of cases cannot be added to."""
    script = _free(file.parent, name)
    copies = script.absolute().with_suffix(BESIDE_A_TRACE)
    try:
        case = recorded_case(read_trace(trace), trace, KeptFiles(trace, script))
        write_case(case, script)
        append_case(file, {"name": name, "script": script.name, "expect": expecting.as_plain()})
    except (HostError, OSError, ValueError) as error:
        script.unlink(missing_ok=True)
        shutil.rmtree(copies, ignore_errors=True)
        if isinstance(error, HostError):
            raise
        raise SuiteError(f"{file}: {error}") from error
    return Kept(name, file, script, case.lacks)


def _free(folder: Path, name: str) -> Path:
    """A path for the script that no file has, nor the folder of its files."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()[:60] or "case"
    number = 1
    while True:
        script = folder / f"{words}{'' if number == 1 else f'-{number}'}{SCRIPT_OF_A_CASE}"
        if not script.exists() and not script.with_suffix(BESIDE_A_TRACE).exists():
            return script
        number += 1
