"""A long text as its summary, as Dify's system model makes it for `system_summary`.

In: a model, a text and an instruction. Out: the text itself if it takes little of the model's context; else summaries
of its parts, joined, until they are short enough. A scripted model cannot summarize, and its turns are for other
calls, so that the text is cut instead, and says so.
"""

from collections.abc import Iterator

from devhost.models.answers import model_answer
from devhost.models.backend import ModelBackend
from devhost.protocol import requests
from devhost.text.counted import counted

CHARACTERS_PER_TOKEN = 4
UNKNOWN_WINDOW = 2048
"""Dify's number of tokens for a model whose context is not known."""
SHORT_ENOUGH, PART = 0.6, 0.5
"""Parts of the context: up to which a text is its own summary, and how long a part of a longer one is."""
MOST_ROUNDS = 5
"""Dify has no such limit: a model that never shortens keeps it busy for ever."""
PROMPT = """You are a professional language researcher, you are interested in the language
and you can quickly aimed at the main point of an webpage and reproduce it in your own words but
retain the original meaning and keep the key points.
however, the text you got is too long, what you got is possible a part of the text.
Please summarize the text you got.

Here is the extra instruction you need to follow:
<extra_instruction>
{instruction}
</extra_instruction>
"""


def summary(model: ModelBackend, text: str, instruction: str) -> str:
    """ModelCallError as the model's other calls raise it."""
    window = (model.description.context_size or UNKNOWN_WINDOW) * CHARACTERS_PER_TOKEN
    shortest = int(window * SHORT_ENOUGH)
    for _ in range(MOST_ROUNDS):
        if len(text) <= shortest or model.description.scripted:
            break
        text = "\n".join(_asked(model, part, instruction) for part in _parts(text, int(window * PART)))
    return _cut(text, shortest)


def _cut(text: str, length: int) -> str:
    left = len(text) - length
    return f"{text[:length]}… (cut by devhost: {counted(left, 'more character')})" if left > 0 else text


def _parts(text: str, length: int) -> Iterator[str]:
    """Whole lines together, as long as they fit; a longer line is divided."""
    part = ""
    for line in filter(str.strip, text.split("\n")):
        if part and len(part) + len(line) >= length:
            yield part
            part = ""
        part = f"{part}\n{line}" if part else line
        while len(part) > length:
            yield part[:length]
            part = part[length:]
    if part:
        yield part


def _asked(model: ModelBackend, text: str, instruction: str) -> str:
    described = model.description
    request = {
        "provider": described.provider or "devhost",
        "model": described.name,
        "model_type": "llm",
        "mode": "chat",
        "completion_params": {},
        "prompt_messages": [
            {"role": "system", "content": PROMPT.replace("{instruction}", instruction)},
            {"role": "user", "content": text},
        ],
        "stream": False,
    }
    chunks = model_answer(model, requests.LLM, request, "drop")
    return "".join(str(chunk["delta"]["message"]["content"] or "") for chunk in chunks)
