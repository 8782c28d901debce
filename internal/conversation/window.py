"""A request that fits: into the model's context window, and into the one line that carries it to the host.

In: a transcript and the tools beside it. Out: the transcript, shortened where it must be: files, tool results, opaque
bodies, the oldest of each first, and then whole turns before the question.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat

from dify_plugin.entities.model.message import PromptMessageTool

from internal.conversation.shortening import SHORTENINGS
from internal.conversation.transcript import Transcript
from internal.conversation.weight import Weight, weight_of_tools
from internal.errors import PromptTooLarge
from internal.host.request import MAX_REQUEST_BYTES
from internal.text.fairness import in_turns
from internal.text.notes import OurWords

_ENVELOPE = Weight(size=4096)
"""Bytes around the messages and tools of a request: model config, session and request ids."""
_KEPT_SHARE = 0.75
"""A prompt that is too long is shortened to this share, so that it need not be done again in the very next round."""


@dataclass(frozen=True)
class Window:
    """How much may go into the requests of one run."""

    tools: Sequence[PromptMessageTool]
    context_size: int | None = None
    max_tokens: int = 0
    longest_request: int = MAX_REQUEST_BYTES

    @property
    def prompt_tokens(self) -> int | None:
        """Tokens that a prompt may have; None when the context size is unknown."""
        if self.context_size is None:
            return None
        return self.context_size - min(self.max_tokens, self.context_size // 2)

    def fit(self, transcript: Transcript) -> Iterator[OurWords]:
        """Shorten what does not fit; yields a sentence for the log when something was left out.

        Raises:
            PromptTooLarge: nothing is left to shorten, and the request would still kill the plugin.
        """
        yield from self._fit_size(transcript)
        limit = self.prompt_tokens
        if limit is not None and self.weigh(transcript).tokens > limit:
            yield from self._fit_tokens(transcript, int(limit * _KEPT_SHARE))

    def shrink(self, transcript: Transcript) -> Iterator[OurWords]:
        """Shorten after the provider said that the prompt is too long; yields nothing when there was nothing to do."""
        yield from self._fit_tokens(transcript, int(self.weigh(transcript).tokens * _KEPT_SHARE))

    def weigh(self, transcript: Transcript) -> Weight:
        """The weight of a request."""
        return transcript.weight + self._weight_beside

    @cached_property
    def _weight_beside(self) -> Weight:
        return weight_of_tools(self.tools) + _ENVELOPE

    def _fit_tokens(self, transcript: Transcript, limit: int) -> Iterator[OurWords]:
        kinds = ("tool results", "opaque bodies")
        if left_out := _shorten(transcript, kinds, lambda: self.weigh(transcript).tokens <= limit):
            yield OurWords(f"the prompt was too long for the model; left out, the oldest first: {left_out}")

    def _fit_size(self, transcript: Transcript) -> Iterator[OurWords]:
        left_out = _shorten(transcript, SHORTENINGS, lambda: self.weigh(transcript).size <= self.longest_request)
        size = self.weigh(transcript).size
        if size > self.longest_request:
            raise PromptTooLarge(
                f"the prompt has {size:,} bytes without images, tool results and earlier turns; at most "
                f"{self.longest_request:,} reach the host. Shorten the instruction, query, context or state."
            )
        if left_out:
            yield OurWords(f"the request was too large for the host; left out, the oldest first: {left_out}")


def _shorten(transcript: Transcript, kinds: Iterable[str], is_enough: Callable[[], bool]) -> str:
    """Leave out things of one kind after the other, then whole turns, until it is enough; how many of each."""
    left_out = {kind: transcript.shorten(SHORTENINGS[kind], is_enough) for kind in kinds}
    left_out["earlier turns"] = 0
    for _ in in_turns(repeat(None)):
        if is_enough() or not transcript.drop_oldest_turn():
            break
        left_out["earlier turns"] += 1
    return ", ".join(f"{number} {kind}" for kind, number in left_out.items() if number)
