"""A case as a file that people read and change.

In: a case. Out: YAML with texts of several lines as blocks; TraceError for a file that exists.
"""

from pathlib import Path

import yaml

from devhost.errors import TraceError
from devhost.recording.case import Case

WIDTH = 110


class _Readable(yaml.SafeDumper):
    def ignore_aliases(self, _data: object) -> bool:
        """A value that stands twice is written twice: a person may change one of them."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - PyYAML's
        """Lists are indented below their key."""
        super().increase_indent(flow, False)  # noqa: FBT003 - as above


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Readable.add_representer(str, _text)


def refuse_to_overwrite(file: Path, *, force: bool) -> None:
    if file.is_dir() or not file.parent.is_dir():
        raise TraceError(f"{file} cannot be written: name a file in a folder that exists")
    if file.exists() and not force:
        raise TraceError(f"{file} exists: name another file with -o, or give --force")


def readable(data: object) -> str:
    """Plain data as YAML."""
    return yaml.dump(data, Dumper=_Readable, sort_keys=False, allow_unicode=True, width=WIDTH)


def write_case(case: Case, file: Path) -> None:
    lacks = "".join(f"# Not recorded: {' '.join(sentence.split())}\n" for sentence in case.lacks)
    try:
        file.write_text(f"{lacks}{readable(case.script)}", encoding="utf-8")
    except OSError as error:
        raise TraceError(f"{file} cannot be written: {error.strerror}") from error
