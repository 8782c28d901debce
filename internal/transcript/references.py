"""Results by reference. ``result:r1`` in a call's arguments refers to a result that the model has read."""

import json
import re
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import unquote

from internal.call import Reference, ToolOutcome
from internal.clock import Deadline, in_turns, let_others_through
from internal.host.session import MAX_REQUEST_BYTES
from internal.json_values import part_of, read_exactly, rebuilt, scalars, unescaped
from internal.text.texts import MAX_KEPT_LENGTH, MAX_NAMED, NOT_KEPT, cut_to_size, listed
from internal.tooling import UnwritableError, refuse_unwritable
from internal.transcript.kept_results import KeptResults
from prompt import template, tool_errors

_REFERENCE = re.compile(r"result:(r[0-9]{1,9})(?:#(.*))?", re.DOTALL)
_TOKEN = re.compile(r"(?:[^~]++|~[01])*+")
_LONGEST_SHOWN = 600
"""Maximum characters of a result in the question for approval."""
_QUOTE = 60
"""Maximum characters of a name or a reference in an error."""
_LONG = 100_000
"""Length in characters above which JSON is slow to parse or write."""


class ReferenceInvalid(Exception):  # noqa: N818 - the model reads the message
    """Raised if a reference does not point to a kept result or to a part of one."""


class _Part(NamedTuple):
    """The value to which a reference points."""

    value: Any
    shown: Any
    """The value as the user sees it. A long value is cut to the beginning and the end of its text or JSON."""
    length: int
    """Length of the text in characters."""
    tool: str


class References:
    """Replaces the references in the calls of one turn with results."""

    def __init__(self, results: KeptResults, ids: Sequence[str], deadline: Deadline) -> None:
        """Use results with these ids of the conversation. After the deadline, no more results are parsed."""
        self._results = results
        self._ids = ids
        self._known = frozenset(ids)
        self._deadline = deadline
        self._parts = dict[str, _Part]()
        self._read = OrderedDict[str, Any]()
        """The JSON values of the most recently used results, by id."""

    def resolved(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Reference]]:
        """Return the arguments with the results in them, and the reference of each argument that has one.

        Raises:
            ReferenceInvalid: a reference points to nothing, the results are too large for the host, or the time is up.
        """
        found = {name: list(_references(value)) for name, value in arguments.items()}
        used = Counter(each for references in found.values() for each in references)
        size = 0
        for each in in_turns(sorted(used, key=_result_of)):
            size += used[each] * self._part(each).length
            if size > MAX_REQUEST_BYTES:
                raise ReferenceInvalid(template.REFERENCES_TOO_LARGE)
        values = {
            name: self._with_results(value, "value") if found[name] else value for name, value in arguments.items()
        }
        return values, {name: self._reference(arguments[name], each) for name, each in found.items() if each}

    def _reference(self, value: object, references: Sequence[str]) -> Reference:
        named = {each: self._parts[each] for each in references}
        sizes = tuple((each, part.tool, part.length) for each, part in named.items())
        return Reference(value, self._with_results(value, "shown"), sizes)

    def _with_results(self, value: Any, field: str) -> Any:  # noqa: ANN401 - JSON
        def result(scalar: object, _name: str) -> object:
            if isinstance(scalar, str) and scalar in self._parts:
                return getattr(self._parts[scalar], field)
            return scalar

        return rebuilt(value, result)

    def _part(self, reference: str) -> _Part:
        if reference in self._parts:
            return self._parts[reference]
        if self._deadline.has_passed():
            raise ReferenceInvalid(template.REFERENCES_TOO_LATE)
        name, _, pointer = reference.removeprefix("result:").partition("#")
        if name not in self._known:
            known = ", ".join(f"result:{each}" for each in self._ids[-MAX_NAMED:]) or "none"
            raise ReferenceInvalid(template.UNKNOWN_REFERENCE.format(reference=f"result:{name}", known=known))
        kept = self._results.get(name)
        is_part = "#" in reference
        if kept is None or (kept.has_more_json if is_part else NOT_KEPT.search(kept.whole)):
            raise ReferenceInvalid(template.REFERENCE_IS_GONE.format(reference=f"result:{name}"))
        value: Any = kept.whole
        if is_part:
            value = _pointed_at(self._json_of(name, kept), pointer, f"result:{name}#")
            try:
                refuse_unwritable(value)  # deeply nested JSON can be neither checked nor sent
            except UnwritableError as problem:
                told = template.REFERENCE_UNFIT.format(reference=reference[:_QUOTE], problem=problem)
                raise ReferenceInvalid(told) from None
        if isinstance(value, str):
            text = value
        else:
            text = json.dumps(value, ensure_ascii=False)
        is_long = len(text) > _LONGEST_SHOWN
        shown = value
        if is_long:
            shown = cut_to_size(text, _LONGEST_SHOWN, note=template.LEFT_OUT_OF_QUESTION.format)
        part = self._parts[reference] = _Part(value, shown, len(text), kept.call.name)
        if len(text) > _LONG:
            let_others_through()
        return part

    def _json_of(self, name: str, kept: ToolOutcome) -> Any:  # noqa: ANN401 - JSON
        """Return the JSON of a result: the value, or a list of several values.

        Each result is parsed only once, because a long one takes time. A parsed value takes ten times the memory of its
        text, so only the last ones are kept.
        """
        if name in self._read:
            self._read.move_to_end(name)
            return self._read[name]
        if not kept.sent_json:
            raise ReferenceInvalid(template.REFERENCE_WITHOUT_JSON.format(reference=f"result:{name}"))
        size = _length_of(kept)
        while self._read and size + sum(map(self._length_of_kept, self._read)) > MAX_KEPT_LENGTH:
            self._read.popitem(last=False)
        sent = [read_exactly(text) for text in kept.sent_json]
        if len(sent) > 1:
            self._read[name] = sent
        else:
            self._read[name] = sent[0]
        if size > _LONG:
            let_others_through()
        return self._read[name]

    def _length_of_kept(self, name: str) -> int:
        return _length_of(self._results.get(name))


