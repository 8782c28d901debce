"""Questions, contexts and answers of examples/answers are immutable, and cannot be made wrong."""

import re
from datetime import UTC, datetime

import pytest
from answering.application import retrieving
from answering.domain import retrieval, values
from answering.domain.answer import Answer
from answering.domain.errors import AnswerBusinessError

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
QUESTION = values.Question("How long?")


def result(document: str, position: int, letters: float, meaning: float = 0) -> retrieving.SearchResult:
    scores = values.SimilarityScore(letters), values.SimilarityScore(meaning)
    return retrieving.SearchResult(
        values.DocumentId(document), document.title(), position, f"{document} {position}", *scores
    )


def context(*documents: str) -> retrieval.RetrievalContext:
    results = [result(name, 0, 0.9 - number / 10) for number, name in enumerate(documents)]
    return retrieval.RetrievalContext(QUESTION, retrieving.relevant_documents(results))


@pytest.mark.parametrize("text", ["", " ", "　\n\t"])
def test_an_empty_question_is_refused(text: str) -> None:
    for make in (values.Question, values.Question.asked):
        with pytest.raises(AnswerBusinessError) as raised:
            make(text)
        assert raised.value.code == "ANSWER_EMPTY_QUESTION"


def test_a_typed_question_can_be_stored() -> None:
    assert values.Question.asked(" Why\0 \ud800? ").text == "Why ??"


def test_a_content_has_words() -> None:
    assert values.AnswerContent(" So.\n") == "So."
    with pytest.raises(AnswerBusinessError, match="ANSWER_EMPTY_CONTENT"):
        values.AnswerContent(" \n")


def test_a_prompt_may_name_the_documents_and_nothing_else() -> None:
    assert values.PromptTemplate("Say what {documents} say.").filled(("Fees", "Loans")) == "Say what Fees, Loans say."
    for text, said in ((" ", "is blank"), ("Hi {name}", "the only placeholder is {documents}"), ("{", "brace alone")):
        with pytest.raises(ValueError, match=re.escape(said)):
            values.PromptTemplate(text)


@pytest.mark.parametrize(
    ("content", "numbers"),
    [
        ("One [2].", [2]),
        ("Both [1, 3], again [1].", [1, 3]),
        ("日本語 [1、2]", [1, 2]),
        ("One that is not there [9] and one [3].", [3]),
        ("None cited.", [1, 2, 3]),
        ("Only one that is not there [9].", [1, 2, 3]),
        ("A list [a] and a footnote [^1].", [1, 2, 3]),
    ],
)
def test_the_sources_of_an_answer_are_those_that_it_cites(content: str, numbers: list[int]) -> None:
    answer = Answer.of(values.AnswerId("answer-1"), context("a", "b", "c"), content, NOON)

    assert [source.id.value for source in answer.sources] == [f"answer-1-source-{number}" for number in numbers]
    assert [source.document_id.value for source in answer.sources] == ["abc"[number - 1] for number in numbers]
    assert answer.sources[0].relevant_content == f"{'abc'[numbers[0] - 1]} 0"
    scores = [source.score for source in answer.sources]
    assert sorted(scores, reverse=True) == scores


@pytest.mark.parametrize(
    ("question", "language"),
    [("How long?", "en"), ("いつまで？", "ja"), ("Drill を借りる", "ja"), ("貸出期間", "ja"), ("3 days?", "en")],
)
def test_a_question_has_a_language(question: str, language: str) -> None:
    assert values.Question(question).language == language


def test_the_passages_of_a_document_become_one_in_its_order() -> None:
    found = [result("b", 7, 0.5), result("a", 0, 0.4), result("b", 2, 0.3)]

    assert [(each.id.value, each.content) for each in retrieving.relevant_documents(found)] == [
        ("b", "b 2\n\nb 7"),
        ("a", "a 0"),
    ]
    assert retrieving.relevant_documents(found[::-1]) == retrieving.relevant_documents(found)


def test_what_both_rankings_find_comes_before_what_one_finds() -> None:
    both = result("both", 0, 0.5, 0.5)
    letters = result("letters", 0, 0.9)
    meaning = result("meaning", 0, 0.1, 0.9)

    found = retrieving.relevant_documents([letters, meaning, both])

    assert [document.id.value for document in found] == ["both", "letters", "meaning"]
    assert retrieving.relevant_documents([both])[0].score == values.SimilarityScore(1)
    assert retrieving.relevant_documents([meaning])[0].score == 0.5


def test_the_best_passages_of_the_best_documents_are_taken() -> None:
    many = [
        result(f"d{number}", position, 0.9 - number / 20 - position / 200)
        for number in range(8)
        for position in range(6)
    ]

    documents = retrieving.relevant_documents(many)

    assert [document.id.value for document in documents] == [
        f"d{number}" for number in range(retrieving.MOST_DOCUMENTS)
    ]
    assert documents[0].content.split("\n\n") == [f"d0 {position}" for position in range(retrieving.MOST_PASSAGES)]


@pytest.mark.parametrize(
    "results", [[], [result("a", 0, retrieving.LEAST_LETTERS - 0.01, retrieving.LEAST_MEANING - 0.01)]]
)
def test_without_a_relevant_document_there_is_no_context(results: list[retrieving.SearchResult]) -> None:
    with pytest.raises(AnswerBusinessError) as raised:
        retrieval.RetrievalContext(QUESTION, retrieving.relevant_documents(results))
    assert raised.value.code == "ANSWER_NO_RELEVANT_DOCUMENTS"
    assert QUESTION.text in raised.value.sentence
