"""The question that a user reads before a call runs: all of it is shown, and nothing in it acts."""

import json
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from internal.call import ToolCall, ValidCall, WaitingCall
from internal.memory.approval import (
    Decision,
    ImitationGuard,
    Verdict,
    approval_question,
    how_to_answer,
    read_decision,
    said_besides,
)
from internal.node.tools import Tool
from internal.text.secrets import Redactor
from prompt import user_texts
from tests.support.generators import any_text, joined, json_values

MARKDOWN = MarkdownIt("commonmark").enable("table")
STRUCTURE = {"text", "softbreak", "strong_open", "strong_close", "code_inline"}


BLOCKS = {"inline", "fence"} | {
    f"{name}_{end}" for name in ("paragraph", "bullet_list", "list_item") for end in ("open", "close")
}


def codes(markdown: str) -> list[str]:
    """The code in a text, in order; fails if Markdown finds anything but paragraphs, lists, code and bold print."""
    found = []
    for token in MARKDOWN.parse(markdown):
        assert token.type in BLOCKS
        if token.type == "fence":
            found.append(token.content.removesuffix("\n"))
        for part in token.children or ():
            assert part.type in STRUCTURE
            if part.type == "code_inline":
                found.append(part.content)
    return found


def around(markdown: str) -> list[str]:
    """What stands around the code."""
    parts = [part for token in MARKDOWN.parse(markdown) for part in token.children or ()]
    return [part.content.strip() for part in parts if part.type == "text" and part.content]


def unescaped(shown: str) -> str:
    for escape, character in (("\\t", "\t"), ("\\r", "\r"), ("\\n", "\n")):
        shown = shown.replace(escape, character)
    return re.sub(r"\\u([0-9a-f]{4})|\\U([0-9a-f]{8})", lambda found: chr(int(found[1] or found[2], 16)), shown)


QUERIES = {"en": "why", "ja": "なぜ", "zh": "为什么", "pt": "por que você quer isso?"}


def order(arguments: dict[str, Any], number: int = 1, subtask: str | None = None, name: str = "order") -> WaitingCall:
    valid = ValidCall(ToolCall("call_1", name, "{}"), Tool(name, name, "shop/shop"), arguments)
    return WaitingCall(valid, f"call_{number}_0a1b2c3d", subtask=subtask)


def in_a_chat(waiting: Sequence[WaitingCall], query: str) -> str:
    """The question as the text of a run has it."""
    return f"{approval_question(waiting, query)}\n\n{how_to_answer(waiting, query)}"


def test_several_calls_have_ids_and_an_answer_for_each() -> None:
    question = in_a_chat([order({"item": "tea"}), order({}, 2, "Buy\nmilk")], "Buy tea")

    assert question == (
        """\
I need your approval before I do these 2 things:

**`order`** (`call_1_0a1b2c3d`)

- `item`: `tea`

**`order`** (`call_2_0a1b2c3d`)

Subtask: `Buy\\nmilk`

(no arguments)

Answer "yes" to approve all of them, or say what should be different. To decide on each one, answer in JSON: \
`{"call_1_0a1b2c3d": true, "call_2_0a1b2c3d": {"approved": false, "reason": "…"}}`"""
    )
    decision = read_decision(codes(question)[-1])
    assert decision is not None
    assert [decision.verdict(call_id).approved for call_id in ("call_1_0a1b2c3d", "call_2_0a1b2c3d")] == [True, False]


@pytest.mark.parametrize("language", QUERIES)
def test_the_word_that_a_question_names_approves(language: str) -> None:
    for count in (1, 2):
        question = in_a_chat([order({}, number) for number in range(count)], QUERIES[language])
        word = re.search(r'["“「](\w+)["”」]', question.split("\n\n")[-1])

        assert user_texts.WITHOUT_ARGUMENTS[language] in question
        assert word is not None
        assert read_decision(word[1]) == Decision(Verdict(approved=True))


nasty = joined(
    [
        *("`", "``", "```", "~~~", "````", "\n", "\r\n", "\r", " ", "  ", "\t", "    ", "\\", "a", "b", '"', "|", "-"),
        *("#", "- `to`: `bob`", 'Answer "yes"', "**", "_", "<b>", "<!--", "</details>", "[x](http://x)"),
        *("![x](http://x)", "&lt;", "$x$", "---", "===", "> ", "1. ", "\u202e", "\u200b", "\u2028", "\x00", "\ud83d"),
        *("\u3000", "é"),
    ]
)
texts = any_text | nasty


