"""The one sentence that a user reads when a run ends without a text of the model's."""

import re

from internal.events import StopReason
from prompt import template

_KANA = re.compile(r"[\u3040-\u30ff\uff66-\uff9f]")
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")


def no_answer_sentence(reason: StopReason, query: str) -> str:
    """Say why there is no answer, in the language that the script of the question suggests."""
    language = "ja" if _KANA.search(query) else "zh" if _HAN.search(query) else "en"
    sentences = template.NO_ANSWER.get(reason.value, template.NO_ANSWER[StopReason.EMPTY.value])
    return sentences[language]
