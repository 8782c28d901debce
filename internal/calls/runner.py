"""The calls of a turn are answered: jobs run side by side, each has one result, which the model reads in later rounds.

A call that is still running at the deadline is given up and counts as timed out. No call is repeated, whatever its
error says: that is the tool's own word, and it may have acted before it failed.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import gevent
from dify_plugin.entities.tool import ToolProviderType
from gevent.lock import BoundedSemaphore
from gevent.queue import Empty, Queue
from pydantic_core import to_json

from internal.budget import Budget
from internal.call import Brought, CallStatus, EndedCall, JudgedCall, RejectedCall, Result, ValidCall, WaitingCall
from internal.calls.judging import (
    REFUSED_AT_THE_END,
    Approvals,
    RepeatGuard,
    call_parameters,
    judge_calls,
    rounded_arguments,
    waits,
)
from internal.calls.output import TIMED_OUT, TOOL_FAILED, ToolFailure, ToolOutput
from internal.calls.pictures import Picture, pictures_message
from internal.clock import Clock, Deadline, in_turns, let_others_through
from internal.errors import OurWords, Quoting, Sentence
from internal.events import CallsAnswered, Event, FileForwarded, Noted, ToolFinished, ToolStarted
from internal.host.failures import HostFailure
from internal.host.session import MAX_REQUEST_BYTES, DeadlinePassed, HostSession, new_request_id
from internal.memory.records import RoundRecord, messages_of, record_of_round
from internal.model.reading import ModelTurn, TurnSpan
from internal.node.skills import Skills
from internal.node.tool_search import ToolSearch
from internal.node.tools import Toolbox
from internal.node.virtual_tools import READ_RESULT, find_tools_tool, read_result_tool, read_skill_tool
from internal.sources import Bibliography, citation_lines
from internal.text.secrets import KnownSecrets
from internal.text.texts import cut_to_size, joined
from internal.transcript.kept_results import KeptResult
from internal.transcript.references import References
from internal.transcript.transcript import Transcript
from prompt import template

MAX_UNNAMED_LENGTH = 500
"""Characters of a text that a model copies rather than refers to (docs/long-results.md)."""
GRACE_SECONDS = 1.0
"""How long after the deadline a job may take to return what it has."""
_KILL_SECONDS = 2

type Post = Callable[[Event], None]
type Job[T] = Callable[[Post], T]


def run_side_by_side[T](jobs: Sequence[Job[T]], deadline: Deadline) -> Generator[Event, None, dict[int, T]]:
    """Run the jobs; the results by position. A job must not raise: its exception would be lost.

    Each has a greenlet, the queue is unbounded, and jobs that are left at the end are killed: with the SDK, shutting
    down a pool waits for a silent tool, and a bounded queue hangs (docs/host-facts.md, "Many runs in one process").
    """
    inbox: Queue[Event | tuple[int, T]] = Queue()
    results: dict[int, T] = {}

    def work(position: int, job: Job[T]) -> None:
        inbox.put((position, job(inbox.put)))

    workers = [gevent.spawn(work, position, job) for position, job in enumerate(jobs)]
    try:
        while len(results) < len(jobs):
            try:
                item = inbox.get(timeout=deadline.left() + GRACE_SECONDS)
            except Empty:
                break
            if isinstance(item, tuple):
                results[item[0]] = item[1]
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
    whole: str
    pictures: Sequence[Picture] = ()
    for_user: tuple[str, tuple[Any, ...]] = "", ()
    """What an answer tool brought: a text, and JSON values."""


@dataclass
class _Job:
    """One call on its way to the host; ``key`` is its row in the log."""

    key: str
    call: ValidCall
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
    search: ToolSearch
    skills: Skills
    result_limit: int
    """Characters of one result that anybody reads."""
    keeps_pictures: bool = False
    """Whether the model can see them."""

    def run(self, calls: Mapping[str, ValidCall], deadline: Deadline) -> Generator[Event, None, dict[str, Answer]]:
        """Run calls, each under its key in the log; one that has not ended at the deadline counts as timed out."""
        jobs = [_Job(key, call, deadline, self.clock.now()) for key, call in calls.items()]
        results = yield from run_side_by_side([partial(self._work, job) for job in jobs], deadline)
        answers: dict[str, Answer] = {}
        for position, job in enumerate(jobs):
            answers[job.key] = results.get(position) or self._answer(job, TIMED_OUT)
            if not job.is_in_log:
                yield ToolStarted(job.key, job.call)
            if position not in results or not job.is_in_log:
                yield ToolFinished(job.key, answers[job.key].ended)
        return answers

    def _work(self, job: _Job, post: Post) -> Answer:
        """One call from its start in the log to its end; it never raises. One that comes too late is not in the log."""
        with self.slots:
            if job.deadline.has_passed():
                return self._answer(job, TIMED_OUT)
            job.started, job.is_in_log = self.clock.now(), True
            if job.call.references:
                self.secrets.learn(job.call.referred_secrets)
                let_others_through()
            parameters = call_parameters(job.call.tool, job.call.arguments, self.toolbox)
            refusal = self._refusal(parameters)
            post(ToolStarted(job.key, job.call, None if refusal else job.request_id))
            try:
                answer = self._answer(job, refusal) if refusal else self._execute(job, parameters, post)
            except Exception as defect:  # noqa: BLE001 - a result that cannot be read costs this call, not the run
                error = f"what the tool said could not be read ({type(defect).__name__})"
                answer = self._answer(job, ToolFailure(TOOL_FAILED, error))
            post(ToolFinished(job.key, answer.ended))
            return answer

    def _refusal(self, parameters: Mapping[str, Any]) -> ToolFailure | None:
        """Why a call is not sent; one that is sent counts in the budget."""
        if (size := len(to_json(parameters))) > MAX_REQUEST_BYTES:
            error = f"not run: the parameters have {size:,} bytes; at most {MAX_REQUEST_BYTES:,} reach the host"
            told = f"{TOOL_FAILED}: invalid input: too large; all parameters of a call together may have 4 MiB"
            return ToolFailure(told, error, status=CallStatus.REFUSED)
        refusal = self.budget.take_call()
        return ToolFailure(refusal, OurWords("not run"), status=CallStatus.REFUSED) if refusal else None

    def _execute(self, job: _Job, parameters: Mapping[str, Any], post: Post) -> Answer:
        """Call the tool and read what it says, until it ends or fails."""
        tool = job.call.tool

        def note(*notes: Sentence) -> None:
            for each in notes:
                post(Noted(each.of(job.call.call.name), job.key))

        for name in rounded_arguments(tool, job.call.arguments):
            note(OurWords(f"the host rounds integers above 2^53 within the argument {name!r}"))
        # Text blocks of an MCP server are a text each; other tools stream one text in pieces.
        between = "\n" if tool.provider_type is ToolProviderType.MCP else ""
        output = ToolOutput(self.secrets, between, keeps_pictures=self.keeps_pictures and not tool.is_answer)
        failure: ToolFailure | None = None
        try:
            for message in in_turns(self.host.invoke_tool(tool, parameters, job.request_id, job.deadline.left)):
                if file := output.take(message):
                    post(FileForwarded(file))
        except DeadlinePassed:
            failure = TIMED_OUT
        except HostFailure as reason:
            failure = ToolFailure.of(reason, self.secrets)
        answer = self._answer(job, failure, output)
        note(*output.notes)
        return answer

    def _answer(self, job: _Job, failure: ToolFailure | None, output: ToolOutput | None = None) -> Answer:
        """The end of a call: why it failed, then what it had said."""
        said = joined(failure.told if failure else "", output.rendered() if output else "") or template.NO_OUTPUT
        pictures = output.pictures if output else ()
        ended = EndedCall(
            judged=job.call,
            status=failure.status if failure else CallStatus.OK,
            tool_response=cut_to_size(said, self.result_limit),
            error=failure.error if failure else None,
            elapsed_seconds=self.clock.now() - job.started,
            transient=failure is not None and failure.transient,
            sources=tuple(output.sources) if output else (),
            pictures=tuple(each.digest for each in pictures if each.part),
            sent_json=tuple(output.sent_json) if output else (),
            has_more_json=output is not None and output.has_more_json,
        )
        return Answer(ended, said, pictures, output.for_user() if output and ended.brings_answer else ("", ()))


@dataclass
class ToolRounds:
    """Answers and records the calls of a transcript, which may have had rounds before."""

    tools: ToolRunner
    transcript: Transcript
    bibliography: Bibliography
    guard: RepeatGuard
    approvals: Approvals
    _before: int = field(init=False)

    def __post_init__(self) -> None:
        self._before = self.transcript.rounds

    @property
    def done(self) -> int:
        """Tool rounds since this object was made."""
        return self.transcript.rounds - self._before

    def equipped(self, toolbox: Toolbox) -> Toolbox:
        """These tools, the one that finds those which prompts do not offer, and the one that reads skills."""
        skills = self.tools.skills
        if toolbox.held_back:
            find = partial(self.tools.search.look_up, self.transcript.offered)
            toolbox = toolbox.with_tool(find_tools_tool(len(toolbox.held_back), find))
        return toolbox.with_tool(read_skill_tool(skills.by_name, skills.look_up)) if skills.by_name else toolbox

    def run(
        self, turn: ModelTurn, judged: Sequence[JudgedCall], span: TurnSpan, deadline: Deadline
    ) -> Generator[Event, None, list[Brought]]:
        """Answer the calls and append the round; what the node's answer tools brought.

        Sources are numbered in the model's order, not as calls end. A turn that only looks up what the agent keeps is
        not a tool round; a run has a number of such turns, so that it ends.
        """
        only_looks_up = self._may_look_up and all(call.call.is_lookup for call in judged)
        called = [call.tool for call in judged if call.tool]
        for tool in self.tools.search.offer(called, self.transcript.offered):
            note = f"{tool.name} was called by its name before a prompt offered it; the next ones offer it"
            yield Noted(OurWords(note), span.round_key)
        answers, results = yield from self._answer_all(judged, span.round_key, deadline)
        ended = [answer.ended for answer in answers]
        self.tools.budget.lookup_turns_left -= only_looks_up
        if not waits(judged):  # else the run that has the user's answer closes the round
            self.transcript.append_round(turn.content, turn.opaque_body, results, is_tool_round=not only_looks_up)
            yield from self._show_pictures(answers, span.round_key)
        if record := record_of_round(turn.text, ended, results):
            self.transcript.record.append(record)
        yield from self._record(ended, span.round)
        return _brought(answers, results)

    def resume(
        self, waiting: RoundRecord, judged: Sequence[JudgedCall], parent: str, deadline: Deadline
    ) -> Generator[Event, None, list[Brought]]:
        """Close the round that an earlier run left open; ``judged`` are its calls that waited, in their order."""
        answers, results = yield from self._answer_all(judged, parent, deadline)
        shown = waiting.answered(result.shown for result in results)
        record = waiting.answered(result.lasting for result in results)
        toolbox = self.tools.toolbox
        self.transcript.append_restored(messages_of([shown], toolbox), messages_of([record], toolbox))
        self.transcript.record.append(record)
        yield from self._show_pictures(answers, parent)
        yield from self._record([answer.ended for answer in answers], 0)
        self._before = self.transcript.rounds
        return _brought(answers, results)

    def refuse(self, turn: ModelTurn, span: TurnSpan) -> Generator[Event, None, None]:
        """Calls of a cut or closing turn do not run, and the model reads no answer; the log shows them."""
        refused = (RejectedCall(call, REFUSED_AT_THE_END) for call in turn.calls)
        answers = yield from self._answer_at_once(_by_key(refused, span.round_key))
        yield from self._record([answer.ended for answer in answers.values()], span.round)

    def judge(self, turn: ModelTurn, toolbox: Toolbox) -> list[JudgedCall]:
        """Judge the calls of a turn, with the results that they refer to in their arguments."""
        references = References(self.transcript.kept_results, self.transcript.result_ids)
        return judge_calls(turn.calls, toolbox, self.guard, references)

    @property
    def _may_look_up(self) -> bool:
        return self.tools.budget.lookup_turns_left > 0

    def _answer_all(
        self, judged: Iterable[JudgedCall], parent: str, deadline: Deadline
    ) -> Generator[Event, None, tuple[list[Answer], list[Result]]]:
        """Answer the calls; how they ended and what the model reads, in the model's order."""
        calls = _by_key(judged, parent)
        answers = yield from self._answer_at_once(calls)
        to_run = {key: call for key, call in calls.items() if isinstance(call, ValidCall) and key not in answers}
        answers |= yield from self.tools.run(to_run, deadline)
        in_order = [answers[key] for key in calls]
        return in_order, [self._result(answer) for answer in in_order]

    def _show_pictures(self, answers: Iterable[Answer], parent: str) -> Generator[Event, None, None]:
        """Append what the model sees of the pictures of a round."""
        made = [(answer.ended.call.name, answer.pictures) for answer in answers]
        if shown := pictures_message(made):
            message, words = shown
            self.transcript.append_pictures(message)
            yield Noted(Quoting(words), parent)

    def _record(self, ended: Iterable[EndedCall], number: int) -> Generator[Event, None, None]:
        """Let the variables and the guard know of a round's calls; ``number`` is 0 for one of an earlier run."""
        # To look up the same again does no harm: it has a limit of its own, and the window may have dropped the first.
        answered = tuple(call for call in ended if not call.call.is_lookup)
        if answered:
            yield CallsAnswered(number, answered)
        self.guard.record_round(answered)

    def _answer_at_once(self, calls: Mapping[str, JudgedCall]) -> Generator[Event, None, dict[str, Answer]]:
        """Answer the calls that no tool has to run for: rejected ones, those that wait, and those of virtual tools."""
        answers: dict[str, Answer] = {}
        for key, call in calls.items():
            if isinstance(call, ValidCall) and call.tool.runs:
                continue
            yield ToolStarted(key, call)
            ended = self._ended(call)
            answers[key] = Answer(ended, ended.tool_response)
            yield ToolFinished(key, ended)
        return answers

    def _ended(self, call: JudgedCall) -> EndedCall:
        limit, now = self.tools.result_limit, self.tools.clock.now
        if isinstance(call, WaitingCall):
            return EndedCall(call, CallStatus.WAITING, template.WAITS_FOR_APPROVAL)
        if isinstance(call, RejectedCall):
            error = None if call.by_user else OurWords("not run")
            return EndedCall(call, CallStatus.REFUSED, cut_to_size(call.text, limit), error)
        if call.tool.lookup is None:
            return EndedCall(call, CallStatus.OK, template.ACCEPTED)
        if not self._may_look_up:
            told = template.NO_MORE_LOOKUPS.format(name=call.tool.name)
            return EndedCall(call, CallStatus.REFUSED, told, OurWords("not run"))
        started = now()
        text, error = call.tool.lookup(call.arguments)
        status = CallStatus.ERROR if error else CallStatus.OK
        return EndedCall(call, status, text, error, now() - started)

    def _result(self, answer: Answer) -> Result:
        """The result as the model reads it, with its sources' numbers.

        What does not fit, or what a later call may refer to, is kept: what is shown has its id.
        """
        ended, limit, whole = answer.ended, self.tools.result_limit, answer.whole
        call, kept = ended.call, KeptResult(whole, ended.sent_json, ended.has_more_json, ended.call.name)
        if call.is_lookup:  # it keeps to a limit of its own
            return Result(call, whole, whole)
        numbers = self.bibliography.add(answer.ended.sources)
        cited = cut_to_size(citation_lines(zip(numbers, answer.ended.sources, strict=True)), limit // 2)
        end = f"\n\n{cited}" if cited else ""
        room = limit - len(end)
        lasting = cut_to_size(whole, room) + end
        ran, is_cut = isinstance(ended.judged, ValidCall) and ended.judged.tool.runs, len(whole) > room
        may_be_referred_to = ran and (is_cut or ended.sent_json or len(whole) > MAX_UNNAMED_LENGTH)
        name = self.transcript.kept_results.keep(kept) if may_be_referred_to else None
        if name is None:
            return Result(call, lasting, lasting)
        self.transcript.result_ids.append(name)
        end += template.RESULT_ID.format(id=name)
        if not is_cut:
            return Result(call, whole + end, lasting)
        if READ_RESULT not in self.transcript.offered:
            read = partial(self.transcript.kept_results.read, self.transcript.result_ids, limit)
            self.transcript.offered[READ_RESULT] = read_result_tool(read)
        note = partial(template.CHARACTERS_TO_READ.format, id=name)
        return Result(call, cut_to_size(whole, limit - len(end), note) + end, lasting)


def _brought(answers: Iterable[Answer], results: Iterable[Result]) -> list[Brought]:
    """What the node's answer tools brought, in the model's order."""
    return [
        Brought(answer.ended.call.name, result.lasting, *answer.for_user)
        for answer, result in zip(answers, results, strict=True)
        if answer.ended.brings_answer
    ]


def _by_key(judged: Iterable[JudgedCall], parent: str) -> dict[str, JudgedCall]:
    return {f"{parent}.call{position}": call for position, call in enumerate(judged, start=1)}