def _length_of(kept: ToolOutcome | None) -> int:
    """Return the number of characters of a result's JSON."""
    if kept is None:
        return 0
    return sum(map(len, kept.sent_json))


def _result_of(reference: str) -> str:
    """Return the id of the result that a reference points to."""
    return reference.partition("#")[0]


def _references(value: object) -> Iterator[str]:
    """Yield the texts in a value, at any depth, that are exactly a reference."""
    for scalar in scalars(value):
        if isinstance(scalar, str) and scalar.startswith("result:") and _REFERENCE.fullmatch(scalar):
            yield scalar


def _pointed_at(value: Any, pointer: str, begun: str) -> Any:  # noqa: ANN401 - JSON
    """Return the part of a JSON value at a JSON Pointer (RFC 6901), whose names may be percent-encoded, as in a URL.

    Raises:
        ReferenceInvalid: there is no such part. The message says where, and what exists there.
    """
    if pointer and not (pointer.startswith("/") and _TOKEN.fullmatch(pointer)):
        raise ReferenceInvalid(template.NO_POINTER.format(reference=f"{begun}{pointer}"[:_QUOTE]))
    for written in pointer.split("/")[1:]:
        try:
            value = _part_named(value, written)
        except LookupError:
            name = unescaped(written)[:_QUOTE]
            there = _what_is_there(value)
            told = template.NO_SUCH_PART.format(where=begun[-_QUOTE:], name=name, there=there)
            raise ReferenceInvalid(told) from None
        begun += f"/{written}"
    return value


def _part_named(value: object, written: str) -> Any:  # noqa: ANN401 - JSON
    """Return the part with this name, as written or percent-decoded. Raises LookupError if there is none."""
    with suppress(LookupError):
        return part_of(value, unescaped(written))
    return part_of(value, unescaped(unquote(written)))


def _what_is_there(value: object) -> str:
    if isinstance(value, dict):
        if value:
            names = [repr(name[:_QUOTE]) for name in islice(value, MAX_NAMED + 1)]
            return tool_errors.NAMES_THERE.format(names=listed(names))
        return tool_errors.NOTHING_THERE
    if isinstance(value, list):
        if value:
            return tool_errors.ITEMS_THERE.format(last=len(value) - 1)
        return tool_errors.NOTHING_THERE
    return tool_errors.NEITHER_OBJECT_NOR_ARRAY
