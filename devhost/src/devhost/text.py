"""Reads YAML and JSON, and hides secret values."""

import dataclasses
import errno
import json
import os
import re
import shutil
import stat
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import jsonschema_rs
import yaml
from jsonschema_rs import Validator
from pydantic import ConfigDict, JsonValue, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from devhost.errors import DeclarationError
from devhost.golang import well_formed

# JSON Schemas from other authors. References to other documents are never followed, so no request is sent.

DIFYS_OWN = "https://dify.ai/schemas/"
"""The address of Dify's own schemas, such as the schema of a knowledge base's chunks.

In devhost, any value matches them.
"""


def validator_of(schema: Any) -> Validator:  # noqa: ANN401 - what is not a schema is refused
    """Return a validator for a JSON Schema.

    Raises ValueError with a one-line message if the schema is invalid or refers to a document that is not Dify's.
    """
    try:
        return jsonschema_rs.validator_for(schema, retriever=_other_document)
    except (jsonschema_rs.ValidationError, ValueError, TypeError) as error:
        raise ValueError(str(error).splitlines()[0]) from error


def _other_document(address: str) -> bool:
    if address.startswith(DIFYS_OWN):
        return True
    raise ValueError(f"{address} is another document; devhost fetches none")


# Values that may be invalid, and the errors about them.


@contextmanager
def worded(error: Callable[[str], Exception]) -> Iterator[None]:
    """Convert an error from pydantic or the operating system into an `error` made from its message."""
    try:
        yield
    except ValidationError as found:
        raise error(describe(found)) from found
    except OSError as found:
        raise error(found.strerror or str(found)) from found


