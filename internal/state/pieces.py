"""JSON in pieces that are compressed one by one, so that a change compresses one of them again and not all.

In: pieces of JSON. Out: one raw deflate stream, whose blocks do not refer to what stands before their own piece.
"""

import zlib
from collections.abc import Iterable, Iterator

from internal.text.fairness import in_turns

MAX_UNPACKED = 8 * 1024 * 1024
"""Bytes of JSON that a state unpacks to."""
END = b"\x03\x00"
"""The block that ends a raw deflate stream."""
_BLOCK = 32 * 1024
"""Bytes that are compressed at once."""


def packed(written: Iterable[bytes]) -> bytes:
    """Blocks that end at a byte, so that others can follow them; to be ended by ``END``."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    blocks = [packer.compress(block) for block in in_turns(_blocks(written))]
    return b"".join([*blocks, packer.flush(zlib.Z_SYNC_FLUSH)])


def _blocks(written: Iterable[bytes]) -> Iterator[bytes]:
    for piece in written:
        for start in range(0, len(piece), _BLOCK):
            yield piece[start : start + _BLOCK]
