"""The variables of the workflow around an Agent node, and what text they become in a template (as in graphon 0.7).

In: values by `node.name`. Out: the value behind a selector, and templates with `{{#node.name#}}` filled in.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from devhost.errors import ParameterError
from devhost.plugin.casting import is_file
from devhost.protocol.wire import JsonObject

_REFERENCE = re.compile(r"\{\{#([a-zA-Z0-9_]{1,50}(?:\.[a-zA-Z_][a-zA-Z0-9_]{0,29}){1,10})#\}\}")
_NAME = re.compile(r"[a-zA-Z0-9_]{1,50}\.[a-zA-Z_][a-zA-Z0-9_]{0,29}")
_FILE_ATTRIBUTES = {
    "type": "type",
    "size": "size",
    "name": "filename",
    "mime_type": "mime_type",
    "transfer_method": "transfer_method",
    "url": "url",
    "extension": "extension",
    "related_id": "related_id",
}
"""What a selector may name of a file, and the key under which the file's dictionary has it."""


@dataclass(frozen=True)
class Variable:
    value: object

    @property
    def text(self) -> str:
        """The text that replaces it in a template."""
        value = self.value
        match value:
            case None | []:
                return ""
            case dict():
                return "" if is_file(value) else json.dumps(value, ensure_ascii=False)
            case list() if all(isinstance(item, str) for item in value):
                return json.dumps(value, ensure_ascii=False)
            case list() if all(is_file(item) for item in value):
                return ""
            case _:  # a list of anything else is written as Python writes it
                return str(value)


class NodeVariables:
    def __init__(self, values: Mapping[str, object]) -> None:
        """`values`: by `node.name`; ParameterError for a name that no selector could name."""
        for name in values:
            if not _NAME.fullmatch(name):
                raise ParameterError(
                    f"variable {name!r}: the name must be NODE.NAME, such as start.items (letters, digits and _)"
                )
        self._values = dict(values)

    def __or__(self, others: Mapping[str, object]) -> Self:
        return type(self)({**self._values, **others})

    def get(self, selector: Sequence[str]) -> Variable | None:
        """Two parts name a variable; more go on into an object, or name an attribute of a file."""
        name = ".".join(selector[:2])
        if len(selector) < 2 or name not in self._values:  # noqa: PLR2004 - node and name
            return None
        found, path = Variable(self._values[name]), selector[2:]
        if path and is_file(found.value):
            return _attribute(found.value, path[0])
        for key in path:
            inner = found.value
            if not isinstance(inner, dict) or is_file(inner) or key not in inner:
                return None
            found = Variable(inner[key])
        return found

    def filled(self, template: str) -> str:
        """References to what does not exist leave their bare selector; text between them that is one is resolved."""
        return "".join(self._part(part) for part in _REFERENCE.split(template) if part)

    def _part(self, part: str) -> str:
        variable = self.get(part.split(".")) if "." in part else None
        return part if variable is None else variable.text


def _attribute(file: JsonObject, name: str) -> Variable | None:
    return Variable(file.get(_FILE_ATTRIBUTES[name])) if name in _FILE_ATTRIBUTES else None
