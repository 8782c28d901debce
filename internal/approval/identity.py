"""The id of a call that waits: a number, and a digest of all that the user approves.

That is the tool with its setting in the node, the checked arguments, and the files that they name. It guards against
damage, mistakes and changes of the node, not against forgery: the digest needs no secret.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from dify_plugin.file.file import File

from internal.report.tool_calls import canonical_json
from internal.tools.toolbox import Tool

_DIGEST_LENGTH = 8
"""Hexadecimal digits."""
_ID = re.compile(rf"call_[0-9]+_(?P<digest>[0-9a-f]{{{_DIGEST_LENGTH}}})")
_SIGNATURE = frozenset({"timestamp", "nonce", "sign"})
"""What Dify signs the address of a file with; the file is the same behind another signature."""


def call_id(number: int, tool: Tool, arguments: Mapping[str, Any], files: Mapping[str, File]) -> str:
    """The id of a call that waits; ``number`` counts those of a conversation, so that no two ids are equal."""
    return f"call_{number}_{_digest(tool, arguments, files)}"


def is_same_call(identifier: str, tool: Tool, arguments: Mapping[str, Any], files: Mapping[str, File]) -> bool:
    """Whether the id is one of this tool with these arguments and files, whatever its number."""
    found = _ID.fullmatch(identifier)
    return found is not None and found["digest"] == _digest(tool, arguments, files)


def _digest(tool: Tool, arguments: Mapping[str, Any], files: Mapping[str, File]) -> str:
    named = [_file_identity(files[name]) for name in tool.files_in(arguments) if name in files]
    canonical = canonical_json([tool.provider, tool.own_name, tool.setting, arguments, named])
    # Arguments may come from a state: half a surrogate pair in them is no reason to fail.
    return hashlib.sha256(canonical.encode(errors="surrogatepass")).hexdigest()[:_DIGEST_LENGTH]


def _file_identity(file: File) -> list[object]:
    """What makes a file the same: its address, in which Dify has its id, and its size."""
    try:
        address = urlsplit(file.url)
    except ValueError:
        return [file.url, file.size]
    query = [pair for pair in parse_qsl(address.query, keep_blank_values=True) if pair[0] not in _SIGNATURE]
    return [address.scheme, address.netloc, address.path, query, file.size]
