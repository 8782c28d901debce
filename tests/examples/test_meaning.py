"""What texts mean, as vectors: by the model on this machine, and by an API."""

import math
from collections.abc import Iterator

import pytest
from meaning.api import OPENAI, EmbeddingError, OpenAIEmbedding, Vector
from meaning.embeddings import BundledEmbedding, chosen_embedding, file_part

from .embeddings_server import KEY, EmbeddingsServer, embedded, embeddings_server


def likeness(first: Vector, second: Vector) -> float:
    return sum(left * right for left, right in zip(first, second, strict=True))


@pytest.mark.parametrize(
    ("question", "like", "unlike"),
    [
        ("銀行振込で支払えますか？", "Can we pay by bank transfer?", "Is there a desktop app for Linux?"),
        ("We are a university. Is it cheaper for us?", "Is there a discount for schools?", "How do I share a folder?"),
        ("消したファイルを元に戻したい", "How do I restore a deleted file?", "請求書が届きません"),
    ],
)
def test_texts_that_mean_the_same_are_similar_in_other_words_and_languages(
    question: str, like: str, unlike: str
) -> None:
    asked, near, far = BundledEmbedding().vectors([question, like, unlike])
    assert math.isclose(likeness(asked, asked), 1, abs_tol=1e-3)
    assert likeness(asked, near) > BundledEmbedding.least_of_texts > likeness(asked, far)


@pytest.fixture
def server() -> Iterator[EmbeddingsServer]:
    with embeddings_server() as server:
        yield server


def test_vectors_come_in_the_order_of_the_texts_and_in_batches(server: EmbeddingsServer) -> None:
    texts = [f"text {number}" for number in range(200)]
    vectors = OpenAIEmbedding(KEY, f"{server.base_url}/").vectors(texts)
    assert vectors == [embedded(text) for text in texts]
    assert [len(batch) for batch in server.asked] == [128, 72]


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (403, b"", "refused the OpenAI key (status 403); correct or remove it"),
        (404, b"<html>", "has no model text-embedding-3-small (status 404); check openai_base_url"),
        (429, b'{"error": {"code": "insufficient_quota"}}', "out of credit (status 429, insufficient_quota)"),
        (500, b'{"error": {"code": "Bearer sk-made-up"}}', "failed (status 500); try again later"),
        (302, b"", "failed (status 302)"),
        (200, b"", "did not return a list of 2 embeddings"),
        (200, b"[]", "did not return a list of 2 embeddings"),
        (200, b'{"data": []}', "did not return a list of 2 embeddings"),
        (200, b'{"data": [{"index": 0, "embedding": [1]}]}', "did not return a list of 2 embeddings"),
        *(
            (
                200,
                f'{{"data": [{{"index": 0, "embedding": {one}}}, {{"index": 1, "embedding": {other}}}]}}'.encode(),
                said,
            )
            for one, other in (("[1]", "[1, 2]"), ("[]", "[]"), ("[NaN]", "[1]"))
            for said in ["did not return a list of 2"]
        ),
    ],
)
def test_a_wrong_answer_of_the_api_is_explained(server: EmbeddingsServer, status: int, body: bytes, said: str) -> None:
    server.status, server.body = status, body
    with pytest.raises(EmbeddingError) as failed:
        OpenAIEmbedding(KEY, server.base_url).vectors(["one", "two"])
    assert said in str(failed.value)
    assert "sk-made-up" not in str(failed.value)
    assert failed.value.__cause__ is None


def test_the_error_of_a_wrong_key_does_not_show_it(server: EmbeddingsServer) -> None:
    with pytest.raises(EmbeddingError, match=r"refused the OpenAI key \(status 401, invalid_api_key\)") as failed:
        OpenAIEmbedding("sk-wrong-0987654321", server.base_url).vectors(["one"])
    assert "sk-wrong" not in str(failed.value)


def test_a_missing_server_is_named() -> None:
    with embeddings_server() as gone:
        address = gone.base_url
    with pytest.raises(EmbeddingError, match=r"at 127\.0\.0\.1:\d+ cannot be reached"):
        OpenAIEmbedding(KEY, address).vectors(["one"])


@pytest.mark.parametrize("key", ["sk-with\nbreak", "sk with blank", "sk-キー"])
def test_an_invalid_key_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(EmbeddingError, match="contains blanks or other characters") as failed:
        OpenAIEmbedding(key)
    assert key not in str(failed.value)


@pytest.mark.parametrize("address", ["api.openai.com/v1", "ftp://a/v1", "http://", "http://me:pw@a/v1", "http://a:b"])
def test_an_invalid_address_is_refused(address: str) -> None:
    with pytest.raises(EmbeddingError, match="openai_base_url is not a valid address"):
        OpenAIEmbedding(KEY, address)


@pytest.mark.parametrize(
    ("credentials", "environment", "name"),
    [
        ({}, {}, BundledEmbedding.name),
        ({"openai_api_key": " "}, {"OPENAI_BASE_URL": "http://a/v1"}, BundledEmbedding.name),
        ({"openai_api_key": KEY}, {}, f"text-embedding-3-small at {OPENAI}"),
        ({}, {"OPENAI_API_KEY": KEY}, f"text-embedding-3-small at {OPENAI}"),
        ({}, {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://a/v1/"}, "text-embedding-3-small at http://a/v1"),
        (
            {"openai_api_key": KEY, "openai_base_url": "http://b/v1"},
            {"OPENAI_API_KEY": "sk-other", "OPENAI_BASE_URL": "http://a/v1"},
            "text-embedding-3-small at http://b/v1",
        ),
        ({"openai_api_key": KEY}, {"OPENAI_BASE_URL": "http://a/v1"}, f"text-embedding-3-small at {OPENAI}"),
    ],
)
def test_a_key_is_sent_only_to_its_own_address(
    credentials: dict[str, str], environment: dict[str, str], name: str
) -> None:
    assert chosen_embedding(credentials, environment).name == name


def test_an_address_without_a_key_does_not_get_the_key_of_the_environment() -> None:
    with pytest.raises(EmbeddingError, match="openai_base_url is set without openai_api_key"):
        chosen_embedding({"openai_base_url": "http://elsewhere/v1"}, {"OPENAI_API_KEY": KEY})


def test_the_file_name_contains_neither_key_nor_address() -> None:
    embedding = OpenAIEmbedding(KEY, "http://internal-host/v1")
    assert KEY not in embedding.name
    assert file_part(embedding).isalnum()
    assert file_part(embedding) != file_part(OpenAIEmbedding(KEY))
