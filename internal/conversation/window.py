"""A request that fits: into the model's context window, and into the one line that carries it to the host.

In: a transcript and the tools beside it. Out: the transcript, trimmed where it must be: images, tool results, opaque
bodies, the oldest of each first. Tokens are estimated without a tokenizer, since those download vocabularies or refuse
texts.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from dify_plugin.entities.model.message import (
    AssistantPromptMessage,
    MultiModalPromptMessageContent,
    PromptMessage,
    PromptMessageTool,
)
from pydantic_core import to_json

from internal.conversation.transcript import Transcript
from internal.errors import PromptTooLarge
from internal.host.request import MAX_REQUEST_BYTES

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
    ascii_characters = len(text.encode("ascii", "ignore"))
    return ascii_characters // 4 + len(text) - ascii_characters


@dataclass(frozen=True)
class _Trim:
    """Something that a prompt can do without."""

    kind: str
    position: int
    """Of its message."""
    apply: Callable[[], None]


@dataclass
class Window:
    """How much may go into the requests of one run; remembers the weight of messages it has seen."""

    tools: Sequence[PromptMessageTool]
    context_size: int | None = None
    max_tokens: int = 0
    longest_request: int = MAX_REQUEST_BYTES
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
        trims = [*_results(transcript), *_opaque_bodies(transcript)]
        _, left_out = self._trim(transcript, trims, lambda weight: weight.tokens <= target)
        if left_out:
            yield f"the prompt was too long for the model; left out, the oldest first: {_told(left_out)}"

    def _fit_size(self, transcript: Transcript) -> Iterator[str]:
        trims = [*_media(transcript), *_results(transcript), *_opaque_bodies(transcript)]
        weight, left_out = self._trim(transcript, trims, lambda weight: weight.size <= self.longest_request)
        if weight.size > self.longest_request:
            raise PromptTooLarge(
                f"the prompt has {weight.size:,} bytes without images and tool results; at most "
                f"{self.longest_request:,} reach the host. Shorten the instruction, query, context or memory window."
            )
        if left_out:
            yield f"the request was too large for the host; left out, the oldest first: {_told(left_out)}"

    def _trim(
        self, transcript: Transcript, trims: Iterable[_Trim], is_enough: Callable[[Weight], bool]
    ) -> tuple[Weight, Counter[str]]:
        """Trim until it is enough or nothing is left; the weight after that, and what was trimmed."""
        weight, left_out = self.weigh(transcript), Counter[str]()
        for trim in trims:
            if is_enough(weight):
                break
            before = self._weight_of(transcript.messages()[trim.position])
            trim.apply()
            weight -= before - self._weight_of(transcript.messages()[trim.position])
            left_out[trim.kind] += 1
        return weight, left_out


def _media(transcript: Transcript) -> list[_Trim]:
    parts = transcript.trimmable_media()
    return [_Trim("files", position, partial(transcript.trim_media, position, part)) for position, part in parts]


def _results(transcript: Transcript) -> list[_Trim]:
    positions = transcript.trimmable_results()
    return [_Trim("tool results", position, partial(transcript.trim_result, position)) for position in positions]


def _opaque_bodies(transcript: Transcript) -> list[_Trim]:
    positions = transcript.trimmable_opaque_bodies()
    return [_Trim("opaque bodies", position, partial(transcript.trim_opaque_body, position)) for position in positions]


def _told(left_out: Counter[str]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in left_out.items())


def _weigh_message(message: PromptMessage) -> Weight:
    tokens = 0
    if isinstance(message.content, str):
        tokens = estimate_tokens(message.content)
    for part in message.content if isinstance(message.content, list) else ():
        is_medium = isinstance(part, MultiModalPromptMessageContent)
        tokens += _TOKENS_OF_A_MEDIUM if is_medium else estimate_tokens(part.data)
        tokens += _tokens_of_opaque_body(part.opaque_body)
    if isinstance(message, AssistantPromptMessage):
        tokens += _tokens_of_opaque_body(message.opaque_body)
        tokens += sum(estimate_tokens(call.function.name + call.function.arguments) for call in message.tool_calls)
    # Longer than the SDK's line, since it writes no spaces and no escapes beyond these; never shorter.
    return Weight(tokens, len(message.model_dump_json().encode()) + 2)


def _tokens_of_opaque_body(opaque_body: Any) -> int:  # noqa: ANN401 - the provider's
    """As if it were text: a provider counts the reasoning that it unpacks from it."""
    return 0 if opaque_body is None else estimate_tokens(to_json(opaque_body).decode())
