"""A state as text, and back.

In: the record of a conversation. Out: one ASCII text of at most 128 KiB: a mark with the version, a checksum, and the
compressed JSON of the record in base64, in characters that neither Dify's templates nor JSON change. The text comes
back as input and is read strictly. The checksum finds damage, such as a text that was cut; it does not show who wrote
the text, and protects nothing against a person who writes one.

This is a door: texts are made well-formed in both directions.
"""

import base64
import codecs
import hashlib
import re
import zlib
from itertools import repeat

from internal.errors import InvalidParameters
from internal.state.pieces import MAX_UNPACKED
from internal.state.reading import read_state
from internal.state.records import State
from internal.state.size import fitted
from internal.text.fairness import in_turns
from internal.text.pasted import looks_like_selector, missing_variable
from internal.text.wellformed import wellformed

MAX_LENGTH = 128 * 1024
"""Characters of a state; Dify fails a conversation for good when one of its variables is above 200 KiB."""
MAX_READ_LENGTH = 200_000
"""Characters; a longer text is refused before it is decoded."""
VERSION = 1
_BEGINNING = "gpt5-agent-state."
_CHECKSUM_LENGTH = 32
_MAX_PACKED = (MAX_LENGTH - len(f"{_BEGINNING}{VERSION}.") - _CHECKSUM_LENGTH - 1) // 4 * 3
"""Bytes whose base64 has room beside the rest."""
_NONE = frozenset({"", "null", "None", "[]", "{}"})
"""What Dify or a developer puts in place of a state before there is one."""
_ADVICE = "give it the variable 'state' of an earlier run, unchanged, or leave it blank to begin without one"
_BLOCK = 64 * 1024
"""Bytes that are unpacked at once."""


def encode(state: State) -> str:
    """The state as text, with as much of it as has room; long work gives way to other sessions.

    Raises:
        ValueError: the calls that wait do not fit (``size_of_waiting``).
    """
    content = base64.urlsafe_b64encode(fitted(state.with_texts(wellformed, wellformed), _MAX_PACKED)).decode()
    return f"{_BEGINNING}{VERSION}.{_checksum(content)}.{content}"


def decode(text: str) -> State | None:
    """The state that a text holds; None for a text that stands for none.

    Raises:
        InvalidParameters: the text is not a state of this version, whole and unchanged; never quotes its content.
    """
    if len(text) > MAX_READ_LENGTH:
        raise _refused(f"it has {len(text):,} characters, and a state has at most {MAX_LENGTH:,}")
    text = text.strip()
    if text in _NONE:
        return None
    if looks_like_selector(text):
        raise InvalidParameters(f"parameter 'state': {missing_variable(text)}")
    written = _unpacked(_content(text))
    try:
        return read_state(written, wellformed)
    except (ValueError, RecursionError):
        raise _refused("its content does not have the fields of a state") from None


def _content(text: str) -> bytes:
    """What is in the base64, after version and checksum were compared."""
    if not text.startswith(_BEGINNING):
        raise _refused("it is not a state: it does not begin as one")
    version = re.match(r"([0-9]{1,9})\.", text.removeprefix(_BEGINNING))
    if version and version[1] != str(VERSION):
        problem = f"it is a state of version {version[1]}, and this version of the plugin reads version {VERSION}"
        raise _refused(problem, "clear the variable to begin without one")
    checksum, _, content = text.removeprefix(f"{_BEGINNING}{VERSION}.").partition(".")
    if checksum != _checksum(content):
        raise _refused("it was cut or changed: its checksum does not fit")
    try:
        return base64.b64decode(content, altchars=b"-_", validate=True)
    except ValueError:
        raise _refused("it is not valid base64") from None


def _checksum(content: str) -> str:
    return hashlib.sha256(f"{VERSION}.{content}".encode(errors="replace")).hexdigest()[:_CHECKSUM_LENGTH]


def _unpacked(content: bytes) -> str:
    """The JSON; it is measured while it is unpacked, since a small text can unpack to gigabytes."""
    unpacker, decoder = zlib.decompressobj(wbits=-zlib.MAX_WBITS), codecs.getincrementaldecoder("utf-8")()
    pieces, length = list[str](), 0
    try:
        for _ in in_turns(repeat(None)):
            piece = unpacker.decompress(content, _BLOCK)
            content = unpacker.unconsumed_tail
            length += len(piece)
            if length > MAX_UNPACKED:
                raise _refused(f"it unpacks to more than {MAX_UNPACKED // 2**20} MiB")
            pieces.append(decoder.decode(piece))
            if unpacker.eof or not (piece or content):
                break
        pieces.append(decoder.decode(b"", final=True))
    except (zlib.error, UnicodeDecodeError):
        raise _refused("it cannot be unpacked") from None
    if not unpacker.eof or unpacker.unused_data:
        raise _refused("it cannot be unpacked: it has no end, or something stands behind it")
    return "".join(pieces)


def _refused(problem: str, advice: str = _ADVICE) -> InvalidParameters:
    return InvalidParameters(f"parameter 'state': {problem}; {advice}")
