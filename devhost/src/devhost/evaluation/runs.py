"""The planned runs of an evaluation, side by side, each with its judge."""

import queue
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

from devhost.conversation import Conversation, CountingModel, play
from devhost.errors import PluginLostError
from devhost.evaluation.checks import Observed, judged
from devhost.evaluation.expected import Check
from devhost.evaluation.results import Result, ResultsFile
from devhost.evaluation.suite import Planned
from devhost.host.host import Host
from devhost.models.backend import ModelBackend
from devhost.models.scripted.model import ScriptedModel
from devhost.models.scripted.script import Turn
from devhost.protocol.wire import JsonObject


class Models(Protocol):
    """Which model answers, and which one judges."""

    def answering(self, planned: Planned, question: str, *, asked: int) -> CountingModel:
        """`asked`: how often the conversation had this question before."""
        ...

    def judging(self) -> ModelBackend | None:
        """None if the judge is scripted."""
        ...


def run_once(host: Host, planned: Planned, models: Models) -> Result:
    conversation = Conversation(planned.scenario, conversation_id=str(uuid.uuid4()), raw=False, strict=False)

    def choose(question: str, *, asked: int) -> CountingModel:
        return models.answering(planned, question, asked=asked)

    scripted = choose(planned.question, asked=0).description.scripted
    follow_ups = planned.scenario.follow_ups(planned.question) if scripted else ()
    turns = play(conversation, planned.question, follow_ups, choose)
    observed = Observed.of([turn.run for turn in turns(host, _ignore)])
    found = [*planned.case.expect.checks(observed), *_judgement(planned, observed, models.judging)]
    if planned.strict:
        found.append(Check("rules of Dify", "none is broken", ", ".join(observed.findings)))
    return Result(
        key=planned.key,
        case=planned.case.name,
        column=planned.column.name,
        repeat=planned.repeat,
        case_digest=planned.case_digest,
        observed=observed,
        checks=tuple(found),
    )


def _judgement(planned: Planned, observed: Observed, model: Callable[[], ModelBackend | None]) -> list[Check]:
    """A run that failed has no answer to judge."""
    expected = planned.case.expect.judge
    if expected is None or observed.error is not None:
        return []
    judge = model() or _scripted_judge(expected.turns or ())
    return [judged(judge, expected.rubric, planned.question, observed.text)]


def _scripted_judge(turns: tuple[Turn, ...]) -> ModelBackend:
    return ScriptedModel(turns, place="the case")


def _ignore(_message: JsonObject) -> None:
    pass


# Runs side by side, each in a thread of its own.
#
# Threads that still work when the caller stops reading, at Ctrl-C, end with the process: nothing waits for them.


def evaluate(
    host: Host, planned: Sequence[Planned], models: Models, results: ResultsFile, jobs: int
) -> Iterator[Result]:
    """Runs what has no result yet, and writes each result before it is handed out.

    When the plugin ends, so does the evaluation. The run that it ended in has failed, and is not run again.
    """
    left = [each for each in planned if each.key not in results.done]
    for result in side_by_side(left, partial(run_once, host, models=models), jobs):
        results.add(result)
        yield result
        if (result.observed.error or "").startswith(PluginLostError.__name__):
            raise PluginLostError(
                f"the plugin ended during case {result.case!r}, column {result.column!r}: {result.observed.error}. "
                "The same command goes on with the other runs; --jobs 1 runs one at a time"
            )


def side_by_side[P, R](planned: Sequence[P], run: Callable[[P], R], jobs: int) -> Iterator[R]:
    """Raises what `run` raises; no further run begins then."""
    waiting: queue.SimpleQueue[P] = queue.SimpleQueue()
    for each in planned:
        waiting.put(each)
    ended: queue.SimpleQueue[R | _Raised] = queue.SimpleQueue()
    given_up = threading.Event()

    def work() -> None:
        while not given_up.is_set():
            try:
                each = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                ended.put(run(each))
            except Exception as error:  # noqa: BLE001 - raised in the caller's thread
                ended.put(_Raised(error))

    for _ in range(min(jobs, len(planned))):
        threading.Thread(target=work, daemon=True).start()
    try:
        for _ in planned:
            result = ended.get()
            if isinstance(result, _Raised):
                raise result.error
            yield result
    finally:
        given_up.set()


class _Raised:
    def __init__(self, error: Exception) -> None:
        self.error = error
