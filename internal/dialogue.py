"""The conversation that a run is one turn of.

In: the parameters, and the state of an earlier run. Out: what was said before, what the user says now, and how calls go
on that wait for an answer.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from dify_plugin.entities.model.message import PromptMessage

from internal.calls.approvals import Resumption
from internal.conversation.opening import visible_history
from internal.conversation.recording import earlier_media, records_of_history, settled
from internal.conversation.restored import messages_of
from internal.node.params import StrategyParams, no_question
from internal.report.sentences import deciding_text
from internal.state.records import EntryRecord, PlanRecord, RoundRecord, State, UserRecord
from internal.text.notes import OurWords, Sentence
from internal.tools.toolbox import Toolbox
from prompt import template


@dataclass(frozen=True)
class Dialogue:
    """What was said before a run, and what the user says in it."""

    params: StrategyParams
    toolbox: Toolbox
    strategy: str
    """Its name: only the same strategy goes on with calls that wait."""
    state: State | None = None
    """Of an earlier run; it takes the place of the node's memory."""

    @cached_property
    def resumption(self) -> Resumption | None:
        """How calls go on that an earlier run of this strategy left waiting; None if there are none, or no answer."""
        if self.state is None or self.state.strategy != self.strategy:
            return None
        return Resumption.of(self.state, self.params.approval, self.params.query)

    @property
    def notes(self) -> Iterator[Sentence]:
        """What of the approval means nothing; and why calls count as not approved, where it is not the reason."""
        if self.resumption:
            yield from self.resumption.notes(self.waiting_ids)
        if self.state is None or self.resumption or not self.state.waiting:
            return
        number = len(self.state.waiting)
        result = (
            f"{number} waiting calls count as not approved" if number > 1 else "1 waiting call counts as not approved"
        )
        if self.state.strategy != self.strategy:
            yield OurWords(f"state: it is of another strategy, so {result}")
        else:
            yield OurWords(f"approval: the user gave none, so {result}")

    @property
    def waiting_round(self) -> RoundRecord | None:
        """The round that an earlier run left open; None where nothing waits, or only in subtasks."""
        last = self.state.entries[-1] if self.state and self.resumption and self.state.entries else None
        return last if isinstance(last, RoundRecord) else None

    @property
    def waiting_plan(self) -> PlanRecord | None:
        """The plan in which calls wait, if any do."""
        return self.state.plan if self.state and self.resumption else None

    @property
    def asked(self) -> UserRecord | None:
        """The question of the run that goes on here; None if none does."""
        entries = self.state.entries if self.state and self.resumption else ()
        return next((entry for entry in reversed(entries) if isinstance(entry, UserRecord)), None)

    @property
    def waiting_ids(self) -> frozenset[str]:
        """Of every call that waits, in all subtasks."""
        return frozenset(call.id for call in self.state.waiting) if self.state else frozenset()

    @cached_property
    def earlier(self) -> tuple[EntryRecord, ...]:
        """The conversation before this run; where calls wait, up to them. The node's memory only for a state."""
        if self.state is None:
            return tuple(records_of_history(self.history)) if self.params.puts_out_state else ()
        if self.resumption is None:
            return settled(self.state)
        return self.state.entries[:-1]

    @cached_property
    def history(self) -> tuple[PromptMessage, ...]:
        """What stands before this run in a prompt."""
        if self.state is None:
            return visible_history(self.params.model)
        return tuple(messages_of(self.earlier, self.toolbox))

    @property
    def has_question(self) -> bool:
        """Whether the user says more in this turn than the answer to calls that waited."""
        return self.resumption is None or self.resumption.has_question

    @property
    def question(self) -> str:
        """What the user says in this turn."""
        return self.params.query if self.params.query.strip() else template.SEE_ATTACHED_FILES

    @property
    def task(self) -> str:
        """What the answer is for: the question, or that of the run which goes on, and what the user has added to it."""
        if self.asked is None:
            return self.question
        return f"{self.asked.text}\n\n{self.question}" if self.has_question else self.asked.text

    def question_record(self, context: str) -> UserRecord:
        """What the user says in this turn, as a later run needs it."""
        files = tuple(earlier_media(file.type.value, file.filename) for file in self.params.files)
        return UserRecord(text=self.question, files=files, context=context)

    def task_record(self, context: str) -> UserRecord:
        """What the answer is for, as a later run needs it."""
        new = self.question_record(context) if self.has_question else UserRecord(text="")
        if self.asked is None:
            return new
        contexts = "\n\n".join(part for part in (self.asked.context, new.context) if part)
        files = (*self.asked.files, *new.files)
        return self.asked.model_copy(update={"text": self.task, "files": files, "context": contexts})

    @cached_property
    def words(self) -> str:
        """What the user wrote, from which the language of our own sentences is read.

        A short answer does not change the language of the conversation; the answer to calls never does.
        """
        entries = self.state.entries if self.state else ()
        texts = [entry.text for entry in entries if isinstance(entry, UserRecord)]
        before = deciding_text(text for text in texts if text != template.SEE_ATTACHED_FILES)
        return before if before and not self.has_question else deciding_text((before, self.params.query))

    def require_question(self) -> None:
        """Check that there is something to do.

        Raises:
            InvalidParameters: nothing is asked, and no call waits that ``approval`` answers.
        """
        if not (self.resumption or self.params.query.strip() or self.params.files):
            raise no_question()
