"""Answers the calls of a turn. Calls run in parallel, and each has one result, which the model reads in later rounds.

A call that is still running at the deadline is abandoned and counts as timed out. A failed call is never retried,
whatever the error says, because the tool may have acted before it failed.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import gevent
from dify_plugin.entities.tool import ToolProviderType
from gevent.lock import BoundedSemaphore
from gevent.queue import Empty, Queue
from pydantic_core import to_json

from internal.budget import Budget
from internal.call import MAX_CALLS, CallStatus, JudgedCall, RejectedCall, ToolOutcome, ValidCall, WaitingCall
from internal.calls.judging import (
    Approvals,
    RepeatGuard,
    call_parameters,
    judge_calls,
    rounded_arguments,
)
from internal.calls.output import ToolOutput
from internal.clock import Clock, Deadline, in_turns, let_others_through
from internal.errors import OurWords, Quoting
from internal.events import CallsAnswered, Event, FileForwarded, LogNote, ToolFinished, ToolStarted
from internal.host.session import MAX_REQUEST_BYTES, HostSession, new_request_id
from internal.memory.records import RoundRecord
from internal.model.reading import ModelTurn, TurnSpan
from internal.node.skills import Skills
from internal.node.tool_search import ToolSearch
from internal.node.tools import Tool, Toolbox
from internal.node.virtual_tools import READ_RESULT, find_tools_tool, read_result_tool, read_skill_tool
from internal.sources import NumberedSources, citation_lines
from internal.text.secrets import KnownSecrets
from internal.text.texts import cut_to_size
from internal.transcript.references import References
from internal.transcript.request import text_tools
from internal.transcript.steps import AgentNote, ResumedRound, Round, RoundPictures
from internal.transcript.transcript import Transcript
from prompt import template, tool_errors

MAX_UNNAMED_LENGTH = 500
"""Maximum characters of a result without an id. A model copies such a short result instead of referring to it
(docs/long-results.md)."""
GRACE_SECONDS = 1.0
"""Seconds after the deadline in which a job may still return its partial result."""
_KILL_SECONDS = 2

type Post = Callable[[Event], None]
type Job[T] = Callable[[Post], T]
type CutToMemory = Callable[[ToolOutcome], ToolOutcome]


def run_side_by_side[T](jobs: Sequence[Job[T]], deadline: Deadline) -> Generator[Event, None, dict[int, T]]:
    """Run the jobs in parallel and return their results by position. A job must not raise, or its exception is lost.

    Each job has its own greenlet, the queue is unbounded, and unfinished jobs are killed at the end. With the SDK, the
    shutdown of a pool would wait for a silent tool, and a bounded queue would hang (docs/host-facts.md, "Many runs in
    one process").
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
            # A run that is not read to its end may be garbage-collected while gevent's hub runs, and the hub must not
            # wait.
            if gevent.getcurrent() is not gevent.get_hub():
                gevent.joinall(left, timeout=_KILL_SECONDS)
    return results


def drain[T](events: Generator[Event, None, T], post: Post) -> T:
    """Post the events of a generator and return its result."""
    while True:
        try:
            event = next(events)
        except StopIteration as end:
            result: T = end.value
            return result
        post(event)


@dataclass(frozen=True)
class _Shared:
    """The state that the calls of one round share."""

    deadline: Deadline
    cut_to_memory: CutToMemory
    started: dict[str, float] = field(default_factory=dict)
    """The start time of each call that is in the log."""


@dataclass(frozen=True)
class ToolRunner:
    """Runs the tool calls of one run. All loops share ``slots``, so that the limit applies to all of them together."""

    host: HostSession
    toolbox: Toolbox
    clock: Clock
    slots: BoundedSemaphore
    secrets: KnownSecrets
    budget: Budget
    search: ToolSearch
    skills: Skills
    result_limit: int
    """Maximum characters of one result that the model, the log and the variables show."""
    keeps_pictures: bool = False
    """Whether pictures are kept, because the model can see them."""
    calls_in_text: bool = False
    """Whether the model writes its calls as text, so that new tools must be announced after the results."""

    def run(
        self, calls: Mapping[str, ValidCall], deadline: Deadline, cut_to_memory: CutToMemory
    ) -> Generator[Event, None, dict[str, ToolOutcome]]:
        """Run the calls by their keys in the log. A call that has not ended at the deadline counts as timed out.

        ``cut_to_memory`` cuts an outcome to the memory that is left.
        """
        requested_at = self.clock.now()
        shared = _Shared(deadline, cut_to_memory)
        started = shared.started
        jobs = [partial(self._work, key, call, shared) for key, call in calls.items()]
        results = yield from run_side_by_side(jobs, deadline)
        outcomes: dict[str, ToolOutcome] = {}
        for position, (key, call) in enumerate(calls.items()):
            outcomes[key] = results.get(position) or self._timed_out(call, started.get(key, requested_at))
            if key not in started:
                yield ToolStarted(key, call)
            if position not in results or key not in started:
                yield ToolFinished(key, outcomes[key])
        return outcomes

    def _work(self, key: str, call: ValidCall, shared: _Shared, post: Post) -> ToolOutcome:
        """Run one call and log its start and end, without ever raising. A call after the deadline is not logged."""
        requested_at = self.clock.now()
        started = shared.started
        deadline = shared.deadline
        with self.slots:
            if deadline.has_passed():
                return self._timed_out(call, requested_at)
            started[key] = self.clock.now()
            if call.references:
                self.secrets.learn(call.referred_secrets)
                let_others_through()
            parameters = call_parameters(call.tool, call.arguments, self.toolbox)
            output = self._new_output(call.tool)
            is_sent = self._may_send(parameters, output)
            request_id = None
            if is_sent:
                request_id = new_request_id()
            post(ToolStarted(key, call, request_id))
            try:
                if request_id:
                    self._note_rounding(call, key, post)
                    if call.references:
                        let_others_through()  # the SDK serializes long arguments in one step
                    messages = self.host.invoke_tool(call.tool, parameters, request_id, deadline.left)
                    for file in output.read(messages):
                        post(FileForwarded(file))
                outcome = output.outcome(call, self.result_limit, self.clock.now() - started[key])
            except Exception as defect:  # noqa: BLE001 - an unreadable result fails only this call, not the run
                output = self._new_output(call.tool)
                output.give_up(f"what the tool said could not be read ({type(defect).__name__})")
                outcome = output.outcome(call, self.result_limit, self.clock.now() - started[key])
            for note in output.notes:
                post(LogNote(note.of(call.call.name), key))
            whole = outcome.whole
            outcome = shared.cut_to_memory(outcome)
            if outcome.whole is not whole:
                note = OurWords("its result is not kept whole: the results of this round are too large together")
                post(LogNote(note.of(call.call.name), key))
            self.budget.keep(outcome.lasting_size)
            post(ToolFinished(key, outcome))
            return outcome

    def _new_output(self, tool: Tool) -> ToolOutput:
        # Text blocks of an MCP server are separate texts; other tools stream one text in pieces.
        between = ""
        if tool.provider_type is ToolProviderType.MCP:
            between = "\n"
        return ToolOutput(self.secrets, between, keeps_pictures=self.keeps_pictures and not tool.is_answer)

    def _timed_out(self, call: ValidCall, started: float) -> ToolOutcome:
        output = self._new_output(call.tool)
        output.time_out()
        return output.outcome(call, self.result_limit, self.clock.now() - started)

    def _may_send(self, parameters: Mapping[str, Any], output: ToolOutput) -> bool:
        """Return whether a call may be sent, and count it in the budget. Otherwise record the reason in ``output``."""
        if (size := len(to_json(parameters))) > MAX_REQUEST_BYTES:
            error = f"not run: the parameters have {size:,} bytes; at most {MAX_REQUEST_BYTES:,} reach the host"
            told = f"{tool_errors.TOOL_FAILED}: {tool_errors.PARAMETERS_TOO_LARGE}"
            output.refuse(told, error)
            return False
        if refusal := self.budget.take_call():
            output.refuse(refusal, OurWords("not run"))
            return False
        return True

    def _note_rounding(self, call: ValidCall, key: str, post: Post) -> None:
        for name in rounded_arguments(call.tool, call.arguments):
            note = OurWords(f"the host rounds integers above 2^53 within the argument {name!r}")
            post(LogNote(note.of(call.call.name), key))


@dataclass
class ToolRounds:
    """Answers and records the calls of a transcript, which may already have rounds."""

    tools: ToolRunner
    transcript: Transcript
    numbered_sources: NumberedSources
    guard: RepeatGuard
    approvals: Approvals
    subtask: str = ""
    """The subtask of a plan to which the transcript belongs."""
    _before: int = field(init=False)

    def __post_init__(self) -> None:
        self._before = self.transcript.rounds

    @property
    def done(self) -> int:
        """Number of tool rounds since this object was created."""
        return self.transcript.rounds - self._before

    def equipped(self, toolbox: Toolbox) -> Toolbox:
        """Return these tools, plus the tools that search for tools and read skills, if they are needed."""
        skills = self.tools.skills
        if toolbox.held_back:
            find = partial(self.tools.search.look_up, self.transcript.offered)
            toolbox = toolbox.with_tool(find_tools_tool(len(toolbox.held_back), find))
        if skills.by_name:
            return toolbox.with_tool(read_skill_tool(skills.by_name, skills.look_up))
        return toolbox

    def run(
        self, turn: ModelTurn, judged: Sequence[JudgedCall], span: TurnSpan, deadline: Deadline
    ) -> Generator[Event, None, list[ToolOutcome]]:
        """Answer the calls and append the round. Returns the outcomes of the node's answer tools.

        Sources are numbered in the order of the calls, not in the order in which the calls end. A turn that only reads
        the agent's own data is not a tool round. The number of such turns is limited, so that the run ends.
        """
        offered_before = tuple(self.transcript.offered)
        only_looks_up = self._may_look_up and all(call.call.is_lookup for call in judged)
        called = [call.tool for call in judged if call.tool]
        for tool in self.tools.search.offer(called, self.transcript.offered):
            note = f"{tool.name} was called by its name before a prompt offered it; the next ones offer it"
            yield LogNote(OurWords(note), span.round_key)
        outcomes = yield from self._answer_all(judged, span.round_key, deadline)
        self.tools.budget.lookup_turns_left -= only_looks_up
        kept = tuple(outcome.condensed for outcome in outcomes)
        ended = Round(turn.content, turn.text, kept, turn.opaque_body, turn.model, is_of_tools=not only_looks_up)
        self.transcript.append(ended)
        if not ended.waits:  # otherwise the run with the user's answer closes the round
            self._announce(offered_before)
            yield from self._show_pictures(outcomes, span.round_key)
        if turn.has_left_out_calls:
            self.transcript.append(AgentNote(template.CALLS_LEFT_OUT.format(most=MAX_CALLS)))
        yield from self._record(outcomes, span.round)
        return [outcome for outcome in outcomes if outcome.brings_answer]

    def resume(
        self, waiting: RoundRecord, judged: Sequence[JudgedCall], parent: str, deadline: Deadline
    ) -> Generator[Event, None, list[ToolOutcome]]:
        """Close the round that an earlier run left open. ``judged`` are its waiting calls, in their order."""
        offered_before = tuple(self.transcript.offered)
        outcomes = yield from self._answer_all(judged, parent, deadline)
        kept = tuple(outcome.condensed for outcome in outcomes)
        self.transcript.append(ResumedRound(waiting, kept, self.tools.toolbox))
        self._announce(offered_before)
        yield from self._show_pictures(outcomes, parent)
        yield from self._record(outcomes, 0)
        self._before = self.transcript.rounds
        return [outcome for outcome in outcomes if outcome.brings_answer]

    def refuse(self, turn: ModelTurn, span: TurnSpan) -> Generator[Event, None, None]:
        """Log the calls of a truncated or closing turn, which do not run and get no results."""
        refused = (RejectedCall(call, tool_errors.REFUSED_AT_THE_END) for call in turn.calls)
        outcomes = yield from self._answer_at_once(_by_key(refused, span.round_key))
        yield from self._record(outcomes.values(), span.round)

    def judge_turn(self, turn: ModelTurn, toolbox: Toolbox, deadline: Deadline) -> list[JudgedCall]:
        """Check the calls of a turn, with results instead of the references in their arguments."""
        references = References(self.transcript.kept_results, self.transcript.result_ids, deadline)
        return judge_calls(turn.calls, toolbox, self.guard, references)

    @property
    def _may_look_up(self) -> bool:
        return self.tools.budget.lookup_turns_left > 0 and not self.tools.budget.is_full

    def _answer_all(
        self, judged: Iterable[JudgedCall], parent: str, deadline: Deadline
    ) -> Generator[Event, None, list[ToolOutcome]]:
        """Answer the calls in the model's order, with the texts of each result for prompts and records."""
        calls = _by_key(judged, parent)
        outcomes = yield from self._answer_at_once(calls)
        to_run = {key: call for key, call in calls.items() if isinstance(call, ValidCall) and key not in outcomes}
        with self.transcript.kept_results.round() as cut_to_memory:
            outcomes |= yield from self.tools.run(to_run, deadline, cut_to_memory)
        return [self._with_texts(outcomes[key]) for key in in_turns(calls)]

    def _announce(self, before: Collection[str]) -> None:
        """Announce new tools to a model that writes its calls as text."""
        if not self.tools.calls_in_text:
            return
        new = [tool.prompt_tool for name, tool in self.transcript.offered.items() if name not in before]
        if new:
            self.transcript.append(AgentNote(text_tools(template.NEW_TEXT_TOOLS, new)))

    def _show_pictures(self, outcomes: Iterable[ToolOutcome], parent: str) -> Generator[Event, None, None]:
        """Append those pictures of a round that the model can see."""
        if pictures := RoundPictures.of(outcomes):
            self.transcript.append(pictures)
            yield LogNote(Quoting(pictures.words), parent)

    def _record(self, outcomes: Iterable[ToolOutcome], number: int) -> Generator[Event, None, None]:
        """Report the calls of a round to the variables and the guard. ``number`` is 0 for a round of an earlier run."""
        # Repeating a lookup does no harm: lookups have their own limit, and the window may have dropped the first
        # result.
        answered = [outcome for outcome in outcomes if not outcome.call.is_lookup]
        if answered:
            yield CallsAnswered(number, tuple(outcome.condensed for outcome in answered), self.subtask)
        self.guard.record_round(answered)

    def _answer_at_once(self, calls: Mapping[str, JudgedCall]) -> Generator[Event, None, dict[str, ToolOutcome]]:
        """Answer the calls for which no tool runs: rejected calls, waiting calls, and calls of virtual tools."""
        outcomes: dict[str, ToolOutcome] = {}
        for key, call in calls.items():
            if isinstance(call, ValidCall) and call.tool.runs:
                continue
            yield ToolStarted(key, call)
            outcomes[key] = self._outcome_at_once(call)
            self.tools.budget.keep(outcomes[key].lasting_size)
            yield ToolFinished(key, outcomes[key])
        return outcomes

    def _outcome_at_once(self, call: JudgedCall) -> ToolOutcome:
        if isinstance(call, WaitingCall):
            return ToolOutcome(call, CallStatus.WAITING, template.WAITS_FOR_APPROVAL)
        if isinstance(call, RejectedCall):
            if call.by_user:
                error = None
            else:
                error = OurWords("not run")
            return ToolOutcome(call, CallStatus.REFUSED, cut_to_size(call.text, self.tools.result_limit), error)
        if call.tool.lookup is None:
            return ToolOutcome(call, CallStatus.OK, template.ACCEPTED)
        if not self._may_look_up:
            told = template.NO_MORE_LOOKUPS.format(name=call.tool.name)
            return ToolOutcome(call, CallStatus.REFUSED, told, OurWords("not run"))
        started = self.tools.clock.now()
        text, error = call.tool.lookup(call.arguments)
        status = CallStatus.OK
        if error:
            status = CallStatus.ERROR
        return ToolOutcome(call, status, text, error, self.tools.clock.now() - started)

    def _with_texts(self, outcome: ToolOutcome) -> ToolOutcome:
        """Return the outcome with the texts that prompts and records show, including the numbers of its sources.

        A result that does not fit, or that a later call may refer to, is kept in memory. The prompt shows its id.
        """
        whole = outcome.whole or outcome.tool_response
        if outcome.call.is_lookup:  # a lookup has its own limit
            return replace(outcome, prompt_text=whole, record_text=whole)
        limit = self.tools.result_limit
        numbers = self.numbered_sources.add(outcome.sources)
        cited = cut_to_size(citation_lines(zip(numbers, outcome.sources, strict=True)), limit // 2)
        end = ""
        if cited:
            end = f"\n\n{cited}"
        room = limit - len(end)
        record_text = cut_to_size(whole, room) + end
        outcome = replace(outcome, prompt_text=record_text, record_text=record_text)
        is_cut = len(whole) > room
        may_be_referred_to = is_cut or bool(outcome.sent_json) or len(whole) > MAX_UNNAMED_LENGTH
        is_of_tool = isinstance(outcome.judged, ValidCall) and outcome.judged.tool.runs
        name = None
        if is_of_tool and may_be_referred_to:
            name = self.transcript.kept_results.keep(outcome)
        if name is None:
            return outcome
        self.transcript.result_ids.append(name)
        end += template.RESULT_ID.format(id=name)
        if not is_cut:
            return replace(outcome, prompt_text=whole + end)
        if READ_RESULT not in self.transcript.offered:
            read = partial(self.transcript.kept_results.read, self.transcript.result_ids, limit)
            self.transcript.offered[READ_RESULT] = read_result_tool(read)
        note = partial(template.CHARACTERS_TO_READ.format, id=name)
        return replace(outcome, prompt_text=cut_to_size(whole, limit - len(end), note) + end)


def _by_key(judged: Iterable[JudgedCall], parent: str) -> dict[str, JudgedCall]:
    return {f"{parent}.call{position}": call for position, call in enumerate(judged, start=1)}
