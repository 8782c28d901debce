"""Runs side by side, each in a thread of its own.

In: planned runs and what runs one. Out: the results as they come. Threads that still work when the caller stops
reading, at Ctrl-C, end with the process: nothing waits for them.
"""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from devhost.errors import PluginLostError
from devhost.evaluation.one_run import Models, run_once
from devhost.evaluation.plan import Planned
from devhost.evaluation.results import Result, ResultsFile
from devhost.host.host import Host


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
