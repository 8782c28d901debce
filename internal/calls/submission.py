"""An answer that must satisfy the developer's schema: it is handed over by a valid call of ``submit_answer``.

In: the planned calls of each turn. Out: the answer once it was handed over, and whether the model may try once more.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jsonschema.exceptions import ValidationError

from internal.calls.plan import PlannedCall, ValidCall
from internal.text.redaction import KnownSecrets, Redactor
from internal.tools.toolbox import Tool

_HOLDS_SECRET = "it holds a secret value, which an answer must not repeat; leave it out"  # noqa: S105 - a sentence
MAX_CORRECTIONS = 2
"""How often errors in the answer go back to the model."""


@dataclass
class Submission:
    """One transcript's way to its answer."""

    _refused: int = 0
    _has_been_reminded: bool = False

    def take(self, planned: Sequence[PlannedCall]) -> Mapping[str, Any] | None:
        """The answer, if one of the calls hands it over."""
        for call in planned:
            if isinstance(call, ValidCall) and call.tool.virtual_schema is not None:
                return call.arguments
        self._refused += self.is_among(planned)
        return None

    def is_among(self, planned: Sequence[PlannedCall]) -> bool:
        """Whether the model tried to hand the answer over, validly or not."""
        return any(call.tool is not None and call.tool.virtual_schema is not None for call in planned)

    def may_correct(self) -> bool:
        """Whether the model may try again after an answer that did not fit."""
        return self._refused <= MAX_CORRECTIONS

    def may_remind(self) -> bool:
        """Whether a model that answered in text is asked for the call: once."""
        may, self._has_been_reminded = not self._has_been_reminded, True
        return may


def refusing_secrets(tool: Tool, secrets: KnownSecrets) -> Tool:
    """The tool that takes the answer; one that holds a known secret is refused like one that does not fit."""

    def more(value: Any) -> Iterator[ValidationError]:  # noqa: ANN401 - JSON
        if secrets.redactor.holds_secret(value):
            yield ValidationError(_HOLDS_SECRET, path=_place_of_secret(value, secrets.redactor))

    if tool.virtual_schema is None:
        return tool
    check = tool.virtual_schema.check.stricter(more)
    return replace(tool, virtual_schema=replace(tool.virtual_schema, check=check))


def _place_of_secret(value: object, redactor: Redactor) -> list[str | int]:
    """The way to the innermost value that holds one; not into the names of an object."""
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for part, item in items:
        if redactor.holds_secret(item) and not redactor.holds_secret(part):
            return [part, *_place_of_secret(item, redactor)]
    return []


def written_out(answer: Mapping[str, Any]) -> str:
    """The answer as text: JSON that a person can read."""
    return json.dumps(answer, ensure_ascii=False, indent=2)
