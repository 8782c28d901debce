"""Reading YAML and JSON, and hiding secret values in what was read."""

import dataclasses
import errno
import json
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import jsonschema_rs
import yaml
from jsonschema_rs import Validator
from pydantic import ConfigDict, JsonValue, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from devhost.errors import DeclarationError
from devhost.golang import well_formed

# JSON Schemas that others wrote. No reference in one is ever followed out of it: nothing is requested.

DIFYS_OWN = "https://dify.ai/schemas/"
"""Schemas that Dify brings itself, such as the chunks of a knowledge base; here, every value fits them."""


def validator_of(schema: Any) -> Validator:  # noqa: ANN401 - what is not a schema is refused
    """A ValueError with one line for what is not a JSON Schema, or leads to another document than Dify's own."""
    try:
        return jsonschema_rs.validator_for(schema, retriever=_other_document)
    except (jsonschema_rs.ValidationError, ValueError, TypeError) as error:
        raise ValueError(str(error).splitlines()[0]) from error


def _other_document(address: str) -> bool:
    if address.startswith(DIFYS_OWN):
        return True
    raise ValueError(f"{address} is another document; devhost fetches none")


# JSON that a person typed, and whether a value from YAML is JSON: for fields of a script that are sent unchanged.

DEEPEST = 100
"""Levels."""
TOO_DEEP = f"it has more than {DEEPEST} levels"


def typed_json(text: str) -> Any:  # noqa: ANN401 - JSON
    """ValueError for what is not JSON, and for what is nested so deeply that no reader behind this one takes it."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    _refuse_depth(value, DEEPEST)
    return value


def _refuse_depth(value: object, left: int) -> None:
    if isinstance(value, dict | list):
        if not left:
            raise ValueError(TOO_DEEP)
        for part in value.values() if isinstance(value, dict) else value:
            _refuse_depth(part, left - 1)


def json_value(value: object) -> object:
    """YAML has dates, bytes, sets and mappings that contain themselves; JSON does not."""
    try:
        return _JSON.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = place_of(first["loc"][1::2])  # pydantic names the type of each value before its key
        reason = _NOT_JSON.get(first["type"], f"is {first['input']}, which is not a JSON value: put a text in quotes")
        raise PydanticCustomError("no_json", "{reason}", {"reason": f"{place} {reason}".strip()}) from None


_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue, config=ConfigDict(allow_inf_nan=False, defer_build=True))
_NOT_JSON = {
    "recursion_loop": "holds itself, which JSON cannot say",
    "string_type": "is a key that is not a text: put it in quotes",
}


# Values that must not be shown: secret credentials, and secrets that `--set` fixes. A value of fewer than six
# characters is not replaced: too much harmless text would contain it.

SHORTEST = 6
MASK = "[secret]"
BACKSLASHES = r"(?:\\|%(?:25)*5c){1,64}"
"""JSON within JSON doubles them each time; a bound keeps the search linear."""


class Secrets:
    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = {form for value in values for form in (value, well_formed(value)) if value}
        secrets = {value for value in self._values if len(value) >= SHORTEST}
        longest_first = sorted(secrets, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_spelled, longest_first))) if secrets else None

    def is_secret(self, value: object) -> bool:
        """Whether the whole value is a secret, however short."""
        return isinstance(value, str) and value in self._values

    def line_by_line(self) -> "Secrets":
        """These and, of those with several lines, each line: a text is printed line by line."""
        return Secrets([*self._values, *(line.strip() for value in self._values for line in value.splitlines())])

    def masked[T](self, value: T) -> T:
        """A copy of the same shape without secrets; the value itself if it contains none."""
        return value if self._pattern is None else _rewritten(value, self._pattern)


def _spelled(secret: str) -> str:
    """A pattern for all spellings; a run of backslashes is one of any length, as each layer of escapes adds more."""
    return "".join(map(_spelled_character, re.sub(r"\\+", r"\\", secret)))


def _spelled_character(character: str) -> str:
    """Which characters are left plain differs from one library to the next, so each is searched separately."""
    quoted = quote(character, safe="", errors="surrogatepass")
    if quoted == character:
        return re.escape(character)
    if character == "\\":
        return f"(?i:{BACKSLASHES}(?:u005c)?)"
    plain = {character, quoted, *(("+", "%2B") if character == " " else ())}
    escaped = {json.dumps(character)[1:-1], ascii(character)[1:-1], f"\\u{ord(character):04x}"}
    spellings = plain | escaped | {f"\\{text}" for text in plain}
    return f"(?i:{'|'.join(sorted(map(_deeper, spellings)))})"


def _deeper(spelling: str) -> str:
    """A pattern for it at any depth: backslashes escaped again, percent signs quoted again."""
    parts = re.split(r"\\+", spelling)
    return BACKSLASHES.join(re.escape(part).replace("%", "%(?:25)*") for part in parts)


def _rewritten(value: Any, pattern: re.Pattern[str]) -> Any:  # noqa: ANN401 - data of any shape
    match value:
        case str():
            return pattern.sub(MASK, value)
        case dict():
            return {_rewritten(key, pattern): _rewritten(item, pattern) for key, item in value.items()}
        case list() | tuple():
            return type(value)([_rewritten(item, pattern) for item in value])
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return dataclasses.replace(value, **{name: _rewritten(item, pattern) for name, item in fields.items()})
        case _:
            return value


# The words that Dify reads as true and as false, in any letter case.

TRUE = frozenset({"true", "yes", "y", "1"})
FALSE = frozenset({"false", "no", "n", "0"})


def reads_as_switch(text: str) -> bool:
    return text.lower() in TRUE | FALSE


# The files that a person names, or that lie in a folder that may come from somebody else: the one way to open them.

MOST_BYTES = 5 * 1024 * 1024
"""Of a file that is read as a whole, such as a script; a trace is read in lines, and may be longer."""


def open_file(file: Path) -> BinaryIO:
    """Only regular files: a pipe lets its reader wait without end, and a device such as /dev/zero has no end."""
    opened = open(file, "rb", opener=_without_waiting)  # noqa: SIM115 - Path.open has no opener
    if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
        opened.close()
        raise OSError(errno.EINVAL, "it is not a regular file", str(file))
    return opened


def read_file(file: Path) -> bytes:
    """The whole content, of at most `MOST_BYTES`."""
    with open_file(file) as opened:
        content = opened.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES // 1024**2} MiB", str(file))
    return content


def real_path(path: Path) -> Path:
    """Absolute, without links; a loop of links stays as it is, and is refused when it is opened."""
    return Path(os.path.realpath(path))


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


# YAML files as dictionaries, and pydantic's errors as sentences that name the key. What a file asks of the reader is
# bounded: 5 MiB, 100 levels, and a million values once each alias is written out.

FAST: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's, which every wheel of PyYAML contains: about ten times as fast."""
HALF_A_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
"""Escaped in a recorded script, if a model wrote one. libyaml refuses it, PyYAML's own loader does not."""
DEEPEST_YAML = 100
"""Levels. libyaml takes minutes for some thousands in one line, and its loader ends the process at many thousands."""
MOST_VALUES = 1_000_000
"""Ten lines of aliases of aliases can stand for thousands of millions of values."""


