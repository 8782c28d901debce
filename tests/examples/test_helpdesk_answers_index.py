import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from helpdesk_search import answers_index as index_module
from helpdesk_search.answers import read_answers
from helpdesk_search.answers_index import index_of_answers
from helpdesk_search.answers_search import LONGEST_QUESTION, Likeness, checked_question, find_alike, question_vector
from helpdesk_search.embedding import Embedding
from helpdesk_search.errors import AnswersError, EmbeddingError, IndexUnavailableError, TermsError
from helpdesk_search.ngrams import DIMENSIONS, NgramEmbedding
from helpdesk_search.openai_embedding import OpenAIEmbedding
from helpdesk_search.wording import answers_as_text

from .damage import damage_page, pages
from .embeddings_server import KEY, EmbeddingsServer, embeddings_server

LOCAL = NgramEmbedding()
FILE_NAME = "qa-ngrams.sqlite3"


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
    helpdesk = Path(__file__).resolve().parents[2] / "examples" / "helpdesk"
    with closing(
        index_of_answers(helpdesk / "qa", tmp_path_factory.mktemp("index"), LOCAL, DIMENSIONS).open()
    ) as index:
        yield index


@pytest.fixture
def server() -> Iterator[EmbeddingsServer]:
    with embeddings_server() as server:
        yield server


def asked(questions: Path, directory: Path, question: str, embedding: Embedding = LOCAL) -> list[Likeness]:
    vector = question_vector(embedding, question)
    index = index_of_answers(questions, directory, embedding, len(vector))
    return index.search(lambda opened: find_alike(opened, vector, embedding.least_similarity))


def alike(index: apsw.Connection, question: str, language: str = "all") -> list[Likeness]:
    return find_alike(index, question_vector(LOCAL, question), LOCAL.least_similarity, language)


def add_line(file: Path, line: str) -> None:
    with file.open("a", encoding="utf-8") as csv:
        csv.write(f"{line}\n")


@pytest.mark.parametrize(
    ("question", "language", "found"),
    [
        ("How do I set up two-factor login with an authenticator app?", "all", "Google Authenticator?"),
        ("Our backup notification e-mails do not arrive any more.", "en", "Backup mails to our mailing list"),
        ("認証アプリで二段階認証を設定したい", "all", "二段階認証を設定するには？"),
        ("バックアップの通知メールが届かない", "ja", "通知メールが急に来なくなりました"),
        ("Ｓｙｎｃ　ｐａｕｓｅｄ on my desktop", "all", '"Sync paused" and does not go on'),
    ],
)
def test_the_matching_past_question_comes_first(
    answers_index: apsw.Connection, question: str, language: str, found: str
) -> None:
    best = alike(answers_index, question, language)
    assert found in best[0].answered.question
    assert 1 <= len(best) <= 3
    similarities = [likeness.similarity for likeness in best]
    assert similarities == sorted(similarities, reverse=True)
    assert all(LOCAL.least_similarity <= similarity <= 1 for similarity in similarities)


def test_the_best_three_are_those_of_a_comparison_with_every_question(
    answers_index: apsw.Connection, helpdesk: Path
) -> None:
    answers = read_answers(helpdesk / "qa")
    vectors = LOCAL.vectors([f"{answered.topic}\n{answered.question}" for answered in answers])
    for question in ("Why do backup notifications not arrive?", "共有リンクのパスワード", "lost phone"):
        (vector,) = LOCAL.vectors([question])
        likenesses = [sum(a * b for a, b in zip(vector, other, strict=True)) for other in vectors]
        by_hand = sorted(zip(likenesses, answers, strict=True), key=lambda pair: -pair[0])[:3]
        found = alike(answers_index, question)
        assert [likeness.answered for likeness in found] == [answered for _, answered in by_hand]
        assert [likeness.similarity for likeness in found] == pytest.approx([best for best, _ in by_hand], abs=1e-4)


