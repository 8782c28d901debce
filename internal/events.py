"""The events of a run. Everything that the agent does becomes an event, which ``render`` turns into messages.

A ``key`` names a row of the log. The key of a nested row starts with the key of the row above it and a dot, as in
``subtask1.attempt1``. Every row that was started is also finished.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from internal.budget import Usage
from internal.call import JudgedCall, ToolOutcome
from internal.clock import Clock
from internal.errors import AgentError, Sentence, StopReason
from internal.host.files import FileBytes
from internal.memory.records import State
from internal.node.params import ExtraOutput
from internal.node.virtual_tools import StructuredOutput
from internal.sources import Source

MAX_FILE_BYTES = 15 * 1024 * 1024
"""Maximum bytes of a file. The daemon refuses a larger blob: docs/host-facts.md, "Size limits"."""
MAX_ADDRESS_LENGTH = 2_048
"""Maximum characters of an address in Dify's table of tool files: docs/host-facts.md, "Size limits"."""
MAX_NAME_LENGTH = 200


@dataclass(frozen=True)
class HostedFile:
    """A file that Dify already stores. Dify finds it by its address or its metadata."""

    address: str
    meta: Mapping[str, Any]
    """The part of the tool's metadata that Dify reads, with a filename. Texts are cut to MAX_NAME_LENGTH."""


@dataclass(frozen=True)
class ExternalImage:
    """An image on the web, which Dify fetches."""

    address: str


type UserFile = HostedFile | ExternalImage | FileBytes


@dataclass(frozen=True)
class LogNote:
    """A note for people who read the log: something was clamped, omitted, trimmed or retried."""

    text: Sentence
    parent: str | None = None
    """The key of the row to which the note belongs; None for the run. The last row of the run then shows it."""
    is_row: bool = False
    """Whether a note about the run gets its own row, because a person should act on it."""


@dataclass(frozen=True)
class SpanStarted:
    """The start of a round, or of another row with rows below it. ``label`` is the visible text."""

    key: str
    label: str
    about: str = ""
    """The subject in the words of the user or the model, which is the label if the log shows contents."""
    number: int = 0
    """The number before ``about``; 0 for no number."""
    is_round: bool = False
    """Whether the row is a round: a turn of the model in a loop, with its tool calls. A closing answer is not a
    round."""


@dataclass(frozen=True)
class SpanFinished:
    """The end of a row. Open rows below it end, too."""

    key: str
    elapsed_seconds: float
    data: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True)
class ModelStarted:
    key: str
    model: str
    request_id: str
    """The id of the request. Retries have the same key but another id."""


@dataclass(frozen=True)
class ModelFinished:
    key: str
    elapsed_seconds: float
    usage: Usage
    text: str = ""
    thought: str = ""
    calls: tuple[str, ...] = ()
    finish_reason: str | None = None
    error: str | None = None
    round: int = 0
    """The number of the round in the log. A closing answer has the next number; a plan or a judgement has 0."""
    marks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AnswerText:
    """A piece of streamed visible text."""

    text: str


@dataclass(frozen=True)
class AnswerBreak:
    """Marks that the next text belongs to a new turn."""


@dataclass(frozen=True)
class ThoughtText:
    """A piece of a streamed thought that the user may see."""

    text: str


@dataclass(frozen=True)
class AgentThought:
    """A thought of the agent itself, such as an announcement of tools. It is put before the next thought."""

    text: str


type Shown = AnswerText | AnswerBreak | ThoughtText


@dataclass(frozen=True)
class ShownBatch:
    """Events that are shown together, as one text."""

    parts: tuple[Shown, ...]


@dataclass(frozen=True)
class ToolStarted:
    key: str
    call: JudgedCall
    request_id: str | None = None
    """The id of the request to the host; None if no tool needs to run."""


@dataclass(frozen=True)
class ToolFinished:
    key: str
    call: ToolOutcome


@dataclass(frozen=True)
class CallsAnswered:
    """All calls of a turn have their results, in the model's order."""

    round: int
    """The round of the turn that made the calls; 0 if an earlier run made them."""
    calls: tuple[ToolOutcome, ...]
    subtask: str = ""
    """The subtask that made the calls; "" if there is no plan."""


@dataclass(frozen=True)
class FileForwarded:
    file: UserFile


@dataclass(frozen=True)
class Thought:
    """The thoughts of the model in one turn. ``round`` is the number in its ``ModelFinished`` event."""

    round: int
    text: str
    subtask: str = ""


@dataclass
class RunTotals:
    """The costs and results of a run so far, read from its events, so that an abandoned loop also counts."""

    keeps_thoughts: bool = False
    usage: Usage = field(default_factory=Usage.of)
    tool_rounds: list[CallsAnswered] = field(default_factory=list)
    rounds: int = 0
    files: int = 0
    """Number of files that the user has received."""
    thoughts: list[Thought] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict, init=False)
    """The names of subtasks, by the keys of their top-level rows."""

    def watch(self, events: "Iterable[Event]") -> "Generator[Event, None, None]":
        for event in events:
            if isinstance(event, ModelFinished):
                self.usage += event.usage
                if self.keeps_thoughts and event.thought.strip():
                    name = self._names.get(event.key.partition(".")[0], "")
                    self.thoughts.append(Thought(event.round, event.thought, name))
            elif isinstance(event, CallsAnswered):
                self.tool_rounds.append(event)
            elif isinstance(event, FileForwarded):
                self.files += 1
            elif isinstance(event, SpanStarted):
                self.rounds += event.is_round
                self._names |= {event.key: event.about} if event.about else {}
            yield event


@dataclass(frozen=True)
class RunSummary:
    """The results of a finished run for the variables, ``decision_summary`` and the last log."""

    stop_reason: StopReason
    rounds: int
    answer: str
    totals: RunTotals
    sources: tuple[tuple[int, Source], ...] = ()
    earlier_sources: tuple[tuple[int, Source], ...] = ()
    """The sources of earlier runs, without their content."""
    structured_output: StructuredOutput | None = None
    """The answer as an object; None without an answer schema."""
    variables: Mapping[str, Any] = field(default_factory=dict)
    extra_outputs: frozenset[ExtraOutput] = frozenset()
    decisions: Mapping[str, Any] = field(default_factory=dict)
    tool_answers: Sequence[ToolOutcome] = ()
    """The outcomes of answer tools, if they are the answer."""
    state: State | None = None
    """The state; None if the run does not output it."""
    sources_heading: str = ""
    """The heading of the list of cited sources at the end of the answer; "" for no list."""


@dataclass(frozen=True)
class RunFinished:
    summary: RunSummary


type LogEvent = LogNote | SpanStarted | SpanFinished | ModelStarted | ModelFinished | ToolStarted | ToolFinished
type Event = LogEvent | Shown | ShownBatch | AgentThought | CallsAnswered | FileForwarded | RunFinished


def in_row[T](
    row: SpanStarted,
    work: Generator[Event, None, T],
    clock: Clock,
    shown: Callable[[T], Mapping[str, Any]] = lambda _: {},
) -> Generator[Event, None, T]:
    """Do the work as a row of the log. ``shown`` selects the row's data from the result.

    An ``AgentError`` is shown in the row and raised again.
    """
    started = clock.now()
    yield row
    try:
        result = yield from work
    except AgentError as failure:
        yield SpanFinished(row.key, clock.now() - started, error=failure.detail)
        raise
    yield SpanFinished(row.key, clock.now() - started, shown(result))
    return result
