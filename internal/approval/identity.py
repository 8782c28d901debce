"""The id of a call that waits: a number, and what the call is.

In: the tool's provider and own name, and the checked arguments. Out: an id, and whether an id belongs to such a call.
It guards against damage and mistakes, not against forgery: the digest needs no secret.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from internal.report.tool_calls import canonical_json

_DIGEST_LENGTH = 8
"""Hexadecimal digits."""
_ID = re.compile(rf"call_[0-9]+_(?P<digest>[0-9a-f]{{{_DIGEST_LENGTH}}})")


def call_id(number: int, provider: str, tool: str, arguments: Mapping[str, Any]) -> str:
    """The id of a call that waits; ``number`` counts those of a conversation, so that no two ids are equal."""
    return f"call_{number}_{_digest(provider, tool, arguments)}"


def is_same_call(identifier: str, provider: str, tool: str, arguments: Mapping[str, Any]) -> bool:
    """Whether the id is one of this tool with these arguments, whatever its number."""
    found = _ID.fullmatch(identifier)
    return found is not None and found["digest"] == _digest(provider, tool, arguments)


def _digest(provider: str, tool: str, arguments: Mapping[str, Any]) -> str:
    canonical = canonical_json([provider, tool, arguments])
    # Arguments may come from a state: half a surrogate pair in them is no reason to fail.
    return hashlib.sha256(canonical.encode(errors="surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
