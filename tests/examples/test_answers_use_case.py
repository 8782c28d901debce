"""The use case of examples/answers: search, generate, save, reply, and what is left of it when a part fails."""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from answering.application.generate_and_reply import GenerateAndReply, Reply
from answering.application.history import History
from answering.application.retrieving import SearchResult
from answering.application.searching import HOW_TO_BUILD, SearchQuery, SearchService
from answering.domain.answer import Answer
from answering.domain.errors import AnswerBusinessError, AnswerSystemError, BusinessCode, SystemCode
from answering.domain.ports import Page
from answering.domain.retrieval import RetrievalContext
from answering.domain.values import AnswerId, DocumentId, Question, SimilarityScore

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
FOUND = (
    SearchResult(DocumentId("fees.md"), "Fees", 0, "200 yen.", SimilarityScore(0.6), SimilarityScore(0)),
    SearchResult(DocumentId("loans.md"), "Loans", 0, "7 days.", SimilarityScore(0.5), SimilarityScore(0)),
)
CONTENT = "Seven days [2], else 200 yen [1]."


@dataclass
class World:
    """The ports of the use case, and what happened at them, in order."""

    found: Sequence[SearchResult] | Exception = FOUND
    content: str | Exception = CONTENT
    save_fails: Exception | None = None
    happened: list[tuple[str, object]] = field(default_factory=list[tuple[str, object]])
    is_kept: bool = True

    def search(self, query: SearchQuery) -> Sequence[SearchResult]:
        self.happened.append(("search", query.text))
        return raised_or(self.found)

    def generate(self, context: RetrievalContext) -> str:
        self.happened.append(("generate", [document.id.value for document in context.documents]))
        return raised_or(self.content)

    def save(self, answer: Answer) -> None:
        self.happened.append(("save", answer))
        if self.save_fails is not None:
            raise self.save_fails

    def between(self, begin: datetime, end: datetime, *, page: int = 1, size: int = 20) -> Page:
        raise NotImplementedError

    def recent(self, limit: int) -> Sequence[Answer]:
        raise NotImplementedError

    def unanswered(self) -> Sequence[Answer]:
        raise NotImplementedError

    def ask(self, question: str) -> Reply:
        history = History(self, self.is_kept)
        searching = SearchService(self, history, lambda: NOW, lambda: AnswerId("answer-1"))
        asking = GenerateAndReply(searching, self, history, lambda: NOW, lambda: AnswerId("answer-1"))
        return asking.reply_to(question)

    @property
    def steps(self) -> list[str]:
        return [step for step, _ in self.happened]


def raised_or[T](value: T | Exception) -> T:
    if isinstance(value, Exception):
        raise value
    return value


def test_an_answer_is_saved_after_generation_and_before_the_reply() -> None:
    world = World()
    reply = world.ask(" How long? ")

    assert reply.answer is not None
    assert world.happened == [
        ("search", "How long?"),
        ("generate", ["fees.md", "loans.md"]),
        ("save", reply.answer),
    ]
    assert (reply.text, reply.code) == (CONTENT, None)
    assert [(source.id.value, source.document_title) for source in reply.answer.sources] == [
        ("answer-1-source-1", "Fees"),
        ("answer-1-source-2", "Loans"),
    ]
    assert reply.answer.generated_at == NOW


NO_INDEX = AnswerBusinessError(BusinessCode.INDEX_NOT_AVAILABLE, "The index is not there.")


@pytest.mark.parametrize(
    ("found", "question", "code", "said"),
    [
        (NO_INDEX, "How long?", BusinessCode.INDEX_NOT_AVAILABLE, f"builds it .* {HOW_TO_BUILD}"),
        (NO_INDEX, "いつまで？", BusinessCode.INDEX_NOT_AVAILABLE, f"索引がまだ作成されていません。.*{HOW_TO_BUILD}"),
        ((), "How long?", BusinessCode.NO_RELEVANT_DOCUMENTS, "Ask in other words."),
        ((), "いつまで？", BusinessCode.NO_RELEVANT_DOCUMENTS, "該当する情報が見つかりませんでした。"),
    ],
)
def test_without_documents_no_model_is_asked_and_the_answer_in_the_questions_language_is_kept(
    found: Exception | Sequence[SearchResult], question: str, code: BusinessCode, said: str
) -> None:
    world = World(found=found)
    reply = world.ask(question)

    assert world.happened == [("search", question), ("save", reply.answer)]
    assert re.search(said, reply.text)
    assert reply.code is code
    assert reply.answer is not None
    assert (reply.answer.content, reply.answer.reason, reply.answer.sources) == (reply.text, code, ())
    assert reply.answer.question == Question(question)


def test_a_search_that_fails_gives_no_answer() -> None:
    world = World(found=AnswerSystemError(SystemCode.CONTEXT_RETRIEVAL_FAILED, "disk I/O error"))
    reply = world.ask("How long?")

    assert world.steps == ["search"]
    assert (reply.code, reply.answer) == (SystemCode.CONTEXT_RETRIEVAL_FAILED, None)
    assert "could not be searched" in reply.text


@pytest.mark.parametrize("found", [FOUND, (), NO_INDEX], ids=["answered", "no document", "no index"])
def test_nothing_is_saved_where_the_setting_says_so(found: Exception | Sequence[SearchResult]) -> None:
    world = World(found=found, is_kept=False)

    assert world.ask("How long?").answer is not None
    assert "save" not in world.steps


def test_an_empty_question_is_not_searched() -> None:
    world = World()

    assert world.ask(" ").code == "ANSWER_EMPTY_QUESTION"
    assert world.steps == []


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (" ", "ANSWER_EMPTY_CONTENT"),
        (AnswerSystemError(SystemCode.LLM_API_ERROR, "503 Service Unavailable"), "ANSWER_LLM_API_ERROR"),
        (AnswerSystemError(SystemCode.GENERATION_FAILED, "the plugin ended"), "ANSWER_GENERATION_FAILED"),
    ],
)
def test_without_a_content_nothing_is_saved(content: str | Exception, code: str) -> None:
    world = World(content=content)
    reply = world.ask("How long?")

    assert world.steps == ["search", "generate"]
    assert (reply.code, reply.answer) == (code, None)


def test_a_failure_is_for_the_log_and_not_for_the_person(caplog: pytest.LogCaptureFixture) -> None:
    reply = World(content=AnswerSystemError(SystemCode.LLM_API_ERROR, "503 from 10.0.0.7")).ask("How long?")

    assert "10.0.0.7" not in reply.text
    assert [(record.levelno, record.message) for record in caplog.records] == [
        (logging.ERROR, "ANSWER_LLM_API_ERROR: 503 from 10.0.0.7")
    ]


def test_an_answer_that_cannot_be_saved_still_goes_out(caplog: pytest.LogCaptureFixture) -> None:
    world = World(save_fails=AnswerSystemError(SystemCode.SAVE_FAILED, "database or disk is full"))
    reply = world.ask("How long?")

    assert world.steps == ["search", "generate", "save"]
    assert (reply.text, reply.code) == (CONTENT, None)
    assert [record.message for record in caplog.records] == [
        "answer-1 was not saved. ANSWER_SAVE_FAILED: database or disk is full"
    ]
