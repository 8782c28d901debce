"""A model that streams answers from a script."""

import threading
import time
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import Self

from devhost.errors import RefusedCallError
from devhost.models import backend
from devhost.models.backend import ModelRequest
from devhost.models.scripted.script import WRITTEN_HERE, ScriptedModelCard, ScriptedTurn, read_turns
from devhost.protocol.wire import JsonObject
from devhost.text import rewritten
from devhost.words import in_a_line


def turn_chunks(turn: ScriptedTurn, model: str, prompt_tokens: int) -> Iterator[JsonObject]:
    """Yields the thought and the text in pieces, then a last chunk with the tool calls, usage and finish reason.

    The usage has all fields of LLMUsage; prices are strings, because Decimals are serialized as strings. Missing token
    counts are estimated; the caller estimates the prompt's.
    """
    texts = list(_texts(turn))
    usage = None
    for piece in texts:
        yield backend.chunk(model, text=piece)
    calls = [backend.tool_call(call.id, call.name, call.arguments_text) for call in turn.tool_calls]
    if turn.usage is not None:
        said = "".join((*texts, *(text for call in calls for text in call["function"].values())))
        estimated = {"prompt_tokens": prompt_tokens, "completion_tokens": _tokens(said)}
        usage = {"latency": round(turn.delay * (len(texts) + 1), 3), **estimated}
        usage |= turn.usage.model_dump(exclude_none=True)
        usage = {"total_tokens": usage["prompt_tokens"] + usage["completion_tokens"], **usage}
    finish_reason = turn.finish_reason or ("tool_calls" if calls else "stop")
    yield backend.chunk(model, tool_calls=calls, usage=usage, finish_reason=finish_reason)


def _texts(turn: ScriptedTurn) -> Iterator[str]:
    if turn.thought:
        yield from _pieces(f"<think>\n{turn.thought}\n</think>\n\n", turn.chunk_size)
    yield from _pieces(turn.text, turn.chunk_size) if isinstance(turn.text, str) else turn.text


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _tokens(text: str) -> int:
    return max(1, len(text) // backend.CHARACTERS_PER_TOKEN)


class ScriptedModel:
    """A `ModelBackend` that answers each call with one turn of a script.

    A call that matches no turn fails with an InvokeBadRequestError. `requests` keeps every request, in order.
    """

    def __init__(
        self,
        turns: Sequence[ScriptedTurn],
        query: str = "",
        card: ScriptedModelCard | None = None,
        *,
        place: str = WRITTEN_HERE,
        standing: ScriptedTurn | None = None,
    ) -> None:
        """`place` says where the answers are written. `standing` answers every call that matches no turn."""
        card = card or ScriptedModelCard()
        self.description = backend.ModelDescription(
            provider="devhost/scripted/scripted",
            name=card.name,
            notice=f"scripted model: the answers are written in {place}, no provider is called",
            scripted=True,
            features=card.features,
            context_size=card.context_size,
            has_price=any(turn.usage is not None and turn.usage.has_price for turn in turns),
        )
        self.requests: list[ModelRequest] = []
        self._query = query
        self._unused = list(turns)
        self._place = place
        self._standing = standing
        self._longest = 0
        """The estimated number of tokens of the longest prompt."""
        self._choosing = threading.Lock()

    @classmethod
    def of(cls, turns: Sequence[JsonObject], *, query: str = "") -> Self:
        """Creates a model from plain data in the form of script.yaml's turns."""
        return cls(read_turns(list(turns)), query)

    @property
    def remaining(self) -> int:
        """The number of turns that no call has used."""
        return len(self._unused)

    @property
    def afterwards(self) -> str:
        """A notice for the person at the terminal after the run; empty if there is nothing to report."""
        said = ""
        most = self._longest
        window = self.description.context_size
        if self.remaining and self._standing is None:  # with a standing answer, unused turns are normal
            said = f"The script has turns that no model call asked for: {self.remaining}. "
        if window is not None and most > window:
            said += (
                f"A prompt of about {most:,} tokens is longer than the context of {window:,}: a provider refuses it."
            )
        return said.strip()

    def spent(self) -> JsonObject | None:
        """Returns `None`, because no provider counts tokens for a scripted model."""
        return None

    def invoke(self, request: ModelRequest, /) -> Iterator[JsonObject]:
        tokens = _tokens(request.model_dump_json(include={"prompt_messages", "tools"}))
        turn = self._take_turn(request, tokens) or self._standing
        if turn is None:
            answer = self.unwritten(request)
        else:
            answer = _said(turn, turn_chunks(turn, request.model, tokens))
        yield from answer if turn is None or turn.api_fails is None else turn.api_fails.through(answer)

    def unwritten(self, _request: ModelRequest, /) -> Iterator[JsonObject]:
        """Answers a call that matches no turn: raises `ModelCallError`. Subclasses may override this."""
        left = ""
        if self._unused:
            left = f"; its next turn waits for {in_a_line(_conditions(self._unused[0]))}"
        raise backend.ModelCallError(
            "InvokeBadRequestError",
            f"the script has no turn for model call {len(self.requests)}{left}. Add one to its turns: they are "
            f"written in {self._place}.",
        )

    def _take_turn(self, request: ModelRequest, tokens: int) -> ScriptedTurn | None:
        results = tool_results(request)
        with self._choosing:
            self.requests.append(request)
            self._longest = max(self._longest, tokens)
            for position, turn in enumerate(self._unused):
                filled = fill(turn, self._query, results)
                if _fits(filled, request, results):
                    del self._unused[position]
                    return filled
        return None


def _said(turn: ScriptedTurn, chunks: Iterator[JsonObject]) -> Iterator[JsonObject]:
    """Yields the chunks with the turn's delay, and raises the turn's error at its place."""
    for piece in islice(chunks, None if turn.error is None else turn.error.after_chunks):
        time.sleep(turn.delay)
        yield piece
    if turn.error is not None and turn.error.words:
        raise RefusedCallError(turn.error.words)
    if turn.error is not None:
        raise backend.ModelCallError(turn.error.type, turn.error.message)


def _fits(turn: ScriptedTurn, request: ModelRequest, results: str) -> bool:
    messages = request.prompt_messages
    said = {
        "when": messages[-1].text if messages else "",
        "when_asked": "\n".join(message.text for message in messages if isinstance(message, backend.UserMessage)),
        "when_system": "\n".join(message.text for message in messages if isinstance(message, backend.SystemMessage)),
        "when_result": results,
    }
    return all(words in said[name] for name, words in _conditions(turn).items())


def _conditions(turn: ScriptedTurn) -> dict[str, str]:
    return turn.model_dump(include={"when", "when_asked", "when_system", "when_result"}, exclude_none=True)


def tool_results(request: ModelRequest) -> str:
    """Returns the texts of all tool messages since the last assistant message, joined by blank lines."""
    latest = takewhile(lambda each: not isinstance(each, backend.AssistantMessage), reversed(request.prompt_messages))
    results = [message.text for message in latest if isinstance(message, backend.ToolMessage)]
    return "\n\n".join(reversed(results))


def fill(turn: ScriptedTurn, query: str, results: str) -> ScriptedTurn:
    """Returns the turn with `{{query}}` and `{{tool_results}}` replaced in every string."""

    def filled(text: str) -> str:
        # The results are inserted last, so that a tool's text is never searched for placeholders.
        return results.join(part.replace("{{query}}", query) for part in text.split("{{tool_results}}"))

    return ScriptedTurn.model_validate(rewritten(turn.model_dump(exclude_unset=True), filled))
