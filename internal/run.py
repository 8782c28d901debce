"""The conversation that a run is one turn of."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dify_plugin.entities.model.llm import LLMModelConfig
from dify_plugin.entities.model.message import PromptMessage, PromptMessageContentUnionTypes
from gevent.lock import BoundedSemaphore

from internal.budget import Budget
from internal.call import ValidCall
from internal.calls.judging import Approvals, RepeatGuard, Resumption, within_budget
from internal.calls.rounds import ToolRounds
from internal.calls.runner import ToolRunner
from internal.clock import Clock, Deadline
from internal.errors import InvalidParameters, OurWords, Quoting, Sentence
from internal.events import Event, Noted, SpanFinished, SpanStarted, Tally
from internal.host.session import HostSession
from internal.loop import AgentLoop, AnswerRule, Audience, Ending, LoopLimits, LoopPart
from internal.memory.records import (
    EntryRecord,
    PlanRecord,
    RoundRecord,
    State,
    UserRecord,
    earlier_media,
    messages_of,
    records_of_history,
    settled,
)
from internal.model.turn import ModelCaller, ModelInUse
from internal.node.params import ExtraOutput, StrategyParams
from internal.node.tools import Toolbox, ToolKind
from internal.sentences import deciding_text
from internal.sources import Bibliography, context_block, read_context
from internal.text.secrets import KnownSecrets
from internal.transcript.long_results import LongResults
from internal.transcript.opening import file_parts, opening_messages, user_message, visible_history
from internal.transcript.transcript import HostHabits, Transcript, Window
from prompt import template

# The conversation that a run is one turn of.


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
            why = "it is blank and there are no files; give the agent a question, e.g. {{#sys.query#}}"
            raise InvalidParameters(f"parameter 'query': {why}")


# One run: everything that lives as long as the run is made here and passed on.


@dataclass(frozen=True)
class Run[P: StrategyParams]:
    """One invocation of a strategy."""

    params: P
    toolbox: Toolbox
    """The node's tools, without virtual ones."""
    host: HostSession
    secrets: KnownSecrets
    instruction: str
    """The system prompt."""
    policy_notes: Sequence[Sentence]
    """What of the policy overrides was ignored."""
    clock: Clock
    started: float
    """On the clock, before anything else is done."""
    dialogue: Dialogue
    offers_tools: bool = True
    """Whether any of the run's requests offers a tool, virtual ones included."""
    fallback: LLMModelConfig | None = None
    """The model that takes over when the node's own fails for good."""
    habits: HostHabits = field(default_factory=HostHabits)
    long_results: LongResults = field(default_factory=LongResults)

    @cached_property
    def tally(self) -> Tally:
        return Tally(keeps_thoughts=ExtraOutput.THOUGHTS in self.params.extra_outputs)

    @cached_property
    def bibliography(self) -> Bibliography:
        return Bibliography(self.dialogue.state.last_source if self.dialogue.state else 0)

    @cached_property
    def approvals(self) -> Approvals:
        return Approvals(self.secrets, self.dialogue.state.last_call if self.dialogue.state else 0)

    @cached_property
    def slots(self) -> BoundedSemaphore:
        """Limits the tool calls that run at the same time, over all loops of the run."""
        return BoundedSemaphore(self.params.parallel_tool_calls)

    @cached_property
    def budget(self) -> Budget:
        """The tokens and tool calls that all loops of the run may use together."""
        return Budget(self.params.maximum_total_tokens, self.params.maximum_tool_calls)

    @cached_property
    def model_in_use(self) -> ModelInUse:
        return ModelInUse(self.params.model.config, self.fallback)

    def deadline(self, share: float) -> Deadline:
        """The moment when this share of the run's time is over."""
        return Deadline(self.clock, self.started + self.params.maximum_seconds * share)

    def models(self, toolbox: Toolbox) -> ModelCaller:
        """Calls the model with these tools in every request."""
        model = self.params.model
        window = Window(toolbox.prompt_tools, model.context_size, model.max_tokens)
        stop = () if self.offers_tools else model.stop
        return ModelCaller(self.host, toolbox, self.model_in_use, window, self.clock, self.secrets, self.budget, stop)

    def tools(self, toolbox: Toolbox) -> ToolRunner:
        return ToolRunner(
            self.host,
            toolbox,
            self.clock,
            self.slots,
            self.secrets,
            self.budget,
            keeps_json=ExtraOutput.TOOL_RESULTS in self.params.extra_outputs,
        )

    def loop(
        self,
        models: ModelCaller,
        transcript: Transcript,
        answer: AnswerRule,
        part: LoopPart | None = None,
        guard: RepeatGuard | None = None,
    ) -> AgentLoop:
        """A loop over a transcript, with what the model may call; without a part it has the whole run."""
        part, params = part or LoopPart(), self.params
        runs_tools = any(tool.kind is ToolKind.RUNS for tool in models.toolbox.tools.values())
        rounds = params.maximum_iterations if part.maximum_iterations is None else part.maximum_iterations
        return AgentLoop(
            models=models,
            rounds=ToolRounds(
                tools=self.tools(models.toolbox),
                transcript=transcript,
                bibliography=self.bibliography,
                guard=guard or RepeatGuard(),
                result_limit=params.tool_result_limit,
                approvals=self.approvals,
            ),
            answer=answer,
            limits=LoopLimits(
                maximum_iterations=rounds,
                tool_deadline=self.deadline(part.tool_share),
                end=self.deadline(part.end_share),
                budget=self.budget if runs_tools else Budget(),
                closes_on_budget=part.closes_on_budget,
            ),
            audience=Audience(params.emit_intermediate_thoughts and part.is_seen, part.is_seen, self.dialogue.words),
            parent=part.parent,
            subtask=part.subtask,
            asked=part.asked,
        )

    def begin(self) -> Generator[Event, None, None]:
        """Note what was ignored or left out, and number the sources of the context."""
        for note in (*self.dialogue.notes, *self.params.notes, *self.policy_notes, *self.toolbox.notes):
            yield Noted(note)
        if self.params.model.stop and self.offers_tools:
            # The OpenAI plugin discards a turn's tool calls when a stop word comes: docs/model-facts.md, "Stop words".
            reason = "it would discard tool calls"
            yield Noted(OurWords(f"model: the completion parameter 'stop' is dropped, since {reason}"))
        for note in self.parts[1]:
            yield Noted(note, is_row=True)
        if self.dialogue.has_question:
            self.bibliography.open_with(read_context(self.params.context))

    @cached_property
    def parts(self) -> tuple[tuple[PromptMessageContentUnionTypes, ...], tuple[Quoting, ...]]:
        """This turn's files as parts of the user's message, fetched once, and notes on those that were not.

        None where the user says no more than yes.
        """
        files = self.params.files if self.dialogue.has_question else ()
        return file_parts(files, self.params.model, self.deadline(1).left())

    @property
    def context(self) -> str:
        """The ``<context>`` blocks that the answer rests on, that of the run that goes on here included."""
        return self.task_record.context

    @cached_property
    def task_record(self) -> UserRecord:
        """What the answer is for, as a later run needs it; after ``begin``."""
        return self.dialogue.task_record(self._new_context)

    @cached_property
    def _new_context(self) -> str:
        """The sources that this run began with, which are written out once."""
        return context_block(self.bibliography.context())

    def transcript(self, text: str) -> Transcript:
        """A new conversation: the system prompt, the history, and a message of context, text and files."""
        message = user_message("\n\n".join(part for part in (self.context, text) if part), self.parts[0])
        opening = opening_messages(self.dialogue.history, self.instruction, message)
        record = self.task_record.model_copy(update={"text": text})
        return Transcript(opening, self.habits, self.long_results, [*self.dialogue.earlier, record])

    def resumed(self, entries: Sequence[EntryRecord] = ()) -> Transcript:
        """A conversation that an earlier run began, up to the calls that wait; ``entries`` follow the history."""
        begun = list(messages_of(entries, self.toolbox))
        opening = opening_messages([*self.dialogue.history, *begun], self.instruction)
        record = [*self.dialogue.earlier, *entries]
        return Transcript(opening, self.habits, self.long_results, record, kept=len(begun))

    def first_loop(self, models: ModelCaller, answer: AnswerRule, part: LoopPart | None = None) -> AgentLoop:
        """The loop over the user's question, or over the conversation in which calls wait."""
        waits = self.dialogue.waiting_round is not None
        return self.loop(models, self.resumed() if waits else self.transcript(self.dialogue.question), answer, part)

    def resumed_first(self, loop: AgentLoop, work: Generator[Event, None, Ending]) -> Generator[Event, None, Ending]:
        """Answer the calls that an earlier run left waiting in this loop's conversation, then do the work."""
        if waiting := self.dialogue.waiting_round:
            yield from self.resume(loop, waiting, "approval")
        return (yield from work)

    def resume(self, loop: AgentLoop, waiting: RoundRecord, parent: str) -> Generator[Event, None, None]:
        """Run the calls that the user approved, answer the others, and add what else the user says."""
        resumption = self.dialogue.resumption
        if resumption is None:
            return
        started = self.clock.now()
        yield SpanStarted(parent, "APPROVAL")
        judged = within_budget(
            (resumption.judge(call, self.toolbox, self.deadline(1).left()) for call in waiting.waiting), self.budget
        )
        self.approvals.has_acted |= any(isinstance(call, ValidCall) for call in judged)
        yield from loop.rounds.resume(waiting, judged, parent, loop.limits.tool_deadline)
        if resumption.has_question:
            text = "\n\n".join(part for part in (self._new_context, self.dialogue.question) if part)
            record = self.dialogue.question_record(self._new_context)
            loop.rounds.transcript.append_question(user_message(text, self.parts[0]), record)
        yield SpanFinished(parent, self.clock.now() - started)
