"""What counts as an approval of the calls that wait, and whether a call is still the one that the user saw."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.memory import approval
from internal.node.tools import Tool
from internal.text.texts import has_lone_surrogate
from prompt import template
from prompt.approval_words import APPROVAL_WORDS
from tests.support.builders import file, parameter_of, tool_of
from tests.support.generators import any_text
from tests.support.wire import parameter

WORDS = [words for of_language in APPROVAL_WORDS.values() for words in of_language]
NO = approval.Verdict(approved=False)
YES = approval.Verdict(approved=True)
APPROVED = approval.Decision(YES)
any_words = st.sampled_from(WORDS)


def rejected(text: str) -> approval.Decision:
    return approval.Decision(approval.Verdict(approved=False, reason=text))


def by_call(text: str) -> approval.Decision:
    decision = approval.read_decision(text)
    assert decision is not None
    assert decision.others == NO
    return decision


NEGATIONS = {
    "en": r"\b(?:no|not|don't|never|stop|cancel|wait|but|if|except|unless|later|maybe)\b",
    "ja": "いいえ|いや|ない|(?<!問題あり)ません|だめ|ダメ|中止|待|やめ|却下|拒否|けど|なら",
    "zh": "不|别|勿|没有|沒有|取消|停|等|拒|但|如果",
    "pt": r"\b(?:não|nao|nunca|pare|cancele|cancelar|espere|mas|se|exceto|talvez|depois)\b",
    "any": "👎|❌|🚫",
}


@pytest.mark.parametrize("language", APPROVAL_WORDS)
def test_no_listed_form_holds_a_negation_or_a_condition(language: str) -> None:
    assert [words for words in APPROVAL_WORDS[language] if re.search(NEGATIONS[language], words, re.IGNORECASE)] == []


@pytest.mark.parametrize("words", WORDS)
def test_each_listed_word_approves_every_call(words: str) -> None:
    assert approval.read_decision(words) == APPROVED
    assert APPROVED.verdict("any") == YES


def wide(text: str) -> str:
    return "".join(chr(ord(character) + 0xFEE0) if "!" <= character <= "~" else character for character in text)


@given(
    words=any_words,
    change=st.sampled_from(
        [str, str.upper, str.title, str.swapcase, wide, lambda text: unicodedata.normalize("NFD", text)]
    ),
    before=st.text(" \t\n\u3000", max_size=3),
    quotes=st.sampled_from(["", '""', "''", "“”", "「」"]),
    end=st.from_regex(r"[!！ ]{0,2}[.。．｡]?[!！ ]{0,2}", fullmatch=True),
    gap=st.sampled_from([" ", "  ", "\n", "\u3000", ", ", "、", ". ", "！"]),
)
def test_width_case_white_space_and_final_punctuation_make_no_difference(
    *, words: str, change: Callable[[str], str], before: str, quotes: str, end: str, gap: str
) -> None:
    written = re.sub(r"[\s,，、]+", gap, change(words)).rstrip(".．")

    assert approval.read_decision(f"{before}{quotes[:1]}{written}{end}{quotes[1:]}!") == APPROVED
    assert approval.read_decision(f"{before}{quotes[:1]}{written}{quotes[1:]}{end}") == APPROVED


@pytest.mark.parametrize(
    "text",
    [
        *("ok 👍", "yes ✅", "はい👍", "Sim! 👍🏽", '"ok 👍"', "**yes**", "*Yes*", "_sim_", "__ok__"),
        *("***はい***", "**yes, please!**", "**ok 👍**", " **好的** ", '**"yes"**'),
    ],
)
def test_a_sign_after_a_word_and_emphasis_around_it_make_no_difference(text: str) -> None:
    assert approval.read_decision(text) == APPROVED


REJECTED = [
    *("no", "No.", "いいえ", "不", "不可以", "não", "yes, but take the cheaper one", "yes no", "yes or no"),
    *("not yes", "ok?", "ok？", "ok?!", "ok⁉", "sure?", "はい？", "好的吗", "right", "fine", "1", "yes_"),
    *("yes\u200b", "уes", "はいではない", "好的，但是便宜一点", "sim, mas não agora", "👎", "yes 👎", "ok? 👍"),
    *("no 👍", "👍 no", "yes 👍 no", "yes 👍👎", "👍 yes", "no problem", "大丈夫です", "**no**", "**yes"),
    *("yes**", "**yes*", "*yes_", "** yes **", "**yes** no", "**yes** or **no**", "**yes**, *no*", "**yes?**"),
    *("****yes****", "****", "~~yes~~", "～～yes～～", "**~~yes~~**", '"~~yes~~"', "~~*yes*~~", "`yes`"),
    *(
        "yes...",
        "yes..",
        "yes…",
        "yes‥",
        "ええ…",
        "ええ〜",
        "ええ～",
        "うん…",
        "うん。。。",
        "はい、、、",
        "はい. . .",
        "ok…!",
    ),
    *("~yes~", "～yes～", "yes~", "~yes", "〜はい", "好的…", "~好的~", "好的~~", "**yes…**", '"yes…"', "sim~", "yes …"),
    *("# yes", "> yes", "```yes```", "```\nyes\n```", "[true]", "{'call_1': True}"),
    *("start.approval", "?", "!", '""', "{", '{"call_1": true', '{"call_1": NaN}', '{"call_1": true} yes'),
    *('yes {"call_1": true}', "{}{}", '```json {"call_1": true} ```', '```\n{"call_1": true}\n```'),
    *('```python\n{"call_1": true}\n```', '```JSON5\n{"call_1": true}\n```', '```json\n{"call_1": true}\n'),
    *('{"call_1": true}\n```', 'yes\n```json\n{"call_1": true}\n```', '```json\n{"call_1": true}\n```\nno'),
    *('```json\n{"call_1": true}\n```\n```json\n{"call_2": true}\n```', '````json\n{"call_1": true}\n````'),
    *("```json\nyes\n```", "```json\n[true]\n```", "```json\n```"),
]
LONG = [
    *("yes " * 10_000, "yes" + "!" * 200, "ﷺ" * 1_000_000, "{" * 1_000_000, '{"a":' * 100_000),
    *("\ud83d\0", '{"a": "\0"}'),
    *('{"a":' + "[" * 100_000 + "]" * 100_000 + "}", '{"a": ' + "1" * 10_000 + "}", '{"a": "' + "x" * 1_000_000 + '"}'),
    *("```json\n" + "{" * 1_000_000 + "\n```", "```json" + "\n" * 1_000_000 + "``", "*" * 200, "_*" * 100),
]


@pytest.mark.parametrize("text", [*REJECTED, *LONG], ids=lambda text: text[:30])
def test_any_other_text_rejects_every_call_with_that_text(text: str) -> None:
    assert approval.read_decision(f" {text} ") == rejected(text.strip())


LISTED = {re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", words)).casefold() for words in WORDS}


@given(
    words=any_words,
    word=st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8),
    gap=st.sampled_from(["", " ", ", ", "? "]),
    is_before=st.booleans(),
)
def test_a_word_more_makes_it_a_rejection(words: str, word: str, gap: str, *, is_before: bool) -> None:
    text = f"{word}{gap}{words}" if is_before else f"{words}{gap}{word}"
    is_listed = re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", text)).casefold() in LISTED

    assert approval.read_decision(text) == rejected(text) or (is_listed and "?" not in text)


@given(words=any_words, letters=st.integers(0, 30), character=st.characters(exclude_categories=["Cs"]))
def test_a_letter_or_sign_within_makes_it_a_rejection(words: str, letters: int, character: str) -> None:
    text = words[:letters] + character + words[letters:]
    compared = re.sub(r"[\s,、.!。\"'“”‘’„«»‹›「」『』]", "", unicodedata.normalize("NFKC", text)).casefold()
    listed = {re.sub(r"[\s,、.]", "", unicodedata.normalize("NFKC", words)).casefold() for words in WORDS}
    without_sign = {compared.removesuffix(sign) for sign in APPROVAL_WORDS["any"]}

    assert approval.read_decision(text) != APPROVED or listed & {compared, *without_sign}


@pytest.mark.parametrize("text", ["", " \n", "null", "None", "[]", " None\n", "\ufeff", "\u3000"])
def test_nothing_said_is_no_decision(text: str) -> None:
    assert approval.read_decision(text) is None


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("true", YES),
        ('{"approved": true}', YES),
        ('{"approved": true, "reason": null}', YES),
        ('{"approved": true, "reason": "thanks"}', approval.Verdict(approved=True, reason="thanks")),
        *((answer, NO) for answer in ("false", '{"approved": false}', "1", "1.0", '"true"', '"yes"', "null", "[true]")),
        *((answer, NO) for answer in ("{}", '{"approved": 1}', '{"approved": "true"}', '{"approved": [true]}')),
        ('{"Approved": true}', NO),
        ('{"approved": "no", "reason": " too dear\\n"}', approval.Verdict(approved=False, reason="too dear")),
        ('{"approved": true, "reason": 5}', NO),
        ('{"approved": true, "arguments": {"price": 1}}', NO),
        ('{"approved": false, "approved": true}', NO),
        ('{"approved": true, "reason": "a", "reason": "b"}', NO),
        ('true, "call_1": true', NO),
        ('false, "call_1": true', NO),
        ('{"approved": false, "reason": "a\\ud83d\\u0000b"}', approval.Verdict(approved=False, reason="a?b")),
    ],
)
def test_only_the_json_boolean_true_approves_a_call(answer: str, verdict: approval.Verdict) -> None:
    decision = by_call(f'{{"call_1": {answer}, "call_2": true}}')

    assert (decision.verdict("call_1"), decision.verdict("call_2"), decision.verdict("call_3")) == (verdict, YES, NO)


@pytest.mark.parametrize("end", ["\n", "\r\n", "  \n", "\n\n"])
def test_json_may_be_in_a_fence_that_is_the_whole_text(end: str) -> None:
    decision = by_call(f' ```json{end}{{"call_1": true,\n "call_2": {{"approved": false, "reason": "```"}}}}{end}```\n')

    assert decision.verdict("call_1") == YES
    assert decision.verdict("call_2") == approval.Verdict(approved=False, reason="```")


@given(any_text)
def test_any_text_is_one_decision_with_well_formed_reasons(text: str) -> None:
    decision = approval.read_decision(text)
    reason = by_call(json.dumps({"call_1": {"approved": False, "reason": text}})).verdict("call_1").reason

    assert decision is None or not decision.verdict("call_1").approved or decision == APPROVED
    assert not has_lone_surrogate(reason)
    assert "\0" not in reason


def test_the_model_reads_what_the_user_said() -> None:
    long = approval.not_approved_text("x" * (approval.MAX_REASON_LENGTH + 7))

    assert approval.not_approved_text(" no, the {cheaper} one\n") == (
        "The user did not approve this call and said: no, the {cheaper} one"
    )
    assert approval.not_approved_text(" ") == template.NOT_APPROVED
    assert approval.MAX_REASON_LENGTH - 50 < long.count("x") < approval.MAX_REASON_LENGTH
    assert "characters were not kept" in long


TEA = {"item": "tea", "count": 1}
ORDER = Tool("order", "order", "shop/shop", setting="5e771119")
SENDS = replace(tool_of(parameter("doc", "file"), parameter("docs", "files"), files=(file("a.pdf"),)), setting="")
OFFER = "http://host.test/files/1/file-preview?timestamp=1&nonce=2&sign=3"
CANONICAL = '["shop/shop","order","5e771119",{"count":1,"item":"tea"},[]]'
OWN = f"call_3_{hashlib.sha256(CANONICAL.encode()).hexdigest()[:8]}"


def with_parameters(tool: Tool, arguments: Mapping[str, Any]) -> Tool:
    return replace(tool, parameters={name: parameter_of() for name in arguments})


def fits(identifier: str, arguments: Mapping[str, Any], tool: Tool = ORDER) -> bool:
    return approval.is_same_call(identifier, with_parameters(tool, arguments), arguments, {})


def test_an_id_is_a_number_and_a_digest_of_the_call_and_nothing_else_fits() -> None:
    others = [OWN[:0], OWN[-8:], OWN.removeprefix("call_"), OWN.upper(), OWN + "0", OWN + "\n", OWN[:-1]]

    assert approval.call_id(3, with_parameters(ORDER, TEA), TEA, {}) == OWN
    assert fits(OWN.replace("call_3", "call_12"), dict(reversed(TEA.items())))
    assert not any(fits(other, TEA) for other in (*others, OWN.replace("3", "", 1), OWN.replace("3", "١", 1)))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (replace(ORDER, provider="shop/other"), TEA),
        (replace(ORDER, own_name="cancel"), TEA),
        (replace(ORDER, setting="0a0b0c0d"), TEA),
        (replace(ORDER, provider="shop/", own_name="shoporder"), TEA),
        *((ORDER, {"item": "tea", "count": count}) for count in (2, 1.0, True, "1")),
        *((ORDER, arguments) for arguments in ({"item": "tea"}, {})),
    ],
)
def test_another_call_does_not_fit(tool: Tool, arguments: dict[str, Any]) -> None:
    assert not fits(OWN, arguments, tool)


@pytest.mark.parametrize(
    ("url", "size", "is_same"),
    [
        (OFFER, 12, True),
        ("http://host.test/files/1/file-preview?timestamp=9&nonce=8&sign=7", 12, True),
        (OFFER, 13, False),
        *((url, 12, False) for url in (OFFER.replace("/1/", "/2/"), OFFER.replace("host", "other"), f"{OFFER}&page=2")),
        ("http://[host", 12, False),
    ],
)
@pytest.mark.parametrize("arguments", [{"doc": "a.pdf"}, {"docs": ["a.pdf"]}])
def test_a_file_is_the_same_behind_another_signature_only(
    arguments: dict[str, Any], url: str, size: int, *, is_same: bool
) -> None:
    own = approval.call_id(1, SENDS, arguments, {"a.pdf": file("a.pdf", url=OFFER, size=12)})

    assert approval.is_same_call(own, SENDS, arguments, {"a.pdf": file("a.pdf", url=url, size=size)}) == is_same
