"""Whether a text is as a case expects it. In: its name, the expectation, the text. Out: a `Check` for each key."""

import json
import re
from collections.abc import Iterator

import jsonschema_rs

from devhost.evaluation.checks.check import Check
from devhost.evaluation.checks.expected import TextExpected
from devhost.text.json_schema import validator_of

NO_TEXT = "no text"


def text_checks(name: str, expected: TextExpected, text: str) -> Iterator[Check]:
    """All but `equals`: what is compared with it is the caller's matter."""
    said = text or NO_TEXT
    for part in expected.contains:
        yield Check(f"{name} contains", part, "" if part in text else said)
    for part in expected.lacks:
        yield Check(f"{name} lacks", part, said if part in text else "")
    for pattern in expected.matches:
        yield Check(f"{name} matches", pattern, "" if re.search(pattern, text, re.MULTILINE) else said)
    if expected.json_schema is not None:
        schema = json.dumps(expected.json_schema)
        yield Check(f"{name} fits the JSON Schema", schema, _misfit(expected.json_schema, text))


def _misfit(schema: dict[str, object], text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return f"not JSON: {text}"
    try:
        validator_of(schema).validate(value)
    except jsonschema_rs.ValidationError as error:
        return f"{error.message}, in {text}"
    return ""
