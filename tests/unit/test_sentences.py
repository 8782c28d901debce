"""The one sentence that a user reads when a run ends without a text of the model's."""

import pytest

from internal.report.events import StopReason
from internal.report.sentences import no_answer_sentence, working_line
from prompt import template

ENDINGS = [reason for reason in StopReason if reason is not StopReason.ANSWERED]


@pytest.mark.parametrize(
    ("query", "language"),
    [
        ("What is it?", "en"),
        ("", "en"),
        ("Qué es?", "en"),
        ("これは何ですか", "ja"),
        ("東京のカフェ", "ja"),
        ("ｶﾌｪ", "ja"),
        ("这是什么", "zh"),
        ("GPT-5 是什么?", "zh"),
    ],
)
@pytest.mark.parametrize("reason", ENDINGS)
def test_the_sentence_is_in_the_language_that_the_questions_script_suggests(
    reason: StopReason, query: str, language: str
) -> None:
    assert no_answer_sentence(reason, query) == template.NO_ANSWER[reason.value][language]


def test_every_reason_has_a_sentence_of_its_own_in_every_language() -> None:
    sentences = [no_answer_sentence(reason, query) for reason in ENDINGS for query in ("why", "なぜ", "为什么")]

    assert all(sentences)
    assert len(set(sentences)) == len(sentences)


def test_a_run_that_was_answered_with_nothing_reads_as_empty() -> None:
    assert no_answer_sentence(StopReason.ANSWERED, "why") == no_answer_sentence(StopReason.EMPTY, "why")


@pytest.mark.parametrize(
    ("tools", "query", "line"),
    [
        (["search"], "why", "Using search…"),
        (["b", "a", "b"], "why", "Using b, a…"),
        (["a", "b", "c", "d", "e"], "why", "Using a, b, c and 2 more…"),
        (["a", "b"], "なぜ", "a、b を使用しています…"),
        (["a", "b", "c", "d"], "なぜ", "a、b、c ほか 1 件のツールを使用しています…"),
        (["a", "b"], "为什么", "正在使用 a、b…"),
        (["a", "b", "c", "d"], "为什么", "正在使用 a、b、c 和另外 1 个工具…"),
        (["x" * 100], "why", f"Using {'x' * 64}…"),
        ([" a\n b "], "why", "Using a b…"),
        (["{tools}"], "why", "Using {tools}…"),
        ([" "], "why", ""),
        ([], "why", ""),
    ],
)
def test_a_line_names_the_first_tools_of_a_silent_round(tools: list[str], query: str, line: str) -> None:
    assert working_line(tools, query) == line