def load_yaml(file: Path) -> dict[str, Any]:
    data = read_yaml(file)
    if not isinstance(data, dict):
        raise DeclarationError(f"{file} must contain keys and values")
    return data


def read_yaml(file: Path) -> object:
    """Whatever the file contains."""
    try:
        text = read_file(file).decode()
        loader = yaml.SafeLoader if HALF_A_PAIR.search(text) else FAST
        _refuse_what_costs(file, yaml.parse(text, Loader=loader))
        data: object = yaml.load(text, Loader=loader)  # noqa: S506 - both are safe
    except OSError as error:
        raise DeclarationError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DeclarationError(f"{file} is not UTF-8, as its byte {error.start + 1} shows: save it as UTF-8") from error
    except yaml.YAMLError as error:
        said = str(error).replace('"<unicode string>"', file.name)  # PyYAML knows no name of a text
        raise DeclarationError(f"{file} is not valid YAML: {said}") from error
    except (ValueError, LookupError, AttributeError) as error:
        # What PyYAML's own readers of a date, a number or a tag let through: 2020-13-45, !!bool maybe.
        raise DeclarationError(f"{file} contains a value that YAML cannot convert: {error}") from error
    return data


def _refuse_what_costs(file: Path, events: Iterable[yaml.Event]) -> None:
    """Reads the file piece by piece, and no further than its first part that is too much."""
    around = [("", 0, 0)]
    """The collections around the place that is read: anchor, values so far, and levels below it."""
    known = dict[str, tuple[int, int]]()
    """Values and levels, by anchor."""
    for event in events:
        values, levels = 0, 0
        match event:
            case yaml.CollectionStartEvent():
                around.append((event.anchor or "", 1, 1))
            case yaml.CollectionEndEvent():
                name, values, levels = around.pop()
                known[name] = values, levels
            case yaml.AliasEvent():
                values, levels = known.get(event.anchor or "", (1, 0))
            case yaml.ScalarEvent():
                values = 1
        name, before, below = around[-1]
        around[-1] = name, before + values, max(below, levels + 1)
        if len(around) - 1 + levels > DEEPEST_YAML:
            raise DeclarationError(f"{file} is nested too deeply to be read: at most {DEEPEST_YAML} levels")
        if before + values > MOST_VALUES:
            raise DeclarationError(f"{file} stands for more than {MOST_VALUES:,} values")


def describe(error: ValidationError) -> str:
    """The findings on one line: `parameters[2].type: Field required; turns[0]: unknown key 'txt'`."""
    sentences = []
    for finding in findings(error):
        path, message = finding["loc"], finding["msg"]
        if finding["type"] == "extra_forbidden":
            path, message = path[:-1], f"unknown key {path[-1]!r}"
        sentences.append(f"{place_of(path)}: {message}" if path else message)
    return "; ".join(sentences)


def findings(error: ValidationError) -> list[ErrorDetails]:
    """A list whose entries have mistakes is also called too short: that is left out."""
    found = error.errors()

    def holds_another(location: tuple[int | str, ...]) -> bool:
        return any(other["loc"][: len(location)] == location != other["loc"] for other in found)

    return [finding for finding in found if finding["type"] != "too_short" or not holds_another(finding["loc"])]


def place_of(path: Iterable[int | str]) -> str:
    """`("turns", 1, "text")` → turns[1].text."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
