"""The index of past questions; how an index is made, kept and rebuilt is tested with the manual's."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from helpdesk_search.answers import read_answers
from helpdesk_search.answers_index import (
    LONGEST_QUESTION,
    Likeness,
    checked_question,
    find_alike,
    index_of_answers,
)
from helpdesk_search.errors import TermsError
from helpdesk_search.wording import answers_as_text
from meaning.api import EmbeddingError, OpenAIEmbedding
from meaning.embeddings import BundledEmbedding, Embedding

from .conftest import HELPDESK
from .damage import damage_page, pages
from .embeddings_server import KEY, EmbeddingsServer, embeddings_server

LOCAL = BundledEmbedding()


@pytest.fixture
def questions(helpdesk: Path, tmp_path: Path) -> Path:
    return shutil.copytree(helpdesk / "qa", tmp_path / "qa")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "index"
    directory.mkdir()
    return directory


@pytest.fixture(scope="module")
def answers_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    with closing(index_of_answers(HELPDESK / "qa", tmp_path_factory.mktemp("index"), LOCAL, 512).open()) as index:
        yield index


@pytest.fixture
def remote() -> Iterator[tuple[EmbeddingsServer, OpenAIEmbedding]]:
    with embeddings_server() as server:
        yield server, OpenAIEmbedding(KEY, server.base_url)


def asked(questions: Path, directory: Path, question: str, embedding: Embedding = LOCAL) -> list[Likeness]:
    (vector,) = embedding.vectors([question])
    index = index_of_answers(questions, directory, embedding, len(vector))
    return index.search(lambda opened: find_alike(opened, vector, embedding.least_of_questions))


def alike(index: apsw.Connection, question: str, language: str = "all") -> list[str]:
    (vector,) = LOCAL.vectors([question])
    found = find_alike(index, vector, LOCAL.least_of_questions, language)
    assert [each.similarity for each in found] == sorted((each.similarity for each in found), reverse=True)
    assert all(LOCAL.least_of_questions <= each.similarity <= 1 for each in found)
    return [each.answered.id for each in found]


@pytest.mark.parametrize(
    ("question", "language", "found"),
    [
        ("How do I set up two-factor login with an authenticator app?", "en", ["E-2088"]),
        ("Our backup notification e-mails do not arrive any more.", "en", ["E-2286", "E-2182"]),
        ("消したファイルを元に戻したい", "en", ["E-2271"]),
        ("Is there a discount for schools?", "ja", ["J-3291"]),
        ("What will the weather in Osaka be?", "all", []),
        # The word is in "How do I put a password on a shared link?" too.
        ("How do I reset my password?", "all", ["E-2376", "J-3356"]),
        ("パスワードを忘れました", "ja", ["J-3356"]),
    ],
)
def test_the_past_questions_about_the_same_matter_are_found_and_no_others(
    answers_index: apsw.Connection, question: str, language: str, found: list[str]
) -> None:
    assert alike(answers_index, question, language) == found


def test_an_index_is_built_once_and_again_when_the_questions_change(questions: Path, directory: Path) -> None:
    assert asked(questions, directory, "What is a zyzzyva?") == []
    (made,) = directory.iterdir()
    before = made.stat().st_ino
    assert asked(questions, directory, "Is SSO available on the Team plan?")
    assert made.stat().st_ino == before
    with (questions / "en.csv").open("a", encoding="utf-8") as csv:
        csv.write("E-9,2026-10-01,insects,What is a zyzzyva?,A weevil.\n")
    (found,) = asked(questions, directory, "What is a zyzzyva?")
    assert found.answered.answer == "A weevil."
    assert [*directory.iterdir()] == [made]


def test_another_embedding_builds_another_index(
    questions: Path, directory: Path, remote: tuple[EmbeddingsServer, OpenAIEmbedding]
) -> None:
    server, embedding = remote
    count = len(read_answers(questions))
    assert asked(questions, directory, "Where do I find our invoices?")
    assert asked(questions, directory, "Where do I find our invoices?", embedding)
    assert sum(map(len, server.asked)) == count + 1
    asked(questions, directory, "another", embedding)
    assert server.asked[-1] == ["another"]
    assert len(list(directory.iterdir())) == 2


def test_another_model_under_the_same_name_rebuilds_the_index(
    questions: Path, directory: Path, remote: tuple[EmbeddingsServer, OpenAIEmbedding]
) -> None:
    server, embedding = remote
    for server.dimensions in (8, 16, 8):
        assert asked(questions, directory, "backup notifications", embedding)
    assert len(list(directory.iterdir())) == 1
    with pytest.raises(EmbeddingError, match="have 8 dimensions, but the question's has 16"):
        index_of_answers(questions, directory, embedding, 16).open()


def test_an_api_that_fails_leaves_nothing_behind(
    questions: Path, directory: Path, remote: tuple[EmbeddingsServer, OpenAIEmbedding]
) -> None:
    server, embedding = remote
    server.status, server.body = 429, b""
    with pytest.raises(EmbeddingError, match="rate limit"):
        asked(questions, directory, "backup", embedding)
    assert list(directory.iterdir()) == []


def test_a_damaged_index_is_rebuilt(questions: Path, directory: Path) -> None:
    before = asked(questions, directory, "Google Authenticator")
    (made,) = directory.iterdir()
    damage_page(made, pages(made) // 4)  # among the vectors
    assert asked(questions, directory, "Google Authenticator") == before
    made.write_bytes(made.read_bytes().replace(b"Google", b"G\xff\xffgle"))
    assert asked(questions, directory, "Google Authenticator") == before
    assert [*directory.iterdir()] == [made]


def test_a_blank_or_long_question_is_refused() -> None:
    assert checked_question("  one\n two ") == "one two"
    for blank in (None, "", " 　\n"):
        with pytest.raises(TermsError, match="blank"):
            checked_question(blank)
    with pytest.raises(TermsError, match=f"{LONGEST_QUESTION + 1} characters; at most {LONGEST_QUESTION}"):
        checked_question("x" * (LONGEST_QUESTION + 1))


def test_found_questions_as_text(questions: Path, directory: Path) -> None:
    question = "Is there a Linux desktop app?"
    found = asked(questions, directory, question)
    assert answers_as_text(question, found[:1], "How.") == (
        f"1 past question most similar to: {question}\nHow.\n\n"
        f"Past question 1: qa/en.csv, {found[0].answered.id}, answered on {found[0].answered.answered_on} "
        f"(desktop app; similarity {found[0].similarity:.2f})\n"
        "Question: Is there a desktop app for Linux?\n"
        "Answer: No, only for Windows 10 and later and macOS 13 and later. On Linux please use the browser."
    )
    assert answers_as_text(question, found * 2, "How.").startswith(f"The {2 * len(found)} past questions most similar")
    assert answers_as_text(question, [], "How.") == f"No past question is similar to this one: {question}\n\nHow."
