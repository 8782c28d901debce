"""The agent's own sentences for the user, in the language that the script of the question suggests.

In: why a run ends without a text from the model, or the tools of a round without text. Out: one sentence.
"""

import re
from collections.abc import Iterable

from internal.report.events import StopReason
from internal.report.tool_calls import EndedCall
from prompt import template

_KANA = re.compile(r"[\u3040-\u30ff\uff66-\uff9f]")
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_MAX_NAMES = 3
_MAX_CALLS = 10
_MAX_NAME_LENGTH = 64
"""Characters; the model may invent names of any length."""


def no_answer_sentence(reason: StopReason, query: str) -> str:
    """Say why there is no answer."""
    sentences = template.NO_ANSWER.get(reason.value, template.NO_ANSWER[StopReason.EMPTY.value])
    return sentences[language_of(query)]


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


def working_line(tools: Iterable[str], query: str) -> str:
    """Name the first few of these tools, each once; empty without any name."""
    language = language_of(query)
    names = list(dict.fromkeys(name for tool in tools if (name := " ".join(tool.split())[:_MAX_NAME_LENGTH])))
    if not names:
        return ""
    listed = template.NAME_SEPARATOR[language].join(names[:_MAX_NAMES])
    sentences = template.WORKING if len(names) <= _MAX_NAMES else template.WORKING_ON_MORE
    return sentences[language].format(tools=listed, more=len(names) - _MAX_NAMES)


def language_of(query: str) -> str:
    """Which of a table's sentences suit a text: ``ja`` if it has kana, else ``zh`` if it has Chinese characters."""
    return "ja" if _KANA.search(query) else "zh" if _HAN.search(query) else "en"
