"""What one run is made of: everything in it is made here, handed down, and gone when the run is over.

In: the parameters, the host and a strategy's policy texts. Out: the callers, deadlines and transcripts that loops are
built from, and the event that ends a run.
"""

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dify_plugin.entities.model.message import PromptMessage, PromptMessageContentUnionTypes, PromptMessageTool
from gevent.lock import BoundedSemaphore

from internal.answer import AnswerRule
from internal.calls.guards import RepeatGuard
from internal.calls.rounds import ToolRounds
from internal.calls.runner import ToolRunner
from internal.conversation.opening import file_parts, opening_messages, visible_history
from internal.conversation.transcript import HostHabits, Transcript
from internal.conversation.window import Window
from internal.host.clock import TOOL_PHASE_SHARE, Clock, Deadline
from internal.host.session import HostSession
from internal.loop import AgentLoop, Audience, LoopLimits
from internal.model.turn import ModelCaller
from internal.node.params import StrategyParams
from internal.policy import PolicyTexts, build_system_instruction, read_policy_overrides
from internal.report.events import (
    AnswerBreak,
    AnswerText,
    CallsAnswered,
    Event,
    ModelFinished,
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
from internal.report.usage import Usage
from internal.results.files import FileNames
from internal.steps import Ending
from internal.text.redaction import KnownSecrets, Redactor
from internal.tools.toolbox import Tool, Toolbox
from prompt import template


@dataclass
class Tally:
    """What a run has cost and done so far, told by its events; so nothing is lost with a loop that is given up."""

    usage: Usage = field(default_factory=Usage)
    tool_rounds: list[CallsAnswered] = field(default_factory=list)

    def watch(self, events: Iterable[Event]) -> Generator[Event, None, None]:
        for event in events:
            if isinstance(event, ModelFinished):
                self.usage += event.usage
            elif isinstance(event, CallsAnswered):
                self.tool_rounds.append(event)
            yield event


@dataclass(frozen=True)
class LoopPart:
    """What a loop has of a run: of its time, its log and its screen."""

    tool_share: float = TOOL_PHASE_SHARE
    """Of the run's time, from its beginning; then the tool phase ends."""
    end_share: float = 1
    """Then the closing answer ends."""
    maximum_iterations: int | None = None
    """Rounds in which tools may run; None for as many as the node allows."""
    is_seen: bool = True
    """Whether the user sees what the model says."""
    parent: str | None = None
    """The log node that its rounds hang from."""
    asked: int = 0
    """Turns that an earlier loop under the same log node asked for."""


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
    """On the clock; what is done before the first model call counts too."""
    offers_tools: bool = True
    """Whether any of the run's requests offers a tool, virtual ones included."""
    bibliography: Bibliography = field(default_factory=Bibliography)
    tally: Tally = field(default_factory=Tally)
    habits: HostHabits = field(default_factory=HostHabits)
    file_names: FileNames = field(default_factory=FileNames)

    @cached_property
    def instruction(self) -> str:
        return build_system_instruction(
            self.params.instruction, self.params.prompt_policy_overrides, defaults=self.policy
        )

    @cached_property
    def slots(self) -> BoundedSemaphore:
        """Tool calls that may be under way at once, over all loops of the run."""
        return BoundedSemaphore(self.params.parallel_tool_calls)

    def deadline(self, share: float) -> Deadline:
        """The moment when this share of the run's time is over."""
        return Deadline(self.clock, self.started + self.params.maximum_seconds * share)

    def models(self, toolbox: Toolbox) -> ModelCaller:
        """Calls the model with these tools in every request."""
        model = self.params.model
        tools = [_without_secrets(tool, self.secrets.node) for tool in toolbox.prompt_tools]
        window = Window(tools, model.context_size, model.max_tokens)
        stop = () if self.offers_tools else model.stop
        return ModelCaller(self.host, toolbox, model, window, self.clock, self.secrets, stop)

    def tools(self, toolbox: Toolbox) -> ToolRunner:
        return ToolRunner(
            self.host, toolbox, self.clock, self.slots, self.params.tool_result_limit, self.secrets, self.file_names
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
        return AgentLoop(
            models=models,
            rounds=ToolRounds(self.tools(models.toolbox), transcript, self.bibliography, guard or RepeatGuard()),
            answer=answer,
            limits=LoopLimits(
                maximum_iterations=part.maximum_iterations or params.maximum_iterations,
                tool_deadline=self.deadline(part.tool_share),
                end=self.deadline(part.end_share),
            ),
            audience=Audience(params.emit_intermediate_thoughts and part.is_seen, part.is_seen, params.query),
            parent=part.parent,
            asked=part.asked,
        )

    def begin(self) -> Generator[Event, None, None]:
        """What has to be said and numbered before the first model call."""
        overrides = read_policy_overrides(self.params.prompt_policy_overrides)
        for note in (*self.params.notes, *overrides.notes, *self.toolbox.notes):
            yield Noted(note)
        if self.params.model.stop and self.offers_tools:
            # The OpenAI plugin discards a turn's tool calls when a stop word comes: docs/model-facts.md, "Stop words".
            yield Noted("model: the completion parameter 'stop' is dropped, since it would discard tool calls")
        self.bibliography.open_with(read_context(self.params.context))

    @cached_property
    def parts(self) -> tuple[PromptMessageContentUnionTypes, ...]:
        """This turn's files, fetched once."""
        return file_parts(self.params.files, self.params.model, self.deadline(1).left())

    @cached_property
    def history(self) -> tuple[PromptMessage, ...]:
        """Read once."""
        return visible_history(self.params.model)

    @property
    def question(self) -> str:
        return self.params.query if self.params.query.strip() else template.SEE_ATTACHED_FILES

    def transcript(self, text: str) -> Transcript:
        """A conversation that opens with the system prompt, the history, and a message of context, text and files."""
        context = context_block(self.bibliography.context())
        whole = "\n\n".join(part for part in (context, text) if part)
        return Transcript(opening_messages(self.history, self.instruction, whole, self.parts), self.habits)

    def finish(
        self,
        ending: Ending,
        variables: Mapping[str, Any] | None = None,
        decisions: Mapping[str, Any] | None = None,
        answer_tool: Tool | None = None,
    ) -> Generator[Event, None, None]:
        """Say what has not been said yet, and end the run."""
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
                decisions=decisions or {},
            )
        )


def _without_secrets(tool: PromptMessageTool, secrets: Redactor) -> PromptMessageTool:
    return tool.model_copy(
        update={"description": secrets.text(tool.description), "parameters": secrets.values(tool.parameters)}
    )
