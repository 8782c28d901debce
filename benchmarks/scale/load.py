"""Runs many sessions at once, and measures when their first word arrives and how they end."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from time import perf_counter

import gevent

from benchmarks.answers import Json
from benchmarks.scale.daemon import Daemon, DaemonError, Strategy
from benchmarks.scale.inner_api import ASKED
from tests.support.wire import model, parameter, tool

FEATURES = ("tool-call", "multi-tool-call", "stream-tool-call")
"""Features of the model. The official strategy streams only if the last one is present."""


@dataclass(frozen=True)
class Ended:
    """The end of a run. Times are seconds since its start."""

    started: float
    text: str = ""
    first_word: float | None = None
    whole: float = 0.0
    error: str = ""
    state: str = ""
    """The state to pass to the next run of the conversation."""


def asking(question: str, **more: object) -> Json:
    """Return the parameters of a run, which both strategies understand."""
    return {
        "model": model(features=FEATURES),
        "tools": [tool("search", parameter(ASKED))],
        "instruction": "Be brief.",
        "query": question,
        "maximum_iterations": 4,
        **more,
    }


def timed(daemon: Daemon, strategy: Strategy, parameters: Json) -> Ended:
    """Run a strategy once and return how it ended."""
    began = perf_counter()
    run = Ended(began)
    try:
        for message in daemon.run(strategy, parameters):
            body = message["message"]
            if message["type"] == "text":
                first_word = run.first_word
                if first_word is None and body["text"].strip():
                    first_word = perf_counter() - began
                run = replace(run, text=run.text + body["text"], first_word=first_word)
            elif message["type"] == "variable" and body["variable_name"] == "state":
                run = replace(run, state=body["variable_value"])
    except DaemonError as failure:
        run = replace(run, error=str(failure))
    return replace(run, whole=perf_counter() - began)


def at_once(daemons: Sequence[Daemon], strategy: Strategy, questions: Sequence[str], spread: float) -> list[Ended]:
    """Run a strategy once for each question. The runs start evenly over `spread` seconds, at the daemons in turn."""
    ended: list[Ended] = []

    def run(daemon: Daemon, question: str) -> None:
        ended.append(timed(daemon, strategy, asking(question)))

    runs = [
        gevent.spawn_later(spread * number / len(questions), run, daemon, question)
        for number, (daemon, question) in enumerate(zip(cycle(daemons), questions, strict=False))
    ]
    gevent.joinall(runs, raise_error=True)
    return ended


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that is at least as large as this share (0 to 1) of all values."""
    ordered = sorted(values)
    position = max(0, -(-len(ordered) * share // 1) - 1)
    return ordered[int(position)]
