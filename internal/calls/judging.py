"""Checks every call of a turn before any of them runs: arguments, repetitions, approvals."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from internal.call import (
    CallStatus,
    JudgedCall,
    Reference,
    RejectedCall,
    Signature,
    ToolCall,
    ToolOutcome,
    ValidCall,
    WaitingCall,
)
from internal.clock import in_turns, let_others_through
from internal.errors import Quoting, Sentence
from internal.host.files import still_answers
from internal.json_values import holds_large_integer
from internal.memory.approval import Decision, Verdict, call_id, is_same_call, not_approved_text, read_decision
from internal.memory.records import CallRecord, State, UserRecord, call_of, record_of
from internal.memory.state import MAX_WAITING, size_of_waiting
from internal.node.schema import Check, Problem, Unchecked, fitted
from internal.node.tool_search import nearest
from internal.node.tools import Tool, Toolbox, ToolParameter
from internal.node.virtual_tools import FIND_TOOLS, SUBMIT_ANSWER
from internal.text.secrets import KnownSecrets
from internal.tooling import ToolArgumentsParseResult, resolve_tool_instance, unknown_tool_error, without_quote
from internal.transcript.references import ReferenceInvalid, References
from prompt import template, tool_errors


class ArgumentsInvalid(Exception):  # noqa: N818 - the model reads the message
    """The arguments do not fit the tool."""


def validate_arguments(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments to send, by the tool's own names, validated and converted to the right types.

    The model may use these names or the names that it sees. Raises ``ArgumentsInvalid``, which lists all errors under
    the names that the model sees.
    """
    if tool.offered_check is not None:
        return _validate_virtual(tool, tool.offered_check, arguments)
    arguments = _own_named(tool, arguments)
    unknown = ", ".join(repr(name) for name in arguments if name not in tool.parameters)
    known = ", ".join(parameter.name for parameter in tool.parameters.values()) or "none"
    problems = list[str]()
    if unknown:
        problems.append(tool_errors.UNKNOWN_ARGUMENTS.format(unknown=unknown, known=known))
    valid: dict[str, Any] = {}
    for name, parameter in tool.parameters.items():
        given = arguments.get(name)
        if given == "" and parameter.takes_files and not parameter.required:
            given = None
        if given is not None:
            valid[name], wrong = _checked(parameter, given)
            problems += wrong
        elif parameter.required and name in arguments and parameter.takes_null:
            valid[name] = None
        elif parameter.required:
            problems.append(tool_errors.MISSING_ARGUMENT.format(name=parameter.name))
        elif parameter.default is not None:
            valid[name] = parameter.default
    if problems:
        raise ArgumentsInvalid(tool_errors.VALIDATION_ERROR + "; ".join(problems))
    return valid