def test_a_language_is_searched_alone(answers_index: apsw.Connection) -> None:
    question = "Google Authenticator"
    assert {likeness.answered.language for likeness in alike(answers_index, question)} == {"en", "ja"}
    for language in ("en", "ja"):
        found = alike(answers_index, question, language)
        assert {likeness.answered.language for likeness in found} == {language}


def test_a_question_that_is_similar_to_none_finds_nothing(answers_index: apsw.Connection) -> None:
    assert alike(answers_index, "What will the weather in Osaka be?") == []
    with pytest.raises(TermsError, match="contains no searchable word"):
        alike(answers_index, "How do I do it?!")


def test_an_index_is_built_once_and_again_when_the_questions_change(questions: Path, directory: Path) -> None:
    assert asked(questions, directory, "zyzzyva weevil") == []
    made = (directory / FILE_NAME).stat().st_ino
    assert len(asked(questions, directory, "backup notifications")) == 3
    assert (directory / FILE_NAME).stat().st_ino == made
    add_line(questions / "en.csv", "E-9,2026-10-01,insects,What is a zyzzyva?,A weevil.")
    (found,) = asked(questions, directory, "zyzzyva weevil")
    assert found.answered.answer == "A weevil."
    assert [file.name for file in directory.iterdir()] == [FILE_NAME]


def test_another_embedding_builds_another_index(questions: Path, directory: Path, server: EmbeddingsServer) -> None:
    remote = OpenAIEmbedding(KEY, server.base_url)
    count = len(read_answers(questions))
    assert len(asked(questions, directory, "backup notifications")) == 3
    assert len(asked(questions, directory, "backup notifications", remote)) == 3
    assert sum(map(len, server.asked)) == count + 1
    asked(questions, directory, "another", remote)
    asked(questions, directory, "another")
    assert server.asked[-1] == ["another"]
    assert sum(map(len, server.asked)) == count + 2
    assert len(list(directory.iterdir())) == 2


def test_an_index_made_with_another_embedding_under_the_same_name_is_not_used(
    questions: Path, directory: Path, server: EmbeddingsServer
) -> None:
    remote = OpenAIEmbedding(KEY, server.base_url)
    asked(questions, directory, "backup", remote)
    (made,) = directory.iterdir()
    made.rename(directory / FILE_NAME)
    assert len(asked(questions, directory, "backup notifications")) == 3


def test_an_api_that_fails_leaves_nothing_behind(questions: Path, directory: Path, server: EmbeddingsServer) -> None:
    server.status, server.body = 429, b""
    with pytest.raises(EmbeddingError, match="rate limit"):
        asked(questions, directory, "backup", OpenAIEmbedding(KEY, server.base_url))
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"no database at all, but longer than a header" * 90])
def test_a_damaged_index_is_rebuilt(questions: Path, directory: Path, content: bytes) -> None:
    (directory / FILE_NAME).write_bytes(content)
    assert len(asked(questions, directory, "backup notifications")) == 3


