"""The agent's own sentences for the user, in the language that the script of the question suggests."""

import re
from collections.abc import Iterable
from typing import Literal

from internal.call import EndedCall
from internal.errors import StopReason
from prompt import template

_KANA = re.compile(r"[\u3041-\u30ff\uff66-\uff9f]")
_HAN = re.compile(r"[\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_WORD = re.compile(r"[^\W\d_]+")
_ASCII = re.compile(r"[!-~]+")
_IDENTIFIER = re.compile(r"://|@|_|\w[.]\w")
"""What marks a run of ASCII as an address, a file or a name in code: it can stand in a text of any language."""
_JAPANESE_WORDS = re.compile(r"予[定想算約防備報測選]|払|込|駄目")
"""Parts of Japanese words that Chinese writes in another way, in characters that its character sets have."""
_CHINESE_CHARACTER_SETS = ("gb2312", "big5")
_WEIGHT = 3
"""Of a Japanese or Chinese character, in letters of an alphabet."""
_MAX_WORD_WEIGHT = 4
"""Of a word of an alphabet: technical terms are long, and stand in texts of every language."""
_SHORT = 15
"""The weight of an answer such as "no, too expensive"."""
_MAX_LENGTH_READ = 10_000
"""Characters of a text that are looked at."""

type Language = Literal["en", "ja", "zh"]

_MAX_NAMES = 3
_MAX_CALLS = 10
_MAX_NAME_LENGTH = 64
"""Characters; the model may invent names of any length."""


def no_answer_sentence(reason: StopReason, query: str) -> str:
    """Say why there is no answer."""
    sentences = template.NO_ANSWER.get(reason.value, template.NO_ANSWER[StopReason.EMPTY.value])
    return sentences[language_of(query)]


def cut_note(reason: StopReason, words: str) -> str:
    """Say below an answer why it ends in the middle."""
    return template.CUT_SHORT[reason.value][language_of(words)]


def plan_shown(plan: Iterable[str], words: str) -> str:
    """A plan as the user reads it among the thoughts.

    Of a block's text Dify's page reads Markdown only from the first blank line on.
    """
    numbered = (f"{number}. {name}" for number, name in enumerate(plan, start=1))
    return "\n".join([template.PLAN_HEADING[language_of(words)], "", *numbered])


def findings_shown(findings: Iterable[tuple[str, str]], words: str) -> str:
    """The subtasks of a plan, by name, with what each found, as the user reads them among the thoughts."""
    parts = (f"**{number}. {name}**\n\n{found}" for number, (name, found) in enumerate(findings, start=1))
    return "\n\n".join([template.FINDINGS_HEADING[language_of(words)], *parts])


def sources_heading(words: str) -> str:
    """What stands above the list of the sources that the answer cites."""
    return template.SOURCES_HEADING[language_of(words)]


def failed_sentence(calls: Iterable[EndedCall], failure: str, words: str) -> str:
    """Say that the model failed, and what became of the calls that the user had answered before."""
    language = language_of(words)
    shown = list(calls)
    names = [
        f"{each.call.name[:_MAX_NAME_LENGTH]}: {template.CALL_STATUS[language][each.status.value]}"
        for each in shown[:_MAX_CALLS]
    ]
    names += ["…"] if len(shown) > _MAX_CALLS else []
    listed = template.NAME_SEPARATOR[language].join(names)
    return template.MODEL_FAILED_AFTERWARDS[language].format(calls=listed, failure=" ".join(failure.split()))


def tools_line(tools: Iterable[str], query: str) -> str:
    """Name the first few of these tools, each once; empty without any name."""
    language = language_of(query)
    names = list(dict.fromkeys(name for tool in tools if (name := " ".join(tool.split())[:_MAX_NAME_LENGTH])))
    if not names:
        return ""
    listed = template.NAME_SEPARATOR[language].join(names[:_MAX_NAMES])
    sentences = template.TOOLS_USED if len(names) <= _MAX_NAMES else template.MORE_TOOLS_USED
    return sentences[language].format(tools=listed, more=len(names) - _MAX_NAMES)


def language_of(query: str) -> Language:
    """Which of a table's sentences suit a text: ``en`` unless most of it is in Japanese or Chinese characters."""
    text = query[:_MAX_LENGTH_READ]
    east_asian, others = _weights(text)
    if east_asian <= others:
        return "en"
    return "ja" if _KANA.search(text) or _is_japanese_in_kanji(text) else "zh"


def deciding_text(texts: Iterable[str]) -> str:
    """Which of a user's texts, from the first to the newest, says the language of the conversation.

    The newest, unless it is short and one before it said more: "no" and "不要" may belong to a Japanese conversation,
    and so may a longer text in characters that Japanese and Chinese share.
    """
    decides = ""
    for text in texts:
        new, old = sum(_weights(text)), sum(_weights(decides))
        is_short = new <= _SHORT and new <= 2 * old
        if not (is_short or (language_of(decides) == "ja" and _may_be_japanese(text))):
            decides = text
    return decides


def _weights(text: str) -> tuple[int, int]:
    """How much of a text is in Japanese or Chinese characters, and how much in those of other scripts."""
    words = _ASCII.sub(lambda run: " " if _IDENTIFIER.search(run[0]) else run[0], text[:_MAX_LENGTH_READ])
    words, kana = _KANA.subn(" ", words)
    words, han = _HAN.subn(" ", words)
    return _WEIGHT * (kana + han), sum(min(len(word), _MAX_WORD_WEIGHT) for word in _WORD.findall(words))


def _may_be_japanese(text: str) -> bool:
    """Whether most of a text is in Chinese characters, all of which Japanese has too."""
    return language_of(text) == "zh" and _can_write("shift_jis", "".join(_HAN.findall(text[:_MAX_LENGTH_READ])))


def _is_japanese_in_kanji(text: str) -> bool:
    """Whether the Chinese characters of a text without kana are those of Japan: no Chinese set has them all."""
    han = "".join(_HAN.findall(text))
    if not _can_write("shift_jis", han):
        return False
    return bool(_JAPANESE_WORDS.search(han)) or not any(_can_write(each, han) for each in _CHINESE_CHARACTER_SETS)


def _can_write(character_set: str, text: str) -> bool:
    try:
        text.encode(character_set)
    except UnicodeEncodeError:
        return False
    return True
