"""One run: everything that lives as long as the run is made here and passed on.

In: the parameters, the host and a strategy's policy texts. Out: the callers, deadlines and transcripts that loops are
built from, and the event that ends a run.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dify_plugin.entities.model.llm import LLMModelConfig
from dify_plugin.entities.model.message import PromptMessage, PromptMessageContentUnionTypes
from gevent.lock import BoundedSemaphore

from internal.answer import AnswerRule
from internal.budget import Budget
from internal.calls.guards import RepeatGuard
from internal.calls.rounds import ToolRounds
from internal.calls.runner import ToolRunner
from internal.conversation.long_results import LongResults
from internal.conversation.opening import file_parts, opening_messages, visible_history
from internal.conversation.transcript import HostHabits, Transcript
from internal.conversation.window import Window
from internal.host.clock import TOOL_PHASE_SHARE, Clock, Deadline
from internal.host.session import HostSession
from internal.loop import AgentLoop, Audience, LoopLimits
from internal.model.in_use import ModelInUse
from internal.model.turn import ModelCaller
from internal.node.params import ExtraOutput, StrategyParams
from internal.policy import PolicyOverrides, PolicyTexts, compose_instruction, read_policy_overrides
from internal.report.events import (
    AnswerBreak,
    AnswerText,
    Event,
    Noted,
    RunFinished,
    RunSummary,
    ShownTogether,
    StopReason,
)
from internal.report.sentences import no_answer_sentence
from internal.report.source_reading import read_context
from internal.report.sources import Bibliography, context_block
from internal.report.structured_output import StructuredOutput
from internal.report.tally import Tally
from internal.results.files import FileNames
from internal.steps import Ending
from internal.text.notes import OurWords
from internal.text.redaction import KnownSecrets
from internal.tools.toolbox import Tool, Toolbox, ToolKind
from prompt import template


@dataclass(frozen=True)
class LoopPart:
    """What a loop has of a run: of its time, its log and its screen."""

    tool_share: float = TOOL_PHASE_SHARE
    """Of the run's time, from its beginning; then the tool phase ends."""
    end_share: float = 1
    """Then the closing answer ends."""
    maximum_iterations: int | None = None
    """Rounds in which tools may run, 0 for a closing answer alone; None for as many as the node allows."""
    is_seen: bool = True
    """Whether the user sees what the model says; files are forwarded in any case."""
    parent: str | None = None
    """The key of the log row that its rounds stand below."""
    asked: int = 0
    """Turns that an earlier loop below the same log row asked for."""
    closes_on_budget: bool = True
    """Whether a closing answer follows when the run's budget of tokens or tool calls is reached."""


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
    offers_tools: bool = True
    """Whether any of the run's requests offers a tool, virtual ones included."""
    fallback: LLMModelConfig | None = None
    """The model that takes over when the node's own fails for good."""
    bibliography: Bibliography = field(default_factory=Bibliography)
    habits: HostHabits = field(default_factory=HostHabits)
    file_names: FileNames = field(default_factory=FileNames)
    long_results: LongResults = field(default_factory=LongResults)

    @cached_property
    def tally(self) -> Tally:
        return Tally(keeps_thoughts=ExtraOutput.THOUGHTS in self.params.extra_outputs)

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
            self.file_names,
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
            ),
            answer=answer,
            limits=LoopLimits(
                maximum_iterations=rounds,
                tool_deadline=self.deadline(part.tool_share),
                end=self.deadline(part.end_share),
                budget=self.budget if runs_tools else Budget(),
                closes_on_budget=part.closes_on_budget,
            ),
            audience=Audience(params.emit_intermediate_thoughts and part.is_seen, part.is_seen, params.query),
            parent=part.parent,
            asked=part.asked,
        )

    def begin(self) -> Generator[Event, None, None]:
        """Note what was ignored or left out, and number the sources of the context."""
        for note in (*self.params.notes, *self.overrides.notes, *self.toolbox.notes):
            yield Noted(note)
        if self.params.model.stop and self.offers_tools:
            # The OpenAI plugin discards a turn's tool calls when a stop word comes: docs/model-facts.md, "Stop words".
            reason = "it would discard tool calls"
            yield Noted(OurWords(f"model: the completion parameter 'stop' is dropped, since {reason}"))
        self.bibliography.open_with(read_context(self.params.context))

    @cached_property
    def parts(self) -> tuple[PromptMessageContentUnionTypes, ...]:
        """This turn's files as parts of the user's message, fetched once."""
        return file_parts(self.params.files, self.params.model, self.deadline(1).left())

    @cached_property
    def history(self) -> tuple[PromptMessage, ...]:
        """Earlier turns as the model reads them."""
        return visible_history(self.params.model)

    @property
    def question(self) -> str:
        return self.params.query if self.params.query.strip() else template.SEE_ATTACHED_FILES

    def transcript(self, text: str) -> Transcript:
        """A new conversation: the system prompt, the history, and a message of context, text and files."""
        context = context_block(self.bibliography.context())
        whole = "\n\n".join(part for part in (context, text) if part)
        return Transcript(
            opening_messages(self.history, self.instruction, whole, self.parts), self.habits, self.long_results
        )

    def finish(
        self,
        ending: Ending,
        variables: Mapping[str, Any] | None = None,
        decisions: Mapping[str, Any] | None = None,
        answer_tool: Tool | None = None,
    ) -> Generator[Event, None, None]:
        """Show what the user has not seen yet, and end the run."""
        answer = ending.text
        unsaid = bool(answer) and answer_tool is not None
        if not answer and ending.reason is not StopReason.ANSWERED:  # an image alone is an answer too
            answer, unsaid = no_answer_sentence(ending.reason, self.params.query), True
        if unsaid:
            yield ShownTogether((AnswerBreak(), AnswerText(answer)))
        structured = None
        if answer_tool is not None and answer_tool.virtual_schema is not None:
            structured = StructuredOutput.of(ending.submitted, answer_tool.virtual_schema.check)
            if structured.note:
                yield Noted(structured.note)
        if note := self.budget.estimate_note():
            yield Noted(note)
        yield RunFinished(
            RunSummary(
                stop_reason=ending.reason,
                rounds=ending.rounds,
                answer=answer,
                usage=self.tally.usage,
                tool_rounds=tuple(self.tally.tool_rounds),
                sources=self.bibliography.entries(),
                structured_output=structured,
                variables=variables or {},
                extra_outputs=self.params.extra_outputs,
                thoughts=tuple(self.tally.thoughts),
                decisions=decisions or {},
            )
        )
