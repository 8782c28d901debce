"""Scripted runs of a strategy, which are recorded with the code of a release and repeated with later versions.

tests/releases/scenarios.yaml describes the runs. The outputs are the values that later nodes of a saved app read, and
they show whether the settings of a saved node still mean the same.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from devhost import FunctionTool, Host, ScriptedModel
from devhost.files import LocalFile

RELEASES = Path(__file__).resolve().parent.parent / "tests" / "releases"
CALL_SECONDS = 0.02
"""Seconds that a tool takes, so that parallel calls overlap."""

type Json = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """A node's settings, the conversation before the run, and the answers of model and tools."""

    name: str
    turns: Sequence[Json]
    settings: Mapping[str, Any] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)
    """The text that a tool returns, by the name of the tool."""
    broken_tools: Mapping[str, str] = field(default_factory=dict)
    """The message of the exception that a tool raises, by the name of the tool."""
    history: Sequence[Json] = ()
    in_prompt: Sequence[str] = ()
    not_in_prompt: Sequence[str] = ()


@dataclass(frozen=True)
class Played:
    """One run of a scenario."""

    outputs: Json
    """The outputs for later nodes and users, without times."""
    prompt_faults: Sequence[str]
    """The texts of `in_prompt` that the model did not read, and the texts of `not_in_prompt` that it read."""


def scenarios() -> tuple[Scenario, ...]:
    described = yaml.safe_load((RELEASES / "scenarios.yaml").read_text("utf-8"))
    return tuple(Scenario(**each) for each in described)


def play(host: Host, strategy: str, scenario: Scenario) -> Played:
    letter = LocalFile.read(RELEASES / "letter.txt", host.limits)
    variables = {
        "sys.query": "What is it?",
        "sys.files": [host.server.offer(letter)],
        "start.items": [{"title": "A page", "content": "A fact.", "metadata": {"document_id": "1", "score": 0.5}}],
    }
    model = ScriptedModel.of(scenario.turns)
    gauge = _Gauge()
    tools = [_tool(name, answer, gauge) for name, answer in scenario.tools.items()]
    tools += [_broken_tool(name, message) for name, message in scenario.broken_tools.items()]
    run = host.run(
        strategy,
        {"query": {"variable": "sys.query"}, **scenario.settings},
        model=model,
        tools=tools,
        variables=variables,
        history=scenario.history,
    )
    read = "\n\n".join(message.text for request in model.requests for message in request.prompt_messages)
    outputs = {
        "failed": run.error is not None,
        "text": run.outputs.text,
        "variables": _without_times(dict(run.outputs.variables)),
        "summary": _without_times(_summary(run.outputs.json)),
        "offered": [tool.name for tool in model.requests[0].tools or ()],
        "calls_at_once": gauge.most,
    }
    faults = [text for text in scenario.in_prompt if text not in read]
    faults += [text for text in scenario.not_in_prompt if text in read]
    return Played(outputs, faults)


def recorded_runs(plugin: Path, strategies: Sequence[str]) -> dict[str, dict[str, Json]]:
    """Return the outputs of every scenario with the plugin in a folder, by strategy and scenario.

    Raises:
        ValueError: a prompt does not match its scenario.
    """
    recorded: dict[str, dict[str, Json]] = {strategy: {} for strategy in strategies}
    with Host.start(plugin, installs=True) as host:
        for strategy in strategies:
            for scenario in scenarios():
                played = play(host, strategy, scenario)
                if played.prompt_faults:
                    raise ValueError(f"{strategy}, {scenario.name}: wrong in the prompt: {played.prompt_faults}")
                recorded[strategy][scenario.name] = played.outputs
    return recorded


def _without_times(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a copy without seconds, which differ from run to run."""
    if isinstance(value, dict):
        return {key: _without_times(item) for key, item in value.items() if key != "elapsed_seconds"}
    if isinstance(value, list):
        return [_without_times(item) for item in value]
    return value


def _summary(entries: Sequence[Json]) -> Json:
    """Return the `decision_summary` from the last entry of the output `json`; {} if the run failed."""
    summary: Json = {}
    if entries:
        summary = entries[-1].get("decision_summary", {})
    return summary


class _Gauge:
    """Counts the calls that run at the same time."""

    def __init__(self) -> None:
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()

    def call(self) -> None:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(CALL_SECONDS)
        with self._lock:
            self._now -= 1


def _tool(name: str, answer: str, gauge: _Gauge) -> FunctionTool:
    def called(_arguments: Json) -> str:
        gauge.call()
        return answer

    return FunctionTool(name, {"q": "string"}, called)


def _broken_tool(name: str, message: str) -> FunctionTool:
    def called(_arguments: Json) -> str:
        raise RuntimeError(message)

    return FunctionTool(name, {"q": "string"}, called)
