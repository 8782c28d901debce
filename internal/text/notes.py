"""Sentences for the log, of two kinds: a log that keeps contents out shows the one, and of the other the size.

The code that notes something has to choose: a plain ``str`` is a type error. Names of tools and of parameters are not
quotations, and neither are numbers of ours.
"""

from collections.abc import Callable
from typing import Self


class _Sentence(str):
    __slots__ = ()

    def of(self, name: str) -> Self:
        """The sentence about a tool or parameter of this name, of the same kind."""
        return type(self)(f"{name}: {self}")


class OurWords(_Sentence):
    """A sentence without quotations, which may stay in a log that keeps contents out."""

    __slots__ = ()


class Quoting(_Sentence):
    """A sentence that quotes a value, a schema, or something that a user, a model, a tool or the host said."""

    __slots__ = ()


type Sentence = OurWords | Quoting

type Note = Callable[[Sentence], None]
"""Takes a sentence for the log."""
