"""The results of a run in a form that anybody may see: plain values without known secrets.

Everything that leaves a run besides its streamed text and its log is redacted here, once. Redaction comes before the
outputs (``internal/render/outputs.py``) cut any text, because half a secret would no longer be recognized.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, assert_never

from pydantic_core import to_json

from internal.call import ToolOutcome, ValidCall, WaitingCall
from internal.clock import in_turns
from internal.events import MAX_NAME_LENGTH, CallsAnswered, ExternalImage, HostedFile, RunSummary, Thought, UserFile
from internal.host.files import FileBytes
from internal.json_values import read_exactly
from internal.memory.records import State
from internal.node.params import ExtraOutput
from internal.sources import Source, cited_numbers
from internal.text.secrets import Redactor, texts_in

MAX_EXTRA_BYTES = 512 * 1024
"""Maximum bytes of state, thoughts and tool_results together (docs/outputs.md). A longer JSON value fits nowhere."""


@dataclass(frozen=True)
class PublicResult:
    """The arguments and the result of a tool call, for the variables that show them."""

    arguments: object
    """The arguments as the model wrote them, with the tool's own names; None if they were not JSON."""
    text: str
    json_values: tuple[Any, ...]
    unusable_json: int
    """The number of JSON values that are too large or too deeply nested."""


@dataclass(frozen=True)
class PublicCall:
    """A tool call that has ended."""

    round: int
    subtask: str
    """The subtask that made the call; "" without a plan."""
    tool: str
    status: str
    elapsed_seconds: float
    result: PublicResult | None
    """The arguments and the result; None unless the node asks for results."""


@dataclass(frozen=True)
class PublicRun:
    """The results of a finished run."""

    stop_reason: str
    rounds: int
    answer: str
    calls: tuple[PublicCall, ...]
    thoughts: tuple[Thought, ...]
    sources: tuple[tuple[int, Source], ...]
    earlier_sources: tuple[tuple[int, Source], ...]
    """The sources of earlier runs, without their content."""
    cited: frozenset[int]
    """The numbers of the sources that the answer cites."""
    variables: Mapping[str, Any]
    """Further variables by name. ``structured_output`` is among them if the node has an answer schema."""
    decisions: Mapping[str, Any]
    tool_answers: tuple[Any, ...]
    """The JSON of answer tools."""
    state: State | None
    extra_outputs: frozenset[ExtraOutput]
    execution_metadata: Mapping[str, Any]

    @classmethod
    def of(cls, summary: RunSummary, redactor: Redactor) -> "PublicRun":
        structured = summary.structured_output
        named = {}
        if structured:
            named["structured_output"] = redactor.json(structured.variable)
        return cls(
            stop_reason=summary.stop_reason.value,
            rounds=summary.rounds,
            answer=redactor.text(summary.answer),
            calls=tuple(_calls(summary, redactor)),
            thoughts=tuple(
                replace(thought, text=redactor.text(thought.text), subtask=redactor.text(thought.subtask))
                for thought in in_turns(summary.totals.thoughts)
            ),
            sources=_sources(summary.sources, redactor),
            earlier_sources=_sources(summary.earlier_sources, redactor),
            cited=_cited(summary),
            variables={**named, **redactor.values(summary.variables)},
            decisions=redactor.values(summary.decisions),
            tool_answers=tuple(
                redactor.json(read_exactly(json.dumps(value)))
                for outcome in summary.tool_answers
                for value in outcome.json_values
            ),
            state=summary.state.redacted(redactor) if summary.state else None,
            extra_outputs=summary.extra_outputs,
            execution_metadata=summary.totals.usage.execution_metadata(),
        )


def public_file(file: UserFile, redactor: Redactor) -> UserFile:
    """Return a file for the user whose address and name have no known secrets."""
    match file:
        case HostedFile(address, meta):
            if meta.get("tool_file_id"):  # Dify finds the file by this id, whatever the address says
                address = redactor.text(address)
            return HostedFile(address, redactor.values(meta))
        case ExternalImage(address):
            return ExternalImage(redactor.text(address))
        case FileBytes(data, mime_type, filename):
            texts = (redactor.text(text)[:MAX_NAME_LENGTH] for text in (mime_type, filename))
            return FileBytes(data, *texts)
        case _:
            assert_never(file)


def can_be_written(value: object) -> bool:
    """Return whether a JSON value is not too deeply nested for a message."""
    try:
        to_json([[[[[[[[value]]]]]]]])  # a message around the value has fewer levels
    except ValueError:
        return False
    return True


def _sources(sources: Iterable[tuple[int, Source]], redactor: Redactor) -> tuple[tuple[int, Source], ...]:
    if not redactor:
        return tuple(sources)
    return tuple(
        (
            number,
            Source(
                redactor.text(source.title),
                redactor.text(source.content),
                redactor.values(dict(source.resource)),
                redactor.text(source.link),
            ),
        )
        for number, source in in_turns(sources)
    )


def _cited(summary: RunSummary) -> frozenset[int]:
    if summary.tool_answers:  # a tool does not know the source numbers
        return frozenset()
    structured = summary.structured_output
    texts: Iterable[str] = [summary.answer]
    if structured and structured.answer is not None:  # brackets around a number in JSON are a list
        texts = texts_in(structured.answer)
    return frozenset(number for text in texts for number in cited_numbers(text))


def _calls(summary: RunSummary, redactor: Redactor) -> Iterator[PublicCall]:
    shows_results = ExtraOutput.TOOL_RESULTS in summary.extra_outputs
    every = ((done, ended) for done in summary.totals.tool_rounds for ended in done.calls)
    for done, ended in in_turns(every):
        yield _call(done, ended, redactor, shows_result=shows_results)


def _call(done: CallsAnswered, ended: ToolOutcome, redactor: Redactor, *, shows_result: bool) -> PublicCall:
    return PublicCall(
        round=done.round,
        subtask=redactor.text(done.subtask),
        tool=redactor.text(ended.call.name),
        status=ended.status.value,
        elapsed_seconds=ended.elapsed_seconds,
        result=_result(ended, redactor) if shows_result else None,
    )


def _result(ended: ToolOutcome, redactor: Redactor) -> PublicResult:
    fitting = (text for text in ended.sent_json if len(text) <= MAX_EXTRA_BYTES)
    values = tuple(value for value in map(read_exactly, fitting) if can_be_written(value))
    return PublicResult(
        arguments=redactor.json(read_exactly(json.dumps(_arguments(ended)))),
        text=redactor.text(ended.tool_response),
        json_values=tuple(map(redactor.json, values)),
        unusable_json=len(ended.sent_json) - len(values),
    )


def _arguments(ended: ToolOutcome) -> Mapping[str, Any] | None:
    checked = ended.judged
    if isinstance(checked, WaitingCall):
        checked = checked.valid
    if isinstance(checked, ValidCall):
        return checked.as_written
    parsed = ended.call.parsed
    if not parsed.ok:
        return None
    if ended.judged.tool:
        return ended.judged.tool.in_own_names(parsed.args)
    return parsed.args
