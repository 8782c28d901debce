"""A run as data, and functions that run it with any strategy in this process.

Each message of the strategy is serialized as the SDK does it.
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
"""Features of the model. The official strategy does not stream without the third one."""
SEARCH = {"tools": [tool("search", parameter("q"))]}
ANSWER = prepared(says("Done."))
Agent = GPT5FunctionCallingStrategy


@dataclass(frozen=True)
class Scenario:
    """The node's parameters, and the answers to model calls and tool calls. The last answer of each kind repeats."""

    model: Sequence[Answer | Failure] = (ANSWER,)
    tools: Sequence[Answer | Failure] = ()
    params: Mapping[str, Any] = field(default_factory=lambda: SEARCH)


@dataclass(frozen=True)
class Played:
    """The result of a run."""

    text: str
    """The text that the user reads."""
    failed_with: str = ""
    """The class of the exception that ended the run."""
    long_reads: Sequence[tuple[float, float]] = ()
    """Start and end in CPU time of each long line that the SDK parsed."""


def parameters_of(scenario: Scenario) -> Json:
    """Return the strategy's parameters as the host sends them."""
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
    """Run the scenario until it ends or raises an exception."""
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
    """Repeat the pattern up to this size."""
    return (pattern * (size // len(pattern) + 1))[:size]


def calling(count: int = 1) -> list[Any]:
    """Return a turn with this many calls of the tool."""
    return calls(*(("search", {"q": str(number)}) for number in range(count)))


def rounds(count: int, result: str, words: int = 25) -> Scenario:
    """Return a run with ``count`` rounds.

    Each round has ``words`` chunks and calls the tool with new arguments, except the last round, which answers.
    """
    turns = [
        prepared([*chunks(words)[:-1], *calls(("search", {"q": f"question {number}"}))]) for number in range(count - 1)
    ]
    return Scenario([*turns, ANSWER], [prepared([text_message(result)])], {**SEARCH, "maximum_iterations": count})


def chunks(count: int) -> list[Any]:
    """Return an answer of this many small chunks."""
    return says(*("".join(part) for part in batched(filled(PROSE, count * 4), 4)))