def _one_line_end(text: str) -> str:
    """Markdown makes one line end of all kinds; a return before one may be written out, or a part of it."""
    return re.sub(r"\r*\n", "\n", text)


@example({"": "\r\r\n"}, "", None)
@given(st.dictionaries(texts, json_values | texts | st.lists(nasty), max_size=3), texts, st.none() | texts)
def test_every_value_is_code_from_end_to_end(arguments: dict[str, Any], tool: str, subtask: str | None) -> None:
    question = in_a_chat([order(arguments, 1, subtask, tool), order({}, 2)], "why")

    inside = list[str]()
    for name, value in arguments.items():
        inside.append(name)
        if value != "":
            inside.append(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    expected = [tool, "call_1_0a1b2c3d", *([] if subtask is None else [subtask]), *inside, "order", "call_2_0a1b2c3d"]
    assert [_one_line_end(unescaped(text)) for text in codes(question)[:-1]] == [
        _one_line_end(unescaped(text)) or '""' for text in expected
    ]
    alike = zip("xyz", ("x" * (value != "") for value in arguments.values()), strict=False)
    harmless = order(dict(alike), 1, None if subtask is None else "x")
    assert around(question) == around(in_a_chat([harmless, order({}, 2)], "why"))


KEPT = set("\t\n\r \u3000")
IGNORABLE = (
    "\u2d7f\ufffc\U0001107f\U00011a47\U00011a99\U00016fe4\U0001bc9d\U0001d159"
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180f\u2800\u3164\ufe00\ufe0f\uffa0\U000e0100\U000e01ef\U000e0041"
)


def test_no_character_is_invisible() -> None:
    kinds = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"}
    invisible = [chr(number) for number in range(0x110000) if unicodedata.category(chr(number)) in kinds]

    question = in_a_chat([order({"a": "a\nb".join([*invisible, *IGNORABLE])})], "why")

    assert set(question) & {*invisible, *IGNORABLE} <= KEPT
    assert not re.search(r"\r(?!\n)", question)


def test_an_empty_text_is_told_from_the_text_of_two_quotes() -> None:
    question = in_a_chat([order({"a": "", "b": '""'})], "why")

    assert '- `a`: (empty text)\n- `b`: `""`' in question


@pytest.mark.parametrize(
    "secret",
    [
        *("sk-0a1b2c3d4e5f", 'a"quoted\\pass', "pässwörd-秘密", "`tick`secret", "tab\tbed-secret", "zero\u200bwidth"),
        *("-----BEGIN-----\nabc\n-----END-----\n", "-----BEGIN-----\r\nabc\r\n-----END-----", " spaces around "),
    ],
)
def test_a_secret_is_still_found_in_the_question(secret: str) -> None:
    values = [secret, f"so {secret}!", f"so\n{secret}\n!", {"key": [secret]}]
    question = in_a_chat([order({secret: value}, number) for number, value in enumerate(values)], "why")

    hidden = Redactor.of([secret]).text(question)

    assert hidden.count("[redacted]") == 2 * len(values)


ORDINARY = "Straße, naïve – 5 € “so”… 東京　カフェー が 你好，한국어 العربية हिन्दी ไทย 👍🏽 ❤️ e\u0301"
INDENTED = "def f():\n" + " " * 38 + "x\n\n\n\ny"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *((ORDINARY, ORDINARY), (INDENTED, INDENTED), ("`", "`"), (" a ", "\\u0020a\\u0020"), ("\ud83d", "\\ud83d")),
        *(("a  b", "a \\u0020b"), ("a\tb", "a\\tb"), ("a\rb", "a\\rb"), ("a\r\n  b\tc", "a\n  b\tc")),
        *(("a\U000e0041b", "a\\U000e0041b"), ("a\ufe0fb", "a\\ufe0fb"), ("a\n" + " " * 500 + "b", "a\n[␣×501]\nb")),
        *(("small" + " " * 500 + "print", "small[␣×500]print"), ("a" + "\n" * 300 + "b", "a\n[␣×300]\nb")),
        *(("a" + "\n \u3000\t" * 80 + "b", "a\n[␣×320]\nb"), ("a" + "\r\n" * 5 + "b", "a\n[␣×10]\nb")),
        *(("a" + "\u3000" * 41 + "b", "a[␣×41]b"), ("a" + "\u2003\xa0" * 41 + "b", "a[␣×82]b")),
        ("a" + "\u200b" * 300 + "b", "a[\\u200b×300]b"),
        ("a" + "\u0301" * 200 + "b", "a" + "\u0301" * 4 + "[◌×196]b"),
        ("a" + "\u0301\u20dd" * 100 + "b", "a" + "\u0301\u20dd" * 2 + "[◌×196]b"),
    ],
)
def test_what_hides_is_written_out_and_what_would_push_the_rest_off_the_screen_is_counted(
    text: str, shown: str
) -> None:
    assert codes(in_a_chat([order({"a": text})], "why"))[-1] == shown


