"""A run as data, and how to play it with any strategy.

In: what the node gives, and what the model and the tools bring. Out: the messages of a strategy, each of them written
as the SDK writes it.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import batched
from typing import Any

from dify_plugin import AgentStrategy
from dify_plugin.entities.agent import AgentInvokeMessage, AgentRuntime
from dify_plugin.entities.invoke_message import InvokeMessage

from benchmarks.answers import Answer, Failure, Json, Script, prepared
from benchmarks.line_host import SESSION, LineHost
from strategies.gpt5_function_calling import GPT5FunctionCallingStrategy
from tests.support.wire import calls, model, parameter, says, text_message, tool

PROSE = "The quick brown fox jumps over the lazy dog, and in the evening it comes back home. "
FEATURES = ("tool-call", "multi-tool-call", "stream-tool-call", "vision")
"""Of the model. The official strategy does not stream without the third."""
SEARCH = {"tools": [tool("search", parameter("q"))]}
ANSWER = prepared(says("Done."))
Agent = GPT5FunctionCallingStrategy


@dataclass(frozen=True)
class Scenario:
    """What the node gives, and what each model call and each tool call brings; the last one of a kind repeats."""

    model: Sequence[Answer | Failure] = (ANSWER,)
    tools: Sequence[Answer | Failure] = ()
    params: Mapping[str, Any] = field(default_factory=lambda: SEARCH)


@dataclass(frozen=True)
class Played:
    """How a run went."""

    text: str
    """What the user reads."""
    failed_with: str = ""
    """The class of the exception that ended it."""
    long_reads: Sequence[tuple[float, float]] = ()
    """When the SDK began and ended to read a long line, in CPU time."""


def parameters_of(scenario: Scenario) -> Json:
    """What the host sends as the strategy's parameters."""
    return {"model": model(features=FEATURES), "query": "?", "instruction": "", "tools": [], **scenario.params}


def messages(
    strategy: type[AgentStrategy], scenario: Scenario, host: LineHost | None = None
) -> Generator[AgentInvokeMessage, None, None]:
    """Run the strategy once and write every message."""
    host = host or LineHost(Script(scenario.model, scenario.tools))
    for message in strategy(AgentRuntime(user_id="user"), host.session()).invoke(parameters_of(scenario)):
        host.session_message(SESSION, host.stream_object(message))
        yield message


def play(scenario: Scenario, strategy: type[AgentStrategy] = Agent) -> Played:
    """Run it to its end, or to the exception that it ends with."""
    host = LineHost(Script(scenario.model, scenario.tools))
    texts: list[str] = []
    try:
        for message in messages(strategy, scenario, host):
            body = message.message
            texts += [body.text] if isinstance(body, InvokeMessage.TextMessage) else []
    except Exception as failure:  # noqa: BLE001 - some cases are failures
        return Played("".join(texts), type(failure).__name__, host.long_reads)
    return Played("".join(texts), long_reads=host.long_reads)


def filled(pattern: str, size: int) -> str:
    """The pattern, repeated up to this size."""
    return (pattern * (size // len(pattern) + 1))[:size]


def calling(count: int = 1) -> list[Any]:
    """A turn of so many calls of the tool."""
    return calls(*(("search", {"q": str(number)}) for number in range(count)))


def rounds(count: int, result: str, words: int = 25) -> Scenario:
    """So many rounds: each but the last says so many chunks and calls the tool with new arguments; the last answers."""
    turns = [
        prepared([*chunks(words)[:-1], *calls(("search", {"q": f"question {number}"}))]) for number in range(count - 1)
    ]
    return Scenario([*turns, ANSWER], [prepared([text_message(result)])], {**SEARCH, "maximum_iterations": count})


def chunks(count: int) -> list[Any]:
    """An answer of so many small chunks."""
    return says(*("".join(part) for part in batched(filled(PROSE, count * 4), 4)))
