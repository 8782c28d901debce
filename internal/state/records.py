"""The record of a conversation, as frozen values: what the ``state`` variable holds.

It has what users, models and tools said, and the calls that wait for an approval; no system prompt, no media, no
thoughts, no opaque bodies and no notes of one run. It comes back as input, which is trusted as little as any other, so
that each class is also the schema that a text is checked against.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, FailFast, Field, NonNegativeInt, PositiveInt

from internal.text.fairness import in_turns
from internal.text.redaction import Redactor

type Several[T] = Annotated[tuple[T, ...], FailFast()]
"""Without ``FailFast``, a text with a million wrong items would make a million errors."""
MAX_SUBTASKS = 8
"""Of a plan; a subtask has fewer attempts."""
type Few[T] = Annotated[tuple[T, ...], Field(max_length=MAX_SUBTASKS), FailFast()]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True)


class FileRecord(_Record):
    """A file that a waiting call names, as Dify described it: its content stays where its address leads."""

    name: str
    """In the call's arguments."""
    url: str
    kind: Literal["image", "document", "audio", "video", "custom"]
    mime_type: str | None = None
    filename: str | None = None
    extension: str | None = None
    size: int | None = None


class CallRecord(_Record):
    """A tool call; its tool is found again by provider and own name, never by the model's alias for it."""

    id: str
    """As the prompt has it; of a call that waits, the one that the user answers."""
    provider: str
    """"" for a tool that the node did not have."""
    tool: str
    """What Dify calls it; what the model wrote where the node has no such tool."""
    setting: str = ""
    """``Tool.setting``."""
    arguments: str
    """The text of a JSON object; of a call that waits, its checked arguments."""
    attached: Several[FileRecord] = ()
    """The files that a call which waits is to send."""
    result: str | None = None
    """None while it waits."""


class FindingRecord(_Record):
    subtask: str
    answer: str
    completed: bool


class UserRecord(_Record):
    """What the user said; a turn begins with it."""

    kind: Literal["user"] = "user"
    text: str
    files: Several[str] = ()
    """A line for each file."""
    context: str = ""
    """The ``<context>`` block that stood before it."""
    findings: Few[FindingRecord] = ()
    """What the subtasks of a plan found."""


class RoundRecord(_Record):
    """A model turn with its calls and their results."""

    kind: Literal["round"] = "round"
    said: str = ""
    """Its visible text."""
    calls: Annotated[tuple[CallRecord, ...], Field(min_length=1), FailFast()]

    @property
    def waiting(self) -> tuple[CallRecord, ...]:
        return tuple(call for call in self.calls if call.result is None)

    def answered(self, results: Iterable[str]) -> Self:
        """The same with these results of the calls that wait, in their order."""
        left = iter(results)
        calls = [
            call.model_copy(update={"result": next(left), "attached": ()}) if call.result is None else call
            for call in self.calls
        ]
        return self.model_copy(update={"calls": tuple(calls)})


class AnswerRecord(_Record):
    """What the agent answered; a turn ends with it."""

    kind: Literal["answer"] = "answer"
    text: str


type EntryRecord = Annotated[UserRecord | RoundRecord | AnswerRecord, Field(discriminator="kind")]


class SubtaskRecord(_Record):
    """A subtask of a plan in which calls wait."""

    name: str
    answer: str = ""
    """"" while calls of it wait."""
    completed: bool = False
    attempts: NonNegativeInt = 0
    rounds: NonNegativeInt = 0
    advised: Few[str] = ()
    """Advice from the judgements of earlier attempts."""
    nearest: str = ""
    """The best answer so far that was not accepted."""
    entries: Several[EntryRecord] = ()
    """Its own conversation, from the request on; empty when it is done."""


class PlanRecord(_Record):
    """A plan in which calls wait; the question is the last entry of the state."""

    subtasks: Annotated[tuple[SubtaskRecord, ...], Field(min_length=1, max_length=MAX_SUBTASKS), FailFast()]


class SourceRecord(_Record):
    number: PositiveInt
    title: str
    document_id: str | None = None


def waiting_calls(entries: Sequence[EntryRecord], plan: PlanRecord | None) -> tuple[CallRecord, ...]:
    """The calls that wait at the end of a conversation, or in the subtasks of its plan."""
    conversations = [entries, *(subtask.entries for subtask in (plan.subtasks if plan else ()))]
    last = [conversation[-1] for conversation in conversations if conversation]
    return tuple(call for entry in last if isinstance(entry, RoundRecord) for call in entry.waiting)


class State(_Record):
    """A conversation up to the end of a run."""

    strategy: str
    """The name of the one that made it: only the same one goes on with calls that wait."""
    entries: Several[EntryRecord] = ()
    plan: PlanRecord | None = None
    sources: Several[SourceRecord] = ()
    """Sources of this conversation, in the order of their numbers; not all of them in a long one."""
    last_source: NonNegativeInt = 0
    """The highest number that a source of this conversation has had."""
    last_call: NonNegativeInt = 0
    """How many calls of this conversation have waited."""

    @property
    def conversations(self) -> tuple[tuple[EntryRecord, ...], ...]:
        """The entries, and those of each subtask."""
        return self.entries, *(subtask.entries for subtask in (self.plan.subtasks if self.plan else ()))

    @property
    def waiting(self) -> tuple[CallRecord, ...]:
        """The calls that wait for an approval."""
        return waiting_calls(self.entries, self.plan)

    def redacted(self, secrets: Redactor) -> Self:
        """The same without these secrets; arguments stay JSON."""
        return self.with_texts(secrets.text, secrets.json_text)

    def with_texts(self, change: Callable[[str], str], change_json: Callable[[str], str]) -> Self:
        """The same with each text changed; those that are JSON, by ``change_json``."""

        def changed(value: Any, name: str = "") -> Any:  # noqa: ANN401 - a record's fields
            match value:
                case str():
                    return change_json(value) if name == "arguments" else change(value) if name != "kind" else value
                case dict():
                    return {key: changed(item, key) for key, item in in_turns(value.items())}
                case tuple():
                    return tuple(changed(item) for item in in_turns(value))
                case _:
                    return value

        return type(self).model_validate(changed(self.model_dump()))