def test_nothing_else_is_cut() -> None:
    text = "x" * 1_000_000

    assert text in in_a_chat([order({"a": text})], "why")


# What the model writes may look like a question.

HEADING = user_texts.APPROVAL_REQUEST["en"]
REMARKS = tuple(user_texts.NOT_THE_QUESTION.values())
IMITATED = [
    *user_texts.APPROVAL_REQUEST.values(),
    *(heading.format(count=2) for heading in user_texts.APPROVAL_REQUEST_FOR_SEVERAL.values()),
    *(f"**{HEADING}**", f"## Once more: {HEADING}", HEADING.upper(), HEADING.replace(" ", "  "), HEADING[:-1]),
    *(HEADING.replace(" ", "\n"), HEADING.replace("need", "n**ee**d"), HEADING.replace(" ", "\u200b \u00ad")),
    *(HEADING.replace("e", "\u0435"), HEADING.replace("o", "\u03bf"), HEADING.replace("I", "l")),
    *(HEADING.replace("need", "n&#101;e&#x64;"), HEADING.replace(" ", "&ZeroWidthSpace; ")),
    *(
        HEADING.replace("I need", "[I need](http://a.example)"),
        unicodedata.normalize("NFD", user_texts.APPROVAL_REQUEST["ja"]),
    ),
    HEADING.translate({number: number + 0xFEE0 for number in range(0x21, 0x7F)}),
]


def guarded(text: str, size: int) -> str:
    guard = ImitationGuard()
    return "".join(guard.marked(text[at : at + size]) for at in range(0, len(text), size))


@pytest.mark.parametrize("size", [1, 3, 17, 10_000])
@pytest.mark.parametrize("imitated", IMITATED)
def test_what_looks_like_the_heading_of_a_question_has_a_remark_behind_it(imitated: str, size: int) -> None:
    text = f"Before.\n\n{imitated}\n\n**`look`**\n\nThen {imitated}"

    marked = guarded(text, size)

    plain = re.sub("|".join(map(re.escape, (f" {remark}" for remark in REMARKS))), "", marked)
    assert plain == text
    assert sum(map(marked.count, REMARKS)) == 2
    first = min(at for at in map(marked.find, REMARKS) if at >= 0)
    assert first < marked.index("**`look`**")


@given(any_text, st.integers(1, 50))
def test_all_other_text_stays_as_it_is(text: str, size: int) -> None:
    assert guarded(text, size) == text


def test_text_far_apart_is_no_heading() -> None:
    text = HEADING[:10] + "-" * 2_000 + HEADING[10:]

    assert guarded(text, 100) == text


@pytest.mark.parametrize("said", ["One.\n\nTwo.", "One.\r\nTwo.\rThree.", "```\nx", "<details>\nx", "# x\n---\n- y"])
def test_what_the_model_said_is_one_quotation(said: str) -> None:
    tokens = MARKDOWN.parse(f"Answer.\n\n{said_besides(said)}")
    at_the_top = [token.type for token in tokens if token.level == 0]

    assert at_the_top == ["paragraph_open", "paragraph_close", "blockquote_open", "blockquote_close"]


def test_nothing_said_is_no_quotation() -> None:
    assert said_besides(" \n") == ""
