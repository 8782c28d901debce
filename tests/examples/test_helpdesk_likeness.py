"""Past questions by meaning, and the vectors and the fusion below."""

import pytest
from helpdesk_search.errors import TermsError
from helpdesk_search.likeness import LONGEST_QUESTION, checked_question, find_alike, past_questions
from meaning.embeddings import LEAST_OF_QUESTIONS
from meaning.fusion import fused

from .conftest import HELPDESK

QA = HELPDESK / "qa"


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
        ("I forgot my password", "all", ["E-2376", "J-3356"]),
        ("I FORGOT MY PASSWORD", "all", ["E-2376", "J-3356"]),
        ("パスワードを間違えてロックされました", "all", ["J-3361", "E-2381"]),
        ("I am locked out after wrong passwords", "en", ["E-2381"]),
    ],
)
def test_the_past_questions_about_the_same_matter_are_found_and_no_others(
    question: str, language: str, found: list[str]
) -> None:
    alike = find_alike(past_questions(QA), question, language)

    assert [each.answered.id for each in alike] == found
    assert [each.similarity for each in alike] == sorted((each.similarity for each in alike), reverse=True)
    assert all(LEAST_OF_QUESTIONS <= each.similarity <= 1 for each in alike)


def test_a_blank_or_long_question_is_refused() -> None:
    assert checked_question("  one\n two ") == "one two"
    for given, said in (
        (None, "blank"),
        (" 　\n", "blank"),
        ("x" * (LONGEST_QUESTION + 1), f"{LONGEST_QUESTION + 1} characters; at most {LONGEST_QUESTION}"),
    ):
        with pytest.raises(TermsError, match=said):
            checked_question(given)


def test_fusion_prefers_what_both_found() -> None:
    scores = fused(["a", "b"], ["b", "c"])
    assert [*scores] == ["b", "a", "c"]
    assert [*fused(["a"], ["a", "b"]).values()] == [1, pytest.approx(0.49, abs=0.01)]
