"""The fields of a flow's Start node: what the command line and the script give, as Dify's form would take it."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from devhost.errors import ParameterError
from devhost.files import LocalFile
from devhost.flow.document import FlowFile
from devhost.limits import HostLimits
from devhost.node.messages import CUSTOM
from devhost.protocol.wire import JsonObject
from devhost.scenario import json_or_text, pairs

TEXTS = frozenset({"text-input", "paragraph"})
TYPED = TEXTS | {"select"}
ONE_FILE = "file"
FILES = frozenset({ONE_FILE, "file-list"})
AT = "@"
"""Before the path of a file."""


def start_fields(file: FlowFile) -> Mapping[str, JsonObject]:
    """By the variable's name, in the order of the form."""
    return {
        str(field["variable"]): field
        for node in file.nodes.values()
        if node.type == "start" and isinstance(node.data.get("variables"), list)
        for field in node.data["variables"]
        if isinstance(field, dict) and "variable" in field
    }


def typed_inputs(file: FlowFile, assignments: Iterable[str]) -> JsonObject:
    """`--input KEY=VALUE` pairs: a text field holds what is typed, other fields hold what the JSON says.

    A field for files holds texts, which `with_read_files` reads; a pair for each file.
    """
    fields = start_fields(file)
    inputs: JsonObject = {}
    for name, text in pairs(assignments, "--input"):
        kind = fields.get(name, {}).get("type")
        if kind in FILES:
            inputs[name] = [*inputs.get(name, ()), text]
        else:
            inputs[name] = text if kind in TYPED else json_or_text(text)
    return inputs


def with_read_files(file: FlowFile, inputs: Mapping[str, object], folder: Path, limits: HostLimits) -> JsonObject:
    """The fields for files with a `LocalFile`, or a list of them; paths are relative to `folder`.

    ParameterError for a file that cannot be read or is too large for Dify.
    """
    fields = start_fields(file)
    return {
        name: _read(name, str(fields[name]["type"]), value, folder, limits)
        if fields.get(name, {}).get("type") in FILES and value not in (None, "", [])
        else value
        for name, value in inputs.items()
    }


def _read(name: str, kind: str, value: object, folder: Path, limits: HostLimits) -> object:
    files = []
    for text in value if isinstance(value, list) else [value]:
        if not isinstance(text, str) or not text.startswith(AT):
            raise ParameterError(f"--input {name}: the field holds files: write {name}=@PATH, not {text!r}")
        files.append(LocalFile.read(folder / text.removeprefix(AT), limits))
    return files[0] if kind == ONE_FILE and len(files) == 1 else files


def wrong_inputs(file: FlowFile, given: Mapping[str, object]) -> Iterator[str]:
    fields = start_fields(file)
    for name in given:
        if name not in fields:
            yield f"--input {name}: the Start node has no such field; it has: {', '.join(fields) or 'none'}"
    for name, field in fields.items():
        value = given.get(name, field.get("default"))
        if field.get("required") and value in (None, "", []):
            kind = field.get("type")
            written = f"{name}={'@PATH' if kind in FILES else 'VALUE'}"
            yield f"the Start node needs the field {name!r} ({kind}): give it with --input {written}"
        elif name in given and (problem := _problem(field, given[name])):
            yield f"--input {name}: {problem}"


def filled_inputs(file: FlowFile, given: Mapping[str, object]) -> JsonObject:
    """With the defaults of the form."""
    return {name: given.get(name, field.get("default")) for name, field in start_fields(file).items()}


def _wrong_files(field: JsonObject, value: object) -> str | None:
    """By the field's own settings; Dify's limits for all files are checked when they are read."""
    files = [file for file in (value if isinstance(value, list) else [value]) if isinstance(file, LocalFile)]
    most = 1 if field.get("type") == ONE_FILE else field.get("max_length")
    if isinstance(most, int) and len(files) > most > 0:
        return f"{len(files)} files were given, and the field takes {most} at most"
    kinds = field.get("allowed_file_types") or ()
    endings = {str(ending).lower().removeprefix(".") for ending in field.get("allowed_file_extensions") or ()}
    for file in files:
        own = CUSTOM in kinds and file.path.suffix.lower().removeprefix(".") in endings
        if kinds and file.kind not in kinds and not own:
            return f"{file.path.name} is of the type {file.kind}, and the field takes: {', '.join(map(str, kinds))}"
    return None


def _problem(field: JsonObject, value: object) -> str | None:  # noqa: C901 - one case per type of field
    kind, most = field.get("type"), field.get("max_length")
    if value is None:
        return None
    if kind in FILES:
        return _wrong_files(field, value)
    if kind in TEXTS:
        if not isinstance(value, str):
            return f"{value!r} must be a text"
        if isinstance(most, int) and len(value) > most > 0:
            return f"the text has {len(value)} characters, and the field takes {most} at most"
    elif kind == "number":
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"{value!r} must be a number"
    elif kind == "checkbox":
        if not isinstance(value, bool):
            return f"{value!r} must be true or false"
    elif kind == "select":
        options = field.get("options") or []
        if value not in options:
            return f"{value!r} is not one of the options: {', '.join(map(str, options))}"
    elif kind == "json_object" and not isinstance(value, dict):
        return f"{value!r} must be a JSON object"
    return None
