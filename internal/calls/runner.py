"""Several jobs at once, their events as they happen."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import gevent
from dify_plugin.entities.tool import ToolProviderType
from gevent.lock import BoundedSemaphore
from gevent.queue import Empty, Queue

from internal.budget import Budget
from internal.call import CallStatus, EndedCall, ValidCall
from internal.calls.judging import call_parameters, rounded_arguments
from internal.calls.output import NOT_BEGUN, TIMED_OUT, TOOL_FAILED, ToolFailure, ToolOutput
from internal.clock import Clock, Deadline, in_turns
from internal.errors import OurWords
from internal.events import Event, FileForwarded, Noted, ToolFinished, ToolStarted
from internal.host.failures import HostFailure, is_transient
from internal.host.session import DeadlinePassed, HostSession, RequestTooLarge, new_request_id
from internal.node.tools import Toolbox
from internal.text.secrets import KnownSecrets
from prompt import template

# Several jobs at once, their events as they happen.
#
# Each job has a greenlet, the queue is unbounded, and jobs that are left at the end are killed: with the SDK,
# shutting down a pool waits for a silent tool, and a bounded queue hangs.

GRACE_SECONDS = 1.0
"""How long after the deadline a job may take to return what it has."""
_KILL_SECONDS = 2

type Post = Callable[[Event], None]
type Job[T] = Callable[[Post], T]


@dataclass(frozen=True)
class _Result[T]:
    position: int
    value: T


def run_side_by_side[T](jobs: Sequence[Job[T]], deadline: Deadline) -> Generator[Event, None, dict[int, T]]:
    """Run the jobs. A job must not raise: its exception would be lost."""
    inbox: Queue[Event | _Result[T]] = Queue()
    results: dict[int, T] = {}

    def work(position: int, job: Job[T]) -> None:
        inbox.put(_Result(position, job(inbox.put)))

    workers = [gevent.spawn(work, position, job) for position, job in enumerate(jobs)]
    try:
        while len(results) < len(jobs):
            try:
                item = inbox.get(timeout=deadline.left() + GRACE_SECONDS)
            except Empty:
                break
            if isinstance(item, _Result):
                results[item.position] = item.value
            else:
                yield item
    finally:
        if left := [worker for worker in workers if not worker.ready()]:
            gevent.killall(left, block=False)
            # A run that is not read to its end may be collected while gevent's hub runs, and the hub must not wait.
            if gevent.getcurrent() is not gevent.get_hub():
                gevent.joinall(left, timeout=_KILL_SECONDS)
    return results


def changed[T](events: Generator[Event, None, T], change: Callable[[Event], Event]) -> Generator[Event, None, T]:
    """A generator's events, each as ``change`` makes it, and its result."""
    while True:
        try:
            event = next(events)
        except StopIteration as end:
            result: T = end.value
            return result
        yield change(event)


def drain[T](events: Generator[Event, None, T], post: Post) -> T:
    """Post a generator's events, and return its result."""
    while True:
        try:
            event = next(events)
        except StopIteration as end:
            result: T = end.value
            return result
        post(event)


# Valid calls of one turn, run side by side.
#
# A call that is still running at the deadline is given up and counts as timed out. No call is repeated, whatever its
# error says: that is the tool's own word, and it may have acted before it failed.

TOO_LARGE = f"{TOOL_FAILED}: invalid input: too large; all parameters of a call together may have 4 MiB"


@dataclass
class _Job:
    """One call on its way to the host."""

    key: str
    """Its row in the log."""
    call: ValidCall
    deadline: Deadline
    request_id: str = field(default_factory=new_request_id)
    was_sent: bool = False