def json_or[T](text: str | bytes, otherwise: T) -> Any | T:  # noqa: ANN401 - JSON
    """Parse JSON, or return `otherwise` for a text that is not JSON or is nested too deeply."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise


def properties_of(schema: object) -> dict[str, Any]:
    """Return the properties of a JSON Schema; empty for a value that is not a schema."""
    properties = None
    if isinstance(schema, dict):
        properties = schema.get("properties")
    if isinstance(properties, dict):
        return properties
    return {}


# A check that a value from YAML is JSON, for fields of a script that are sent unchanged.


def json_value(value: object) -> object:
    """Check that a value from YAML is JSON. YAML also has dates, bytes, sets and mappings that contain themselves."""
    try:
        return _JSON.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = place_of(first["loc"][1::2])  # pydantic names the type of each value before its key
        reason = f"{place} is {first['input']}, which JSON does not have: put a text in quotes".strip()
        raise PydanticCustomError("no_json", "{reason}", {"reason": reason}) from None


_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue, config=ConfigDict(allow_inf_nan=False, defer_build=True))


# Values that must not be shown: secret credentials, and secret parameters from `--set`. A value of fewer than six
# characters is not replaced, because too much harmless text would contain it.

SHORTEST = 6
MASK = "[secret]"


class Secrets:
    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = {form for value in values for form in (value, well_formed(value)) if value}
        spelled = {form for value in self._values if len(value) >= SHORTEST for form in _spellings(value)}
        longest_first = sorted(spelled, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if spelled else None

    def is_secret(self, value: object) -> bool:
        """Return whether the whole value is a secret, however short."""
        return isinstance(value, str) and value in self._values

    def line_by_line(self) -> "Secrets":
        """Return these secrets and each line of those with several lines, because text is printed line by line."""
        return Secrets([*self._values, *(line.strip() for value in self._values for line in value.splitlines())])

    def masked[T](self, value: T) -> T:
        """Return a copy of the same shape without secrets, or the value itself if it contains none."""
        if self._pattern is None:
            return value
        copy: T = rewritten(value, partial(self._pattern.sub, MASK))
        return copy


def _spellings(secret: str) -> set[str]:
    """Return the spellings of a secret: plain and URL-encoded, and each of these in JSON and in JSON within JSON."""
    found = {secret, quote(secret, errors="surrogatepass"), quote(secret, safe="", errors="surrogatepass")}
    for _ in range(2):
        found |= {json.dumps(each, ensure_ascii=ascii_only)[1:-1] for each in found for ascii_only in (True, False)}
    return found


def rewritten(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401 - data of any shape
    """Return a copy in which `change` was applied to every string, including keys."""
    match value:
        case str():
            return change(value)
        case dict():
            return {rewritten(key, change): rewritten(item, change) for key, item in value.items()}
        case list() | tuple():
            return type(value)([rewritten(item, change) for item in value])
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return dataclasses.replace(value, **{name: rewritten(item, change) for name, item in fields.items()})
        case _:
            return value


# The words that Dify reads as true or false in any letter case, listed here in lower case.

SWITCHES = {**dict.fromkeys(("true", "yes", "y", "1"), True), **dict.fromkeys(("false", "no", "n", "0"), False)}


# The only way to open files that a user names, or that are in a folder that may come from someone else.

MOST_BYTES = 5 * 1024 * 1024
"""The maximum size of a file such as a script, in bytes. A trace may be longer."""


def open_file(file: Path) -> BinaryIO:
    """Open a regular file. A pipe could block its reader forever, and a device such as /dev/zero has no end."""
    opened = open(file, "rb", opener=_without_waiting)  # noqa: SIM115 - Path.open has no opener
    if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
        opened.close()
        raise OSError(errno.EINVAL, "it is not a regular file", str(file))
    return opened


def read_file(file: Path, most: int = MOST_BYTES) -> bytes:
    """Return the whole content. Raises OSError, before anything is read, for a file of more than `most` bytes."""
    with open_file(file) as opened:
        if os.fstat(opened.fileno()).st_size <= most:
            content = opened.read(most + 1)  # it may grow meanwhile
            if len(content) <= most:
                return content
    raise OSError(errno.EFBIG, f"it has more than {most // 1024**2} MiB", str(file))


def write_file(file: Path, content: bytes) -> None:
    """Replace the whole file at once. If the process is killed meanwhile, the old content stays.

    A device is written to directly.
    """
    target = real_path(file)
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    new = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        with new.open("xb") as written:
            written.write(content)
            written.flush()
            os.fsync(written.fileno())
        if target.exists():
            shutil.copymode(target, new)
        new.replace(target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def real_path(path: Path) -> Path:
    """Return the absolute path without links. A loop of links stays as it is, and cannot be opened."""
    return Path(os.path.realpath(path))


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


# YAML files as dictionaries, and pydantic's errors as sentences that name the key. A file is limited to 5 MiB, 100
# levels, and a million values after its aliases are expanded.

FAST: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader of libyaml, which every wheel of PyYAML contains. It is about ten times as fast."""
HALF_A_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
"""An escaped half of a surrogate pair, which a model may write. libyaml refuses it, but PyYAML's loader does not."""
DEEPEST = 100
"""The maximum number of levels. libyaml's loader ends the process at many thousands."""
MOST_VALUES = 1_000_000
"""The maximum number of values. Ten lines of nested aliases can stand for billions of values."""


IN_A_TEXT = re.compile("mapping values|flow mapping|flow sequence|unhashable")
"""Parts of PyYAML's messages about a text without quotes that looks like a key or a list."""
KEY_AND_COLON = re.compile(r"[^:]*:\s+[^\s:]+:(\s|$)")
"""A line whose value has a colon, too. Any other line is indented too far."""
INDENTATION = "\nCheck the indentation: keys of one level begin in the same column"
QUOTES = "\nPut a text that contains a colon with a space, or begins with {, [ or &, in quotes"


def load_yaml(file: Path) -> dict[str, Any]:
    try:
        content = read_file(file)
    except OSError as error:
        raise DeclarationError(f"{file} cannot be read: {error.strerror}") from error
    return load_yaml_text(content, file)


