"""One run: everything that lives as long as the run is made here and passed on.

In: the parameters, the host and a strategy's policy texts. Out: the callers, deadlines and transcripts that loops are
built from, and the event that ends a run.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dify_plugin.entities.model.llm import LLMModelConfig
from dify_plugin.entities.model.message import PromptMessageContentUnionTypes
from gevent.lock import BoundedSemaphore

from internal.answer import AnswerRule
from internal.budget import Budget
from internal.calls.approvals import Approvals
from internal.calls.judging import RepeatGuard
from internal.calls.rounds import ToolRounds
from internal.calls.runner import ToolRunner
from internal.conversation.long_results import LongResults
from internal.conversation.opening import file_parts, opening_messages, user_message
from internal.conversation.restored import messages_of
from internal.conversation.transcript import HostHabits, Transcript
from internal.conversation.window import Window
from internal.dialogue import Dialogue
from internal.host.clock import Clock, Deadline
from internal.host.session import HostSession
from internal.loop import AgentLoop
from internal.model.in_use import ModelInUse
from internal.model.turn import ModelCaller
from internal.node.params import ExtraOutput, StrategyParams
from internal.part import Audience, LoopLimits, LoopPart
from internal.policy import PolicyOverrides, PolicyTexts, compose_instruction, read_policy_overrides
from internal.report.events import (
    Event,
    Noted,
    SpanFinished,
    SpanStarted,
)
from internal.report.source_reading import read_context
from internal.report.sources import Bibliography, context_block
from internal.report.tally import Tally
from internal.report.tool_calls import ValidCall
from internal.state.records import EntryRecord, RoundRecord, UserRecord
from internal.steps import Ending
from internal.text.notes import OurWords, Quoting
from internal.text.redaction import KnownSecrets
from internal.tools.toolbox import Toolbox, ToolKind


@dataclass(frozen=True)
class Run[P: StrategyParams]:
    """One invocation of a strategy."""

    params: P
    toolbox: Toolbox
    """The node's tools, without virtual ones."""
    host: HostSession
    secrets: KnownSecrets
    policy: PolicyTexts
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
    def overrides(self) -> PolicyOverrides:
        return read_policy_overrides(self.params.prompt_policy_overrides)

    @cached_property
    def instruction(self) -> str:
        return compose_instruction(self.params.instruction, self.overrides, self.policy)

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
        for note in (*self.dialogue.notes, *self.params.notes, *self.overrides.notes, *self.toolbox.notes):
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
        judged = self.budget.allow(
            [resumption.judge(call, self.toolbox, self.deadline(1).left()) for call in waiting.waiting]
        )
        self.approvals.has_acted |= any(isinstance(call, ValidCall) for call in judged)
        yield from loop.rounds.resume(waiting, judged, parent, loop.limits.tool_deadline)
        if resumption.has_question:
            text = "\n\n".join(part for part in (self._new_context, self.dialogue.question) if part)
            record = self.dialogue.question_record(self._new_context)
            loop.rounds.transcript.append_question(user_message(text, self.parts[0]), record)
        yield SpanFinished(parent, self.clock.now() - started)