@dataclass(frozen=True)
class ToolRunner:
    """Runs the tool calls of one run; all its loops share ``slots``, so that the limit holds over all of them."""

    host: HostSession
    toolbox: Toolbox
    clock: Clock
    slots: BoundedSemaphore
    secrets: KnownSecrets
    budget: Budget
    """Has counted the calls; those that are not sent are given back."""
    keeps_json: bool = False
    """Whether what tools send as JSON is kept with their results."""

    def run(
        self, calls: Mapping[str, ValidCall], deadline: Deadline
    ) -> Generator[Event, None, Mapping[str, EndedCall]]:
        """Run calls, each under its key in the log; one that has not ended at the deadline counts as timed out."""
        in_log: set[str] = set()

        def note_start(event: Event) -> Event:
            in_log.update([event.key] if isinstance(event, ToolStarted) else [])
            return event

        started = self.clock.now()
        jobs = [_Job(key, call, deadline) for key, call in calls.items()]
        results = yield from changed(run_side_by_side([partial(self._work, job) for job in jobs], deadline), note_start)
        self.budget.give_back(sum(not job.was_sent for job in jobs))
        ended: dict[str, EndedCall] = {}
        for position, job in enumerate(jobs):
            if position in results:
                ended[job.key] = results[position]
                continue
            if job.key not in in_log:
                yield ToolStarted(job.key, job.call)
            late, elapsed = TIMED_OUT, self.clock.now() - started
            ended[job.key] = EndedCall(job.call, CallStatus.ERROR, late.told, late.message, elapsed, transient=True)
            yield ToolFinished(job.key, ended[job.key])
        return ended

    def _work(self, job: _Job, post: Post) -> EndedCall:
        """One call from its start in the log to its end; it never raises."""
        key, call = job.key, job.call
        with self.slots:
            post(ToolStarted(key, call, job.request_id))
            started = self.clock.now()
            try:
                ended = self._execute(job, post)
            except RequestTooLarge as reason:
                job.was_sent = False
                ended = EndedCall(call, CallStatus.REFUSED, TOO_LARGE, f"not run: {reason}")
            except Exception as defect:  # noqa: BLE001 - a result that cannot be read costs this call, not the run
                error = f"what the tool said could not be read ({type(defect).__name__})"
                ended = EndedCall(call, CallStatus.ERROR, TOOL_FAILED, error)
            ended = replace(ended, elapsed_seconds=self.clock.now() - started)
            post(ToolFinished(key, ended))
            return ended

    def _execute(self, job: _Job, post: Post) -> EndedCall:
        """Call the tool and read what it says."""
        key, call = job.key, job.call
        for name in rounded_arguments(call.tool, call.arguments):
            rounds = OurWords(f"the host rounds integers above 2^53 within the argument {name!r}")
            post(Noted(rounds.of(call.call.name), key))
        # Text blocks of an MCP server are a text each; other tools stream one text in pieces.
        between = "\n" if call.tool.provider_type is ToolProviderType.MCP else ""
        output = ToolOutput(self.secrets, between, keeps_json=self.keeps_json)
        failure = self._invoke(job, output, post)
        said = output.rendered()
        for note in output.notes:
            post(Noted(note.of(call.call.name), key))
        text = "\n\n".join(part for part in (failure.told if failure else "", said.text) if part)
        return EndedCall(
            judged=call,
            status=CallStatus.ERROR if failure else CallStatus.OK,
            tool_response=text if text.strip() else template.NO_OUTPUT,
            missing=said.missing,
            error=failure.message if failure else None,
            transient=failure is not None and is_transient(failure.kind),
            sources=tuple(output.sources),
            sent_json=tuple(output.sent_json),
        )

    def _invoke(self, job: _Job, output: ToolOutput, post: Post) -> ToolFailure | None:
        """Call the tool, and read on until it ends or fails."""
        if job.deadline.has_passed():
            return NOT_BEGUN
        tool, job.was_sent = job.call.tool, True
        parameters = call_parameters(tool, job.call.arguments, self.toolbox)
        try:
            for message in in_turns(self.host.invoke_tool(tool, parameters, job.request_id, job.deadline.left)):
                if file := output.take(message):
                    post(FileForwarded(file))
        except DeadlinePassed:
            return TIMED_OUT
        except HostFailure as failure:
            return ToolFailure.of(failure, self.secrets)
        return None
