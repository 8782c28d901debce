"""Jobs side by side, and the valid calls of one turn among them.

A call that is still running at the deadline is given up and counts as timed out. No call is repeated, whatever its
error says: that is the tool's own word, and it may have acted before it failed.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import gevent
from dify_plugin.entities.tool import ToolProviderType
from gevent.lock import BoundedSemaphore
from gevent.queue import Empty, Queue
from pydantic_core import to_json

from internal.budget import Budget
from internal.call import CallStatus, EndedCall, ValidCall
from internal.calls.judging import call_parameters, rounded_arguments
from internal.calls.output import NOT_BEGUN, TIMED_OUT, TOOL_FAILED, ToolFailure, ToolOutput
from internal.clock import Clock, Deadline, in_turns
from internal.errors import OurWords, Sentence
from internal.events import Event, FileForwarded, Noted, ToolFinished, ToolStarted
from internal.host.failures import HostFailure
from internal.host.session import MAX_REQUEST_BYTES, DeadlinePassed, HostSession, new_request_id
from internal.node.tools import Toolbox
from internal.sources import Source
from internal.text.secrets import KnownSecrets
from internal.text.texts import Excerpt, cut_to_size
from prompt import template

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
    """Run the jobs. A job must not raise: its exception would be lost.

    Each has a greenlet, the queue is unbounded, and jobs that are left at the end are killed: with the SDK, shutting
    down a pool waits for a silent tool, and a bounded queue hangs (docs/host-facts.md, "Many runs in one process").
    """
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


def drain[T](events: Generator[Event, None, T], post: Post) -> T:
    """Post a generator's events, and return its result."""
    while True:
        try:
            event = next(events)
        except StopIteration as end:
            result: T = end.value
            return result
        post(event)


class Answer(NamedTuple):
    """A call that has ended, and its whole result: the round cuts it, once the sources have numbers."""

    ended: EndedCall
    whole: Excerpt


@dataclass
class _Call:
    """One call on its way to the host."""

    key: str
    """Its row in the log."""
    valid: ValidCall
    deadline: Deadline
    started: float
    is_in_log: bool = False
    request_id: str = field(default_factory=new_request_id)


@dataclass(frozen=True)
class ToolRunner:
    """Runs the tool calls of one run; all its loops share ``slots``, so that the limit holds over all of them."""

    host: HostSession
    toolbox: Toolbox
    clock: Clock
    slots: BoundedSemaphore
    secrets: KnownSecrets
    budget: Budget
    result_limit: int
    """Characters of one result that anybody reads."""
    keeps_json: bool = False
    """Whether what tools send as JSON is kept with their results."""

    def run(self, calls: Mapping[str, ValidCall], deadline: Deadline) -> Generator[Event, None, dict[str, Answer]]:
        """Run calls, each under its key in the log; one that has not ended at the deadline counts as timed out."""
        jobs = [_Call(key, call, deadline, self.clock.now()) for key, call in calls.items()]
        results = yield from run_side_by_side([partial(self._work, job) for job in jobs], deadline)
        answers: dict[str, Answer] = {}
        for position, job in enumerate(jobs):
            answers[job.key] = results.get(position) or self._answer(job, Excerpt(""), TIMED_OUT)
            if not job.is_in_log:
                yield ToolStarted(job.key, job.valid)
            if position not in results or not job.is_in_log:
                yield ToolFinished(job.key, answers[job.key].ended)
        return answers

    def _work(self, job: _Call, post: Post) -> Answer:
        """One call from its start in the log to its end; it never raises. One that comes too late is not in the log."""
        with self.slots:
            if job.deadline.has_passed():
                return self._answer(job, Excerpt(""), NOT_BEGUN)
            job.started, job.is_in_log = self.clock.now(), True
            parameters = call_parameters(job.valid.tool, job.valid.arguments, self.toolbox)
            refusal = self._refusal(parameters)
            post(ToolStarted(job.key, job.valid, None if refusal else job.request_id))
            try:
                answer = self._answer(job, Excerpt(""), refusal) if refusal else self._execute(job, parameters, post)
            except Exception as defect:  # noqa: BLE001 - a result that cannot be read costs this call, not the run
                error = f"what the tool said could not be read ({type(defect).__name__})"
                answer = self._answer(job, Excerpt(""), ToolFailure(TOOL_FAILED, error))
            post(ToolFinished(job.key, answer.ended))
            return answer

    def _refusal(self, parameters: Mapping[str, Any]) -> ToolFailure | None:
        """Why a call is not sent; one that is sent counts in the budget."""
        size = len(to_json(parameters))
        if size > MAX_REQUEST_BYTES:
            error = f"not run: the parameters have {size:,} bytes; at most {MAX_REQUEST_BYTES:,} reach the host"
            told = f"{TOOL_FAILED}: invalid input: too large; all parameters of a call together may have 4 MiB"
            return ToolFailure(told, error, status=CallStatus.REFUSED)
        refusal = self.budget.take_call()
        return ToolFailure(refusal, OurWords("not run"), status=CallStatus.REFUSED) if refusal else None

    def _execute(self, job: _Call, parameters: Mapping[str, Any], post: Post) -> Answer:
        """Call the tool and read what it says, on until it ends or fails."""
        tool = job.valid.tool

        def note(*notes: Sentence) -> None:
            for each in notes:
                post(Noted(each.of(job.valid.call.name), job.key))

        for name in rounded_arguments(tool, job.valid.arguments):
            note(OurWords(f"the host rounds integers above 2^53 within the argument {name!r}"))
        # Text blocks of an MCP server are a text each; other tools stream one text in pieces.
        between = "\n" if tool.provider_type is ToolProviderType.MCP else ""
        output = ToolOutput(self.secrets, between, keeps_json=self.keeps_json)
        failure: ToolFailure | None = None
        try:
            for message in in_turns(self.host.invoke_tool(tool, parameters, job.request_id, job.deadline.left)):
                if file := output.take(message):
                    post(FileForwarded(file))
        except DeadlinePassed:
            failure = TIMED_OUT
        except HostFailure as reason:
            failure = ToolFailure.of(reason, self.secrets)
        said = output.rendered()
        note(*output.notes)
        return self._answer(job, said, failure, tuple(output.sources), tuple(output.sent_json))

    def _answer(
        self,
        job: _Call,
        said: Excerpt,
        failure: ToolFailure | None,
        sources: tuple[Source, ...] = (),
        sent_json: tuple[str, ...] = (),
    ) -> Answer:
        """The end of a call: why it failed, then what it had said."""
        text = "\n\n".join(part for part in (failure.told if failure else "", said.text) if part)
        whole = Excerpt(text if text.strip() else template.NO_OUTPUT, said.missing)
        ended = EndedCall(
            judged=job.valid,
            status=failure.status if failure else CallStatus.OK,
            tool_response=cut_to_size(whole.text, self.result_limit, whole.missing),
            error=failure.error if failure else None,
            elapsed_seconds=self.clock.now() - job.started,
            transient=failure is not None and failure.transient,
            sources=sources,
            sent_json=sent_json,
        )
        return Answer(ended, whole)
