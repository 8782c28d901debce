"""A request that fits: into the model's context window, and into the one line that carries it to the host.

In: a transcript and the tools beside it. Out: the transcript, trimmed where it must be: oldest images and results
first. Tokens are estimated without a tokenizer, since those download vocabularies or refuse texts.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dify_plugin.entities.model.message import (
    AssistantPromptMessage,
    MultiModalPromptMessageContent,
    PromptMessage,
    PromptMessageTool,
)

from internal.errors import PromptTooLarge
from internal.transcript import Transcript

LONGEST_REQUEST = 4 * 1024 * 1024
"""Bytes; the daemon kills a plugin whose stdout line exceeds 5 MiB (dify-contract §6)."""
_ENVELOPE = 4096
"""Bytes around the messages and tools of a request: model config, session and request ids."""
_TOKENS_OF_A_MEDIUM = 1_000
_KEPT_SHARE = 0.75
"""Trimming goes down to this share, so that it need not be done again in the very next round."""


@dataclass(frozen=True)
class Weight:
    tokens: int = 0
    size: int = 0
    """Bytes on the wire."""

    def __add__(self, other: "Weight") -> "Weight":
        return Weight(self.tokens + other.tokens, self.size + other.size)

    def __sub__(self, other: "Weight") -> "Weight":
        return Weight(self.tokens - other.tokens, self.size - other.size)


def estimate_tokens(text: str) -> int:
    """ASCII characters / 4 + other characters."""
    ascii_characters = sum(map(str.isascii, text)) if not text.isascii() else len(text)
    return ascii_characters // 4 + len(text) - ascii_characters


@dataclass
class Window:
    """How much may go into the requests of one run; remembers the weight of messages it has seen."""

    tools: Sequence[PromptMessageTool]
    context_size: int | None = None
    max_tokens: int = 0
    longest_request: int = LONGEST_REQUEST
    _weights: dict[int, tuple[PromptMessage, Weight]] = field(default_factory=dict, init=False, repr=False)

    @property
    def prompt_tokens(self) -> int | None:
        """Tokens that a prompt may have; None when nobody knows."""
        if self.context_size is None:
            return None
        return self.context_size - min(self.max_tokens, self.context_size // 2)

    def fit(self, transcript: Transcript) -> Iterator[str]:
        """Trim what does not fit; yields a sentence for the log when something was trimmed.

        Raises:
            PromptTooLarge: there is nothing left to trim and the request would still kill the plugin.
        """
        yield from self._fit_size(transcript)
        limit = self.prompt_tokens
        if limit is not None and self.weigh(transcript).tokens > limit:
            yield from self._fit_tokens(transcript, int(limit * _KEPT_SHARE))

    def shrink(self, transcript: Transcript) -> Iterator[str]:
        """Trim after the provider said that the prompt is too long; yields nothing when there was nothing to trim."""
        yield from self._fit_tokens(transcript, int(self.weigh(transcript).tokens * _KEPT_SHARE))

    def weigh(self, transcript: Transcript) -> Weight:
        weight = self._weight_of_tools
        for message in transcript.messages():
            weight += self._weight_of(message)
        return weight

    @cached_property
    def _weight_of_tools(self) -> Weight:
        tools = json.dumps([tool.model_dump(mode="json") for tool in self.tools], ensure_ascii=False)
        return Weight(estimate_tokens(tools), len(tools.encode()) + _ENVELOPE)

    def _weight_of(self, message: PromptMessage) -> Weight:
        known = self._weights.get(id(message))
        if known is None or known[0] is not message:
            known = self._weights[id(message)] = (message, _weigh_message(message))
        return known[1]

    def _fit_tokens(self, transcript: Transcript, target: int) -> Iterator[str]:
        tokens, trimmed = self.weigh(transcript).tokens, 0
        for position in list(transcript.trimmable_results()):
            if tokens <= target:
                break
            tokens -= self._trim_result(transcript, position).tokens
            trimmed += 1
        if trimmed:
            yield f"the prompt was too long for the model: {trimmed} of the oldest tool results became notes"

    def _fit_size(self, transcript: Transcript) -> Iterator[str]:
        size, media, results = self.weigh(transcript).size, 0, 0
        if size <= self.longest_request:
            return
        for position, part in list(transcript.trimmable_media()):
            if size <= self.longest_request:
                break
            before = self._weight_of(transcript.messages()[position])
            transcript.trim_media(position, part)
            size -= (before - self._weight_of(transcript.messages()[position])).size
            media += 1
        for position in list(transcript.trimmable_results()):
            if size <= self.longest_request:
                break
            size -= self._trim_result(transcript, position).size
            results += 1
        if size > self.longest_request:
            raise PromptTooLarge(
                f"the prompt has {size:,} bytes without images and tool results; at most {self.longest_request:,} "
                "reach the host. Shorten the instruction, query, context or memory window."
            )
        yield f"the request was too large for the host: {media} files and {results} tool results became notes"

    def _trim_result(self, transcript: Transcript, position: int) -> Weight:
        before = self._weight_of(transcript.messages()[position])
        transcript.trim_result(position)
        return before - self._weight_of(transcript.messages()[position])


def _weigh_message(message: PromptMessage) -> Weight:
    tokens = 0
    if isinstance(message.content, str):
        tokens = estimate_tokens(message.content)
    for part in message.content if isinstance(message.content, list) else ():
        is_medium = isinstance(part, MultiModalPromptMessageContent)
        tokens += _TOKENS_OF_A_MEDIUM if is_medium else estimate_tokens(part.data)
    for call in message.tool_calls if isinstance(message, AssistantPromptMessage) else ():
        tokens += estimate_tokens(call.function.name + call.function.arguments)
    # Longer than the SDK's line, since it writes no spaces and no escapes beyond these; never shorter.
    return Weight(tokens, len(message.model_dump_json().encode()) + 2)
