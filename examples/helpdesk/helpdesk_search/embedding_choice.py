"""Which embedding to use: OpenAI's if there is a key, else n-grams.

In: credentials and environment. A key and the address that it is sent to come from the same place. Otherwise a person
who fills in the form could have the operator's key sent to an address of their own.
"""

from collections.abc import Mapping

from .embedding import Embedding
from .errors import EmbeddingError
from .ngrams import NgramEmbedding
from .openai_embedding import OPENAI, OpenAIEmbedding

KEY_CREDENTIAL = "openai_api_key"
ADDRESS_CREDENTIAL = "openai_base_url"
KEY_VARIABLE = "OPENAI_API_KEY"
ADDRESS_VARIABLE = "OPENAI_BASE_URL"


def chosen_embedding(credentials: Mapping[str, object], environment: Mapping[str, str]) -> Embedding:
    key, address = _text(credentials, KEY_CREDENTIAL), _text(credentials, ADDRESS_CREDENTIAL)
    if address and not key:
        raise EmbeddingError(f"{ADDRESS_CREDENTIAL} is set without {KEY_CREDENTIAL}: give the key that belongs to it.")
    if not key:
        key, address = _text(environment, KEY_VARIABLE), _text(environment, ADDRESS_VARIABLE)
    return OpenAIEmbedding(key, address or OPENAI) if key else NgramEmbedding()


def _text(values: Mapping[str, object], name: str) -> str:
    return str(values.get(name) or "").strip()
