"""Vectors from an embeddings API: OpenAI's, or a compatible server's.

Every failure is one `EmbeddingError` that says what to do. It contains neither the key nor the server's text, which may
repeat the key.
"""

import math
import re
from collections.abc import Sequence
from typing import Any

import httpx

type Vector = Sequence[float]

OPENAI = "https://api.openai.com/v1"
MODEL = "text-embedding-3-small"
_TEXTS_PER_CALL = 128
_TIMEOUT = httpx.Timeout(30.0, connect=10.0)
_KEY = re.compile(r"[!-~]+")
_CODE = re.compile(r"[a-z_]{1,40}")
_WITHOUT_IT = "Without a key, meaning is compared on this machine."
_REMEDIES = {
    401: f"refused the OpenAI key ({{said}}); correct or remove it. {_WITHOUT_IT}",
    403: f"refused the OpenAI key ({{said}}); correct or remove it. {_WITHOUT_IT}",
    404: f"has no model {MODEL} ({{said}}); check openai_base_url. {_WITHOUT_IT}",
    429: "is at its rate limit or out of credit ({said}); try again later.",
}


class EmbeddingError(Exception):
    """The settings of the API do not work, or it cannot be reached; written for the operator."""


class OpenAIEmbedding:
    described = f"Similarity was computed by meaning, with the embedding model {MODEL}."
    least_of_questions = least_of_texts = 0.2

    def __init__(self, key: str, base_url: str = OPENAI) -> None:
        if not _KEY.fullmatch(key):
            raise EmbeddingError(
                "The OpenAI key contains blanks or other characters that are not allowed in a key; copy it again."
            )
        self._url = _checked(base_url)
        self._key = key
        self._where = f"The embeddings API at {self._url.netloc.decode('ascii')}"
        self.name = f"{MODEL} at {self._url}"

    def vectors(self, texts: Sequence[str], /) -> list[Vector]:
        batches = [texts[start : start + _TEXTS_PER_CALL] for start in range(0, len(texts), _TEXTS_PER_CALL)]
        with httpx.Client(timeout=_TIMEOUT) as client:
            return [vector for batch in batches for vector in self._asked(client, batch)]

    def _asked(self, client: httpx.Client, texts: Sequence[str]) -> list[Vector]:
        try:
            response = client.post(
                f"{self._url}/embeddings",
                headers={"Authorization": f"Bearer {self._key}"},
                json={"model": MODEL, "input": list(texts), "encoding_format": "float"},
            )
        except httpx.TimeoutException:
            raise EmbeddingError(f"{self._where} timed out; try again later.") from None
        except httpx.TransportError as error:
            said = f"cannot be reached ({type(error).__name__}); check openai_base_url and the network."
            raise EmbeddingError(f"{self._where} {said} {_WITHOUT_IT}") from None
        if response.status_code != httpx.codes.OK:
            remedy = _REMEDIES.get(response.status_code, "failed ({said}); try again later.")
            said = f"status {response.status_code}{_error_code(response)}"
            raise EmbeddingError(f"{self._where} {remedy.format(said=said)}")
        return self._read(response, len(texts))

    def _read(self, response: httpx.Response, expected: int) -> list[Vector]:
        try:
            items = sorted(response.json()["data"], key=lambda item: int(item["index"]))
            vectors = [[float(number) for number in item["embedding"]] for item in items]
        except (ValueError, TypeError, KeyError):
            vectors = []
        sizes = {len(vector) for vector in vectors}
        finite = all(math.isfinite(number) for vector in vectors for number in vector)
        if len(vectors) != expected or len(sizes) != 1 or 0 in sizes or not finite:
            said = f"did not return a list of {expected} embeddings; is openai_base_url the address of such an API?"
            raise EmbeddingError(f"{self._where} {said}")
        return list(vectors)


def _checked(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url.rstrip("/"))
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in {"http", "https"} or not url.host or url.userinfo or url.query:
        raise EmbeddingError(f"openai_base_url is not a valid address of an API, such as {OPENAI}")
    return url


def _error_code(response: httpx.Response) -> str:
    """The API's error code, such as `, insufficient_quota`; empty if there is none of that form."""
    try:
        body: Any = response.json()
        code = str(body["error"]["code"])
    except (ValueError, TypeError, KeyError):
        return ""
    return f", {code}" if _CODE.fullmatch(code) and code != "none" else ""
