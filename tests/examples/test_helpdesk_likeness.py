"""Past questions by meaning, and the vectors and the fusion below."""

from pathlib import Path

import pytest
from helpdesk_search.errors import TermsError
from helpdesk_search.likeness import LONGEST_QUESTION, checked_question, find_alike, past_questions
from helpdesk_search.wording import answers_as_text
from meaning.embeddings import LEAST_OF_QUESTIONS, LEAST_OF_TEXTS, vectors
from meaning.fusion import fused

from .conftest import HELPDESK

QA = HELPDESK / "qa"


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
    asked, near, far = vectors([question, like, unlike])
    assert asked @ asked == pytest.approx(1, abs=1e-3)
    assert asked @ near > LEAST_OF_TEXTS > asked @ far


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
    question: str, language: str, found: list[str]
) -> None:
    alike = find_alike(past_questions(QA), question, language)

    assert [each.answered.id for each in alike] == found
    assert [each.similarity for each in alike] == sorted((each.similarity for each in alike), reverse=True)
    assert all(LEAST_OF_QUESTIONS <= each.similarity <= 1 for each in alike)


def test_the_texts_are_read_once_in_a_process() -> None:
    assert past_questions(QA) is past_questions(Path(QA))


def test_a_blank_or_long_question_is_refused() -> None:
    assert checked_question("  one\n two ") == "one two"
    for given, said in (
        (None, "blank"),
        (" 　\n", "blank"),
        ("x" * (LONGEST_QUESTION + 1), f"{LONGEST_QUESTION + 1} characters; at most {LONGEST_QUESTION}"),
    ):
        with pytest.raises(TermsError, match=said):
            checked_question(given)


def test_found_questions_as_text() -> None:
    question = "Is there a Linux desktop app?"
    found = find_alike(past_questions(QA), question)
    assert answers_as_text(question, found[:1]) == (
        f"1 past question most similar to: {question}\n\n"
        f"Past question 1: qa/en.csv, {found[0].answered.id}, answered on {found[0].answered.answered_on} "
        f"(desktop app; similarity {found[0].similarity:.2f})\n"
        "Question: Is there a desktop app for Linux?\n"
        "Answer: No, only for Windows 10 and later and macOS 13 and later. On Linux please use the browser."
    )
    assert answers_as_text(question, found * 2).startswith(f"The {2 * len(found)} past questions most similar")
    assert answers_as_text(question, []) == f"No past question is similar to this one: {question}"


def test_fusion_prefers_what_both_found() -> None:
    scores = fused(["a", "b"], ["b", "c"])
    assert [*scores] == ["b", "a", "c"]
    assert [*fused(["a"], ["a", "b"]).values()] == [1, pytest.approx(0.49, abs=0.01)]
