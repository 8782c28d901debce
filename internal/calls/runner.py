"""The calls of one turn, run side by side.

In: planned calls. Out: events as they happen, then one outcome per call in the model's order. What has none when the
deadline comes is left, and answered as timed out.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from dify_plugin.entities.tool import ToolProviderType
from gevent.lock import BoundedSemaphore

from internal.calls.arguments import call_parameters, rounded_arguments
from internal.calls.plan import PlannedCall, RejectedCall, ValidCall
from internal.calls.side_by_side import Post, pass_on, run_side_by_side
from internal.host.clock import Clock, Deadline
from internal.host.failures import FailureKind, HostFailure, is_transient
from internal.host.session import DeadlinePassed, HostSession, RequestTooLarge
from internal.report.events import CallStatus, Event, FileForwarded, Noted, OurWords, ToolFinished, ToolStarted
from internal.report.sources import Source
from internal.results.failures import NOT_BEGUN, TIMED_OUT, TOOL_FAILED, ToolFailure
from internal.results.files import FileNames, FileReader
from internal.results.output import ToolOutput
from internal.text.fairness import in_turns
from internal.text.kept_text import cut_to_size
from internal.text.redaction import KnownSecrets
from internal.text.wellformed import wellformed
from internal.tools.toolbox import Toolbox
from prompt import template

TOO_LARGE = f"{TOOL_FAILED}: invalid input: too large; all parameters of a call together may have 4 MiB"
RETRY_WAIT = 1.0
"""Seconds before the one repetition of a call that was turned away at the door."""
_TURNED_AWAY = frozenset({FailureKind.RATE_LIMITED, FailureKind.CONNECTION_REFUSED})


@dataclass(frozen=True)
class ToolOutcome:
    """What became of one call."""

    planned: PlannedCall
    status: CallStatus
    tool_response: str
    """What the model reads: redacted, within the limit, without the numbers of its sources."""
    elapsed_seconds: float = 0.0
    transient: bool = False
    """An error that may not come again."""
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True)
class ToolRunner:
    """Runs the tool calls of one run; ``slots`` is shared by all its loops, so the limit holds over all of them."""

    host: HostSession
    toolbox: Toolbox
    clock: Clock
    slots: BoundedSemaphore
    result_limit: int
    secrets: KnownSecrets
    file_names: FileNames

    def run(
        self, planned: Sequence[PlannedCall], parent: str, deadline: Deadline
    ) -> Generator[Event, None, tuple[ToolOutcome, ...]]:
        """Run what is valid, answer the rest; what has no outcome at the deadline is answered as timed out."""
        keys = [f"{parent}.call{position}" for position in range(1, len(planned) + 1)]
        in_log: set[str] = set()

        def note_start(event: Event) -> bool:
            if isinstance(event, ToolStarted):
                in_log.add(event.key)
            return True

        started = self.clock.now()
        jobs = [partial(self._work, call, key, parent, deadline) for call, key in zip(planned, keys, strict=True)]
        outcomes = yield from pass_on(run_side_by_side(jobs, deadline), note_start)
        for position, (call, key) in enumerate(zip(planned, keys, strict=True)):
            if position not in outcomes:
                if key not in in_log:
                    yield self._started(call, key, parent)
                elapsed, late = self.clock.now() - started, TIMED_OUT.for_model(self.secrets.node)
                outcomes[position] = ToolOutcome(call, CallStatus.ERROR, late, elapsed, transient=True)
                yield self._finished(key, outcomes[position], TIMED_OUT.message)
        return tuple(outcomes[position] for position in range(len(planned)))

    def _started(self, call: PlannedCall, key: str, parent: str) -> ToolStarted:
        arguments = call.parsed if call.parsed is not None else call.call.arguments
        provider, icon = (call.tool.provider, call.tool.icon) if call.tool else ("", "")
        return ToolStarted(key, parent, call.call.name, provider, arguments, icon)

    def _work(self, call: PlannedCall, key: str, parent: str, deadline: Deadline, post: Post) -> ToolOutcome:
        """One call from its start in the log to its outcome, whatever happens on the way."""
        if isinstance(call, RejectedCall):
            return self._answer(call, key, parent, post)
        if call.tool.virtual_schema is not None:
            post(self._started(call, key, parent))
            accepted = ToolOutcome(call, CallStatus.OK, template.ACCEPTED)
            post(self._finished(key, accepted, error=None))
            return accepted
        with self.slots:
            post(self._started(call, key, parent))
            started = self.clock.now()
            try:
                outcome, error = self._execute(call, key, deadline, post)
            except RequestTooLarge as reason:
                outcome, error = ToolOutcome(call, CallStatus.REFUSED, TOO_LARGE), f"not run: {reason}"
            except Exception as defect:  # noqa: BLE001 - what we cannot make sense of costs this call, not the run
                outcome = ToolOutcome(call, CallStatus.ERROR, TOOL_FAILED)
                error = f"what the tool said could not be read ({type(defect).__name__})"
            outcome = replace(outcome, elapsed_seconds=self.clock.now() - started)
            post(self._finished(key, outcome, error))
            return outcome

    def _answer(self, call: RejectedCall, key: str, parent: str, post: Post) -> ToolOutcome:
        """A call that does not run stands in the log all the same."""
        text = cut_to_size(self.secrets.node.text(wellformed(call.text)), self.result_limit)
        outcome = ToolOutcome(call, CallStatus.REFUSED, text)
        post(self._started(call, key, parent))
        post(self._finished(key, outcome, error=OurWords("not run")))
        return outcome

    def _execute(self, call: ValidCall, key: str, deadline: Deadline, post: Post) -> tuple[ToolOutcome, str | None]:
        """Call the tool; return its outcome, and the error as the log shows it."""
        for name in rounded_arguments(call.tool, call.arguments):
            post(Noted(f"{call.call.name}: the host rounds integers above 2^53 within the argument {name!r}", key))
        # Text blocks of an MCP server are a text each; other tools stream one text in pieces.
        between = "\n" if call.tool.provider_type is ToolProviderType.MCP else ""
        redactor = self.secrets.node
        output = ToolOutput(FileReader(call.tool.name, self.file_names), redactor, between)
        failure = self._invoke(call, output, key, deadline, post)
        said = output.rendered()
        for note in output.notes:
            post(Noted(f"{call.call.name}: {note}", key))
        told = failure.for_model(redactor) if failure else ""
        text = "\n\n".join(part for part in (told, said.text) if part)
        outcome = ToolOutcome(
            planned=call,
            status=CallStatus.OK if failure is None else CallStatus.ERROR,
            tool_response=cut_to_size(text, self.result_limit, said.missing) if text.strip() else template.NO_OUTPUT,
            transient=failure is not None and is_transient(failure.kind),
            sources=tuple(output.sources),
        )
        return outcome, failure.for_log(self.secrets.redactor) if failure else None

    def _invoke(
        self, call: ValidCall, output: ToolOutput, key: str, deadline: Deadline, post: Post
    ) -> ToolFailure | None:
        """Call the tool; once more if it was turned away before it said anything, never after a time-out.

        A call that timed out may have placed its order already.
        """
        parameters = call_parameters(call.tool, call.arguments, self.toolbox)
        has_been_repeated = False
        while True:
            if deadline.has_passed():
                return NOT_BEGUN
            try:
                for message in in_turns(self.host.invoke_tool(call.tool, parameters, deadline.left)):
                    if file := output.take(message):
                        post(FileForwarded(file))
            except DeadlinePassed:
                return TIMED_OUT
            except HostFailure as failure:
                may_repeat = failure.kind in _TURNED_AWAY and not output.said_something and not has_been_repeated
                if not may_repeat or deadline.left() <= RETRY_WAIT:
                    return ToolFailure.of(failure)
                has_been_repeated = True
                again = f"{call.call.name}: {failure.kind}; called once more after {RETRY_WAIT:g} s"
                post(Noted(OurWords(again), key))
                self.clock.sleep(RETRY_WAIT)
            else:
                return None

    def _finished(self, key: str, outcome: ToolOutcome, error: str | None) -> ToolFinished:
        return ToolFinished(key, outcome.status, outcome.elapsed_seconds, outcome.tool_response, error)