def _own_named(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments under the tool's own names. Raises ``ArgumentsInvalid`` if an argument has both names."""
    twice = [name for name, own in tool.own_names.items() if name in arguments and own in arguments]
    if twice:
        problem = tool_errors.ARGUMENT_IS_THERE_TWICE.format(name=twice[0])
        raise ArgumentsInvalid(tool_errors.VALIDATION_ERROR + problem)
    return tool.in_own_names(arguments)


def _validate_virtual(tool: Tool, check: Check, arguments: Mapping[str, Any]) -> dict[str, Any]:
    given = tool.in_offered_names(_own_named(tool, arguments))
    try:
        value, problems = fitted(check, given, "", takes_texts=False)
    except Unchecked:
        value = None
        problems = [tool_errors.ARGUMENTS_NOT_CHECKED]
    if problems or not isinstance(value, dict):
        raise ArgumentsInvalid(tool_errors.VALIDATION_ERROR + "; ".join(problems))
    return tool.in_own_names(value)


def _checked(parameter: ToolParameter, given: object) -> tuple[object, list[str]]:
    """Return the value to send and the errors in it."""
    if parameter.plainly_takes(given):
        return given, []
    try:
        value, problems = fitted(parameter.check, given, parameter.name, takes_texts=True)
    except Unchecked:  # the tool itself still checks its arguments
        return given, []
    if problems and parameter.is_secret:
        # A part of a secret, as in a shortened quotation, would no longer be recognized.
        problems = [tool_errors.HIDDEN_VALUE_DOES_NOT_FIT.format(name=parameter.name)]
    return value, problems


def call_parameters(tool: Tool, arguments: Mapping[str, Any], toolbox: Toolbox) -> dict[str, Any]:
    """Return the parameters to send: valid arguments, with files instead of file names, and the developer's values."""

    def as_sent(parameter: ToolParameter, value: object) -> object:
        if parameter.takes_files and isinstance(value, list):
            return [as_sent(parameter, item) for item in value]
        if parameter.takes_files:
            return toolbox.files[str(value)].model_dump(mode="json")
        # Dify would round a large number on its way to the tool, but it converts a text back to a number exactly.
        if parameter.is_number and holds_large_integer(value):
            return str(value)
        return value

    return {**{name: as_sent(tool.parameters[name], value) for name, value in arguments.items()}, **tool.fixed}


def rounded_arguments(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """Return the names of the arguments in which the host rounds an integer."""
    return [
        name for name, value in arguments.items() if not tool.parameters[name].is_number and holds_large_integer(value)
    ]


def refusing_secrets(tool: Tool, secrets: KnownSecrets) -> Tool:
    """Return a copy of the tool that takes the answer. The copy refuses an answer with a known secret as invalid."""

    def more(value: Any) -> Iterator[Problem]:  # noqa: ANN401 - JSON
        if secrets.holds(value):
            place = [name for name, item in value.items() if secrets.holds(item) and not secrets.holds(name)]
            yield Problem(tuple(place[:1]), tool_errors.ANSWER_REPEATS_HIDDEN_VALUE)

    if tool.check is None:
        return tool
    return replace(tool, check=tool.check.stricter(more))


_CHANCES = 2
"""Number of transient failures of a call after which it is treated like a permanent failure."""


class RepeatGuard:
    """Stops endless loops of identical calls in one transcript."""

    def __init__(self) -> None:
        self._failures: Counter[Signature] = Counter()
        self._last: dict[Signature, tuple[str, tuple[str, ...]]] = {}
        self._repeating: set[Signature] = set()
        """Calls whose last two results, from different rounds, were equal."""
        self._asked_again: set[Signature] = set()
        """Calls of this round that are answered with their last result."""
        self._told: set[Signature] = set()
        """Calls of earlier rounds that were answered with their last result."""

    def check(self, call: ValidCall) -> ValidCall | RejectedCall:
        """Return the call if it may run, or else a rejected call with the text that the model reads."""
        this = call.signature
        if self._failures[this] >= _CHANCES:
            return RejectedCall(call.call, tool_errors.REPEATED_FAILURE, call.tool)
        if this in self._repeating:
            self._asked_again.add(this)
            text = f"{self._last[this][0]}\n\n{template.REPEATED_RESULT_NOTE}"
            return RejectedCall(call.call, text, call.tool, ends_tool_phase=this in self._told)
        return call

    def record_round(self, ended: Sequence[ToolOutcome]) -> None:
        """Remember a finished round. Of several equal calls, every failure counts, but only the last result."""
        self._told |= self._asked_again
        self._asked_again = set()
        known = [(call.judged.signature, call) for call in ended if isinstance(call.judged, ValidCall)]
        for this, call in known:
            if call.status is CallStatus.ERROR:
                if call.transient:
                    self._failures[this] += 1
                else:
                    self._failures[this] += _CHANCES
        succeeded = [(this, call) for this, call in known if call.status is CallStatus.OK]
        latest = {this: (call.tool_response, call.picture_digests) for this, call in succeeded}
        for this, result in latest.items():
            if self._last.get(this) == result:
                self._repeating.add(this)
            else:
                self._repeating.discard(this)
            self._last[this] = result


def judge_calls(
    calls: Iterable[ToolCall], toolbox: Toolbox, guard: RepeatGuard, references: References | None = None
) -> list[JudgedCall]:
    return [_judge(call, toolbox, guard, references) for call in in_turns(calls)]


def without_tools(judged: Iterable[JudgedCall]) -> list[JudgedCall]:
    """Refuse every call that does not submit an answer, since no more tools will run."""
    return [
        each if hands_over(each) else RejectedCall(each.call, tool_errors.REFUSED_AT_THE_END, each.tool)
        for each in judged
    ]


def hands_over(call: JudgedCall) -> bool:
    """Return whether the call submits something to the agent, validly or not, instead of running a tool."""
    return call.tool is not None and not call.tool.runs and call.tool.lookup is None


def _parsed(call: ToolCall, tool: Tool) -> ToolArgumentsParseResult:
    """Parse the arguments. For a tool that needs no arguments, null means that there are none."""
    is_null = call.arguments.strip() == "null"
    if is_null and tool.runs and not any(parameter.required for parameter in tool.parameters.values()):
        return ToolArgumentsParseResult(ok=True)
    return call.parsed


def _judge(call: ToolCall, toolbox: Toolbox, guard: RepeatGuard, references: References | None) -> JudgedCall:
    tool = resolve_tool_instance(toolbox.tools, call.name)
    if tool is None:
        # The results that can be read belong to this run only, but a later run may read this text.
        names = [name for name, each in toolbox.tools.items() if each.lookup is None]
        if FIND_TOOLS in toolbox.tools:
            return RejectedCall(
                call, unknown_tool_error(call.name, nearest(call.name, names), tool_errors.NEAREST_TOOLS)
            )
        return RejectedCall(call, unknown_tool_error(call.name, names))
    parsed = _parsed(call, tool)
    if not parsed.ok:
        takes_secrets = any(parameter.is_secret for parameter in tool.parameters.values())
        error = parsed.error or ""
        return RejectedCall(call, without_quote(error) if takes_secrets else error, tool)
    try:
        if references and tool.lookup is None:
            valid = ValidCall(call, tool, *_resolved(tool, parsed.args, references))
        else:
            valid = ValidCall(call, tool, validate_arguments(tool, parsed.args))
        if valid.references:
            let_others_through()
    except (ArgumentsInvalid, ReferenceInvalid) as invalid:
        return RejectedCall(call, str(invalid), tool)
    return valid if hands_over(valid) else guard.check(valid)  # the same answer may be submitted again


def _resolved(
    tool: Tool, written: Mapping[str, Any], references: References
) -> tuple[dict[str, Any], dict[str, Reference]]:
    """Return the valid arguments with results instead of references, even in objects or arrays given as JSON text.

    References inside results are never replaced.
    """
    written = _own_named(tool, written)
    given, referring = references.resolved(written)
    valid = validate_arguments(tool, given)
    read = {
        name: value for name, value in valid.items() if isinstance(written.get(name), str) and name not in referring
    }
    found, also = references.resolved(read)
    return (validate_arguments(tool, {**given, **found}) if also else valid), {**referring, **also}


# Calls of tools that need an approval wait at the end of a run. The next run receives the user's answer.


@dataclass
class Approvals:
    """The approvals that a run requests from the user. All loops of the run share this object."""

    secrets: KnownSecrets
    asked: int = 0
    """Number of calls in the conversation that have waited so far, including those of earlier runs."""
    pending: list[WaitingCall] = field(default_factory=list)
    has_acted: bool = False
    """Whether a call that the user approved was sent to its tool in this run."""
    _size: int = field(default=0, init=False)

    def hold(self, judged: Sequence[JudgedCall], toolbox: Toolbox, subtask: str | None = None) -> list[JudgedCall]:
        """Hold the calls that need an approval. An answer in the same turn is refused; an answer tool also waits."""

        def held(call: JudgedCall) -> JudgedCall:
            if not (isinstance(call, ValidCall) and call.tool.needs_approval):
                return call
            return self._waiting(call, toolbox, subtask)

        def behind(call: JudgedCall) -> JudgedCall:
            if not isinstance(call, ValidCall):
                return call
            if call.tool.name == SUBMIT_ANSWER:
                return RejectedCall(call.call, template.ANSWER_NOT_TAKEN, call.tool)
            if call.tool.is_answer:
                return self._waiting(call, toolbox, subtask, is_asked=False)
            return call

        asked = [held(call) for call in judged]
        if waits(asked):
            return [behind(call) for call in asked]
        return asked

    def note_approved(self, judged: Iterable[JudgedCall]) -> None:
        """Remember whether the user's approval lets a call run now."""
        self.has_acted = self.has_acted or any(isinstance(call, ValidCall) for call in judged)

    def _waiting(
        self, call: ValidCall, toolbox: Toolbox, subtask: str | None, *, is_asked: bool = True
    ) -> WaitingCall | RejectedCall:
        tool = call.tool
        arguments = call.arguments
        if any(tool.parameters[name].is_secret for name in arguments) or self.secrets.holds(dict(arguments)):
            return RejectedCall(call.call, template.CONFIDENTIAL_CANNOT_WAIT, tool)
        if rounded_arguments(tool, arguments):
            return RejectedCall(call.call, template.ROUNDED_CANNOT_WAIT, tool)
        if toolbox.find(tool.provider, tool.own_name, tool.setting) is not tool:
            return RejectedCall(call.call, template.DOUBLE_CANNOT_WAIT, tool)
        files = {name: toolbox.files[name] for name in tool.files_in(arguments)}
        waiting = WaitingCall(call, call_id(self.asked + 1, tool, arguments, files), files, subtask, is_asked)
        size = size_of_waiting(record_of(waiting))
        if self._size + size > MAX_WAITING:  # a state must be able to hold all of them in full
            return RejectedCall(call.call, template.TOO_LARGE_TO_WAIT.format(most=MAX_WAITING), tool)
        self._size += size
        self.asked += 1
        if is_asked:
            self.pending.append(waiting)
        return waiting


def waits(judged: Sequence[JudgedCall]) -> bool:
    """Return whether a call of the turn waits for the user."""
    return any(isinstance(call, WaitingCall) for call in judged)


@dataclass(frozen=True)
class Resumption:
    """The user's answer to waiting calls, and the rest of the user's message."""

    decision: Decision
    has_question: bool
    """Whether the query becomes a user message after the results."""
    _query: str

    @classmethod
    def of(cls, state: State, approval: str, query: str) -> "Resumption | None":
        """Read the user's answer; None if no call waits, or if the user has not answered."""
        decision = None
        if state.waiting:
            decision = read_decision(approval)
        if decision is None:
            return None
        said = query.strip()
        before = next((entry.text for entry in reversed(state.entries) if isinstance(entry, UserRecord)), "")
        # The query may be the decision itself, or still be the previous question.
        is_decision = read_decision(said) == decision
        if is_decision:
            has_question = bool(decision.others.reason)
        else:
            has_question = said not in ("", before.strip())
        return cls(decision, has_question, said)

    def notes(self, waiting: Collection[str]) -> Iterator[Sentence]:
        """Yield a note for each id in the approval that does not belong to a waiting call."""
        for unknown in (each for each in self.decision.answers if each not in waiting):
            yield Quoting(f"approval: no call {unknown!r} waits")

    def judge_again(
        self, call: CallRecord, waiting: Iterable[CallRecord], toolbox: Toolbox, seconds: float
    ) -> JudgedCall:
        """Check one of the waiting calls as if the model had just made it.

        A state therefore cannot run a tool that the node would not run.
        """
        written = call_of(call, toolbox)
        tool = toolbox.find(call.provider, call.tool, call.setting)
        verdict = self.decision.verdict(call.id)
        if not call.is_asked:
            verdict = Verdict(all(self.decision.verdict(each.id).approved for each in waiting if each.is_asked))
            if not verdict.approved:
                return RejectedCall(written, template.ANSWER_TOOL_NOT_RUN, tool, by_user=True)
        if not verdict.approved:
            is_next = self.has_question and verdict.reason.strip() == self._query
            if is_next:
                text = template.NOT_APPROVED_SEE_NEXT
            else:
                text = not_approved_text(verdict.reason)
            return RejectedCall(written, text, tool, by_user=True)
        try:
            arguments = None
            if tool and written.parsed.ok:
                arguments = validate_arguments(tool, written.parsed.args)
        except ArgumentsInvalid:
            arguments = None
        is_same = tool and arguments is not None and is_same_call(call.id, tool, arguments, toolbox.files)
        if not tool or arguments is None or not is_same or (tool.needs_approval and not call.is_asked):
            return RejectedCall(written, template.APPROVED_CALL_CHANGED, tool)
        for name in tool.files_in(arguments):
            if not still_answers(toolbox.files[name].url, seconds):
                return RejectedCall(written, template.ATTACH_AGAIN.format(name=name), tool)
        return ValidCall(written, tool, arguments)