def load_yaml_text(content: bytes, file: Path) -> dict[str, Any]:
    """Return the keys and values of a YAML text. `file` is its name in errors."""
    text = ""
    try:
        text = content.decode()
        loader = FAST
        if HALF_A_PAIR.search(text):
            loader = yaml.SafeLoader
        _refuse_depth(file, yaml.parse(text, Loader=loader))
        data = yaml.load(text, Loader=loader)  # noqa: S506 - both are safe
        values = _values(data, {})
    except UnicodeDecodeError as error:
        raise DeclarationError(f"{file} is not UTF-8, as its byte {error.start + 1} shows: save it as UTF-8") from error
    except yaml.MarkedYAMLError as error:
        raise DeclarationError(f"{file} is not valid YAML: {_mistake(error, text)}") from error
    except yaml.YAMLError as error:
        raise DeclarationError(f"{file} is not valid YAML: {error}") from error
    except (ValueError, LookupError, AttributeError, RecursionError) as error:
        # PyYAML does not convert errors about invalid dates, numbers and tags, such as 2020-13-45 or !!bool maybe.
        raise DeclarationError(f"{file} contains a value that YAML cannot convert: {error}") from error
    if values > MOST_VALUES:
        raise DeclarationError(f"{file} stands for more than {MOST_VALUES:,} values")
    if not isinstance(data, dict):
        raise DeclarationError(f"{file} must contain keys and values")
    return data


def _mistake(error: yaml.MarkedYAMLError, text: str) -> str:
    """Describe what is wrong, where it is, and what would help."""
    said = f"{error.context or ''} {error.problem or ''}".strip()
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return said
    lines = text.splitlines() or [""]
    marked = lines[min(mark.line, len(lines) - 1)]
    hint = ""
    is_too_far_right = "mapping values" in said and not KEY_AND_COLON.match(marked)
    if is_too_far_right or "did not find expected key" in said or "expected <block end>" in said:
        hint = INDENTATION
    elif IN_A_TEXT.search(said):
        hint = QUOTES
    return f"line {mark.line + 1}, column {mark.column + 1}: {said}{hint}"


def _refuse_depth(file: Path, events: Iterable[yaml.Event]) -> None:
    level = 0
    for event in events:
        level += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if level > DEEPEST:
            raise DeclarationError(f"{file} is nested too deeply to be read: at most {DEEPEST} levels")


def _values(value: object, known: dict[int, int]) -> int:
    """Count the values, with aliases expanded. Raises ValueError for a value that contains itself.

    `known` maps the identity of each counted value to its count.
    """
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        known[id(value)] = 0  # marks a value whose parts are being counted
        parts = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_values(part, known) for part in parts)
    elif not known[id(value)]:
        raise ValueError("an alias (*) stands inside the value that it is an alias of")
    return known[id(value)]


_IN_YAML = {
    **dict.fromkeys(("tuple_type", "list_type"), "Input should be a list"),
    **dict.fromkeys(("dict_type", "model_type", "dataclass_type"), "Input should be keys with values"),
    "too_short": "Input should have an entry",  # no list in devhost needs two entries
}
"""Replacements for pydantic's messages, which name Python's types."""


def describe(error: ValidationError) -> str:
    """Describe the errors on one line: `parameters[2].type: Field required; turns[0]: unknown key 'txt'`."""
    sentences = []
    places = [finding["loc"] for finding in error.errors()]
    for finding in error.errors():
        path = finding["loc"]
        message = _IN_YAML.get(finding["type"], finding["msg"])
        if finding["type"] == "too_short" and any(place[: len(path)] == path != place for place in places):
            continue  # pydantic also reports a list whose entries have mistakes as too short
        if finding["type"] == "extra_forbidden":
            message = f"unknown key {path[-1]!r}"
            path = path[:-1]
        sentences.append(f"{place_of(path)}: {message}" if path else message)
    return "; ".join(sentences)


def place_of(path: Iterable[int | str]) -> str:
    """Format a path: `("turns", 1, "text")` becomes `turns[1].text`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
