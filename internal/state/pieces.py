"""JSON that is compressed in pieces, so that a change compresses one of them again and not all.

In: JSON in parts. Out: one raw deflate stream. The blocks of a piece refer to nothing outside of it; that costs a tenth
in size beside one piece for all.
"""

import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from internal.text.fairness import in_turns

MAX_UNPACKED = 8 * 1024 * 1024
"""Bytes of JSON that a state unpacks to."""
MAX_PARTS = 5_000
"""Parts of a state: hundreds of thousands of tiny records would pack well, and keep other sessions waiting."""
_PIECE = 128 * 1024
"""Bytes of JSON in a piece; a longer part is a piece of its own."""
_BLOCK = 16 * 1024
"""Bytes that are compressed at once."""
_END = b"\x03\x00"
"""The block that ends a raw deflate stream."""


@dataclass
class _Piece:
    start: int
    end: int
    """Of its parts."""
    packed: bytes | None = None
    """None until it is packed, and again when a part of it has changed."""


class Draft:
    """The parts of a JSON value, which can be exchanged until the whole is small enough."""

    def __init__(self, parts: Sequence[bytes], max_packed: int) -> None:
        """Small enough: ``max_packed`` bytes when packed, ``MAX_UNPACKED`` before, and ``MAX_PARTS`` parts."""
        self._parts = list(parts)
        self._max_packed = max_packed
        self._length = sum(map(len, parts))
        self._count = sum(map(bool, parts))
        self._worth_packing = MAX_UNPACKED
        """The length above which the parts cannot be small enough, unless one of them has grown."""
        self._pieces: list[_Piece] = []

    def put(self, parts: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """Exchange the parts at these places, an empty one takes its part out; what stood there before.

        To put that back undoes the change.
        """
        before = [(index, self._exchanged(index, part)) for index, part in parts]
        return before[::-1]

    def _exchanged(self, index: int, part: bytes) -> bytes:
        before, self._parts[index] = self._parts[index], part
        more = len(part) - len(before)
        self._length += more
        self._count += bool(part) - bool(before)
        if more > 0:
            self._worth_packing = MAX_UNPACKED
        if self._pieces:
            self._piece_with(index).packed = None
        return before

    def fits(self) -> bool:
        """Whether it is small enough; packs what has changed, unless too little has for that."""
        if self._length > self._worth_packing or self._count > MAX_PARTS:
            return False
        excess = len(self.packed()) - self._max_packed
        # A byte less of JSON makes the packed text shorter by about a byte at most.
        self._worth_packing = self._length - max(excess, 0)
        return excess <= 0

    def packed(self) -> bytes:
        """The raw deflate stream."""
        self._pieces = self._pieces or _pieces(self._parts)
        packed = (piece.packed or self._pack(piece) for piece in in_turns(self._pieces))
        return b"".join([*packed, _END])

    def _pack(self, piece: _Piece) -> bytes:
        packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        blocks = _blocks(b"".join(self._parts[piece.start : piece.end]))
        packed = [packer.compress(block) for block in in_turns(blocks)]
        piece.packed = b"".join([*packed, packer.flush(zlib.Z_SYNC_FLUSH)])  # ends at a byte, so that others can follow
        return piece.packed

    def _piece_with(self, index: int) -> _Piece:
        return self._pieces[bisect_right(self._pieces, index, key=lambda piece: piece.start) - 1]


def _pieces(parts: Iterable[bytes]) -> list[_Piece]:
    """Neighbouring parts in pieces."""
    pieces, length = [_Piece(0, 0)], 0
    for index, part in enumerate(parts):
        if length and length + len(part) > _PIECE:
            pieces.append(_Piece(index, index))
            length = 0
        pieces[-1].end = index + 1
        length += len(part)
    return pieces


def _blocks(written: bytes) -> Iterator[bytes]:
    return (written[start : start + _BLOCK] for start in range(0, len(written), _BLOCK))