def test_an_index_with_one_damaged_page_is_rebuilt(questions: Path, directory: Path) -> None:
    before = asked(questions, directory, "backup notifications")
    damage_page(directory / FILE_NAME, pages(directory / FILE_NAME) // 4)  # among the vectors
    assert asked(questions, directory, "backup notifications") == before
    made = (directory / FILE_NAME).stat().st_ino
    assert asked(questions, directory, "backup notifications") == before
    assert (directory / FILE_NAME).stat().st_ino == made
    assert [file.name for file in directory.iterdir()] == [FILE_NAME]


def test_an_index_with_damaged_text_is_rebuilt(questions: Path, directory: Path) -> None:
    before = asked(questions, directory, "Google Authenticator")
    content = (directory / FILE_NAME).read_bytes()
    (directory / FILE_NAME).write_bytes(content.replace(b"Google", b"G\xff\xffgle"))
    assert asked(questions, directory, "Google Authenticator") == before


def test_another_model_under_the_same_name_rebuilds_the_index(
    questions: Path, directory: Path, server: EmbeddingsServer
) -> None:
    remote = OpenAIEmbedding(KEY, server.base_url)
    for server.dimensions in (8, 16, 8):
        assert len(asked(questions, directory, "backup notifications", remote)) == 3
    assert len(list(directory.iterdir())) == 1
    made = len(server.asked)
    asked(questions, directory, "backup", remote)
    assert server.asked[made:] == [["backup"]]


def test_a_model_that_changes_between_two_calls_is_an_error(
    questions: Path, directory: Path, server: EmbeddingsServer
) -> None:
    index = index_of_answers(questions, directory, OpenAIEmbedding(KEY, server.base_url), 16)
    with pytest.raises(EmbeddingError, match="have 8 dimensions, but the question's has 16"):
        index.open()
    assert list(directory.iterdir()) == []


def test_threads_that_find_the_index_missing_build_it_once(
    questions: Path, directory: Path, monkeypatch: pytest.MonkeyPatch, server: EmbeddingsServer
) -> None:
    made: list[Path] = []
    make = index_module._make

    def counted_make(new: Path, folder: Path, embedding: Embedding, dimensions: int, made_from: str) -> None:
        made.append(new)
        make(new, folder, embedding, dimensions, made_from)

    monkeypatch.setattr(index_module, "_make", counted_make)
    remote = OpenAIEmbedding(KEY, server.base_url)
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda _: len(asked(questions, directory, "backup", remote)), range(8)))
    assert counts == [3] * 8
    assert len(made) == 1


def test_processes_that_find_the_index_missing_do_not_collide(helpdesk: Path, directory: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from helpdesk_search.answers_index import index_of_answers;"
        "from helpdesk_search.ngrams import DIMENSIONS, NgramEmbedding;"
        "index = index_of_answers(Path('qa'), Path(sys.argv[1]), NgramEmbedding(), DIMENSIONS).open();"
        "sys.exit(index.execute('SELECT count(*) FROM likeness').get < 80)"
    )
    command = [sys.executable, "-c", program, str(directory)]
    processes = [subprocess.Popen(command, cwd=helpdesk) for _ in range(3)]
    assert [process.wait(timeout=300) for process in processes] == [0] * 3
    assert [file.name for file in directory.iterdir()] == [FILE_NAME]


def test_an_index_that_cannot_be_stored_is_a_clear_error(questions: Path, tmp_path: Path) -> None:
    with pytest.raises(IndexUnavailableError, match="could not be built in"):
        index_of_answers(questions, tmp_path / "missing", LOCAL, DIMENSIONS).open()


def test_a_past_question_without_a_word_is_named(questions: Path, directory: Path) -> None:
    add_line(questions / "en.csv", "E-9,2026-10-01,?,How do I do it?,Like this.")
    with pytest.raises(AnswersError, match=r"qa/en\.csv, E-9: the question contains no searchable word"):
        index_of_answers(questions, directory, LOCAL, DIMENSIONS).open()
    assert list(directory.iterdir()) == []


def test_a_blank_or_long_question_is_refused() -> None:
    assert checked_question("  one\n two ") == "one two"
    for blank in (None, "", " 　\n"):
        with pytest.raises(TermsError, match="blank"):
            checked_question(blank)
    with pytest.raises(TermsError, match=f"{LONGEST_QUESTION + 1} characters; at most {LONGEST_QUESTION}"):
        checked_question("x" * (LONGEST_QUESTION + 1))


def test_found_questions_as_text(answers_index: apsw.Connection) -> None:
    question = "Is there a Linux desktop app?"
    found = alike(answers_index, question, "en")
    text = answers_as_text(question, found[:1], "How.")
    assert text == (
        f"1 past question most similar to: {question}\nHow.\n\n"
        f"Past question 1: qa/en.csv, {found[0].answered.id}, answered on {found[0].answered.answered_on} "
        f"(desktop app; similarity {found[0].similarity:.2f})\n"
        "Question: Is there a desktop app for Linux?\n"
        "Answer: No, only for Windows 10 and later and macOS 13 and later. On Linux please use the browser."
    )
    assert answers_as_text(question, found, "How.").startswith(f"The {len(found)} past questions most similar to: ")
    assert answers_as_text(question, [], "How.") == f"No past question is similar to this one: {question}\n\nHow."
