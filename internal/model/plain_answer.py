"""Whether a turn's text is clearly the answer, and not a remark before tool calls.

In: the visible text so far. Out: whether it can be shown before the turn has ended.
"""

import re

PLAINLY_AN_ANSWER = 400
"""Letters. A remark before tool calls is shorter, almost always; a longer one is shown as if it were the answer."""
_LETTERS_OF_A_WIDE_ONE = 4
"""A Chinese, Japanese or Korean character says as much as several letters, and takes a model as long."""
_WIDE = re.compile(
    r"[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
_BEGINS_A_BLOCK = re.compile(r"^ {0,3}(?:#{1,6} |\||```|~~~)", re.MULTILINE)
"""A heading, a table or a code fence. Lists are not among them: some remarks begin with one (docs/model-facts.md, "Text
before tool calls")."""


def is_plainly_an_answer(text: str) -> bool:
    """Whether a text is long enough, or laid out like an answer. A text that is stays so however it goes on."""
    letters = len(text) + (_LETTERS_OF_A_WIDE_ONE - 1) * len(_WIDE.findall(text))
    return letters >= PLAINLY_AN_ANSWER or _BEGINS_A_BLOCK.search(text) is not None
