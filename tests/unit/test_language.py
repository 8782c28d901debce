"""The language of our own sentences for the user, which the script of what the user wrote suggests."""

import pytest
from hypothesis import given

from internal.errors import StopReason
from internal.loop import tools_line
from internal.text.texts import deciding_text, language_of
from prompt import template
from tests.support.generators import any_text


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Send mail to 王小明 about the meeting", "en"),
        ("Envie o e-mail para 東京", "en"),
        ("東京 office: please send the note to Bob tomorrow", "en"),
        ("What does 予約確認 mean?", "en"),
        ("Greet さくら and her friends for me, please", "en"),
        ("Скажи ему 你好", "en"),
        ("帮我 debug 这个 React 的组件", "zh"),
        ("介绍一下 https://example.com/some/long/path_of_words", "zh"),
        ("https://example.com/some/long/pathを要約して", "ja"),
        ("call_1_b6574fc3を choir@st-anne.example に", "ja"),
        ("Pythonのlist comprehensionについて", "ja"),
        ("予約確認", "ja"),
        ("東京駅", "ja"),
        ("会議検索", "ja"),
        ("確認訂單", "zh"),
        ("预约确认", "zh"),
        ("不要", "zh"),
        ("👍 123 ?", "en"),
        ("", "en"),
        ("Qué es?", "en"),
        ("東京のカフェ", "ja"),
        ("ｶﾌｪ", "ja"),
        ("GPT-5 是什么?", "zh"),
    ],
)
def test_the_script_of_most_of_a_text_decides(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    "short", ["no", "不要", "駄目", "了解", "ok?", "No, too expensive", "", "👍", '{"call_1_b6574fc3": true}']
)
def test_a_short_answer_keeps_the_language_of_the_conversation(short: str) -> None:
    for question in ("ランプを注文してください", "请订购一盏灯和一张桌子", "Order a lamp for the large hall"):
        assert deciding_text(["Hello", question, short, short]) == question


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (["ランプを注文してください", "Please answer in English and take the cheaper one"], "en"),
        (["Order a lamp for the large hall", "安い方のランプにしてください"], "ja"),
        (["ランプを注文してください", "配送先住所確認希望"], "ja"),
        (["ランプを注文してください", "请给我看看便宜一点的灯"], "zh"),
        (["hi", "注文して"], "ja"),
        (["注文", "ok thanks"], "zh"),
        (["👍", "はい"], "ja"),
        (["", "不要"], "zh"),
    ],
)
def test_a_text_that_says_more_changes_the_language(texts: list[str], language: str) -> None:
    assert language_of(deciding_text(texts)) == language


@given(any_text)
def test_every_text_has_a_language(text: str) -> None:
    assert language_of(text) in ("en", "ja", "zh")
    assert deciding_text([text]) in (text, "")


def test_every_reason_has_a_sentence_of_its_own_in_every_language() -> None:
    of_reasons = [template.NO_ANSWER[reason.value] for reason in StopReason if reason is not StopReason.ANSWERED]
    sentences = [each[language] for each in of_reasons for language in ("en", "ja", "zh")]

    assert all(sentences)
    assert len(set(sentences)) == len(sentences)


@pytest.mark.parametrize(
    ("tools", "query", "line"),
    [
        (["search"], "why", "Used search."),
        (["b", "a", "b"], "why", "Used b, a."),
        (["a", "b", "c", "d", "e"], "why", "Used a, b, c and 2 more."),
        (["a", "b"], "なぜ", "a、b を使用しました。"),
        (["a", "b", "c", "d"], "なぜ", "a、b、c ほか 1 件のツールを使用しました。"),
        (["a", "b"], "为什么", "使用了 a、b。"),
        (["a", "b", "c", "d"], "为什么", "使用了 a、b、c 和另外 1 个工具。"),
        (["{tools}"], "why", "Used {tools}."),
        ([], "why", ""),
    ],
)
def test_a_line_names_the_first_tools_of_a_silent_round(tools: list[str], query: str, line: str) -> None:
    assert tools_line(tools, query) == line
