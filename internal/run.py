"""The parts of a run: the conversation that it continues, and the objects that its loops share."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from dify_plugin.entities.model.message import PromptMessageContentUnionTypes

from internal.budget import Budget
from internal.call import ToolOutcome
from internal.calls.judging import Approvals, RepeatGuard, Resumption
from internal.calls.runner import ToolRounds, ToolRunner
from internal.clock import Clock, Deadline
from internal.errors import InvalidParameters, OurWords, Sentence
from internal.events import Event, LogNote, RunTotals, SpanStarted, in_row
from internal.loop import AgentLoop, LoopPart
from internal.memory.records import EntryRecord, RoundRecord, State, UserRecord, earlier_media, settled
from internal.model.turn import ModelCaller
from internal.node.params import StrategyParams
from internal.node.tools import Tool, Toolbox
from internal.policy import PolicyTexts
from internal.sources import NumberedSources
from internal.text.language import deciding_text
from internal.transcript.kept_results import KeptResults
from internal.transcript.steps import EarlierMessage, EarlierStep, Step, UserInput, earlier_steps, paragraphs
from internal.transcript.transcript import Transcript
from prompt import template


@dataclass(frozen=True)
class Dialogue:
    """The conversation before a run, and the user's answer to waiting calls, if there is one."""

    strategy: str
    state: State | None
    """The state of an earlier run, which replaces the node's memory."""
    resumption: Resumption | None
    """The user's answer to calls that an earlier run of this strategy left waiting; None if none wait."""
    earlier: tuple[EarlierStep, ...]
    """The conversation before this run. If the run continues waiting calls, it ends before their round."""
    words: str
    """The user's text that determines the language of the agent's own sentences.

    A short answer does not change the language of the conversation, and an answer to waiting calls never does.
    """
    notes: tuple[Sentence, ...]
    """Notes on unusable parts of the approval, and on waiting calls that count as not approved."""

    @classmethod
    def of(cls, params: StrategyParams, toolbox: Toolbox, strategy: str, state: State | None) -> "Dialogue":
        """Read the conversation. Raises ``InvalidParameters`` if there is no question and no answer to a call."""
        is_own = state is not None and state.strategy == strategy
        resumption = None
        if state and is_own:
            resumption = Resumption.of(state, params.approval, params.query)
        if not (resumption or params.query.strip() or params.files):
            why = "it is blank and there are no files; give the agent a question, e.g. {{#sys.query#}}"
            raise InvalidParameters(f"parameter 'query': {why}")
        if state is None:
            history = params.model.visible_history(params.thought_tags)
            earlier: tuple[EarlierStep, ...] = tuple(map(EarlierMessage, history))
        else:
            earlier = earlier_steps(state.entries[:-1] if resumption else settled(state), toolbox)
        asked = (entry.text for entry in (state.entries if state else ()) if isinstance(entry, UserRecord))
        words = deciding_text(text for text in asked if text != template.SEE_ATTACHED_FILES)
        if not words or resumption is None or resumption.has_question:
            words = deciding_text((words, params.query))
        waiting = []
        if state:
            waiting = [call.id for call in state.waiting]
        notes = tuple[Sentence, ...]()
        if resumption:
            notes = tuple(resumption.notes(waiting))
        elif waiting:
            why = "state: it is of another strategy"
            if is_own:
                why = "approval: the user gave none"
            count = "1 waiting call counts"
            if len(waiting) > 1:
                count = f"{len(waiting)} waiting calls count"
            notes = (OurWords(f"{why}, so {count} as not approved"),)
        return cls(strategy, state, resumption, earlier, words, notes)

    @property
    def open(self) -> State | None:
        """The state that this run continues; None unless calls wait in it and the user has answered them."""
        if self.resumption:
            return self.state
        return None

    @property
    def has_question(self) -> bool:
        """Whether the user's message contains anything besides the answer to waiting calls."""
        return self.resumption is None or self.resumption.has_question

    def said(self, params: StrategyParams, context: str) -> UserRecord:
        """Return the user's message of this turn, with the ``<context>`` block of this run's sources."""
        text = template.SEE_ATTACHED_FILES
        if params.query.strip():
            text = params.query
        files = tuple(earlier_media(file.type.value, file.filename) for file in params.files)
        return UserRecord(text=text, files=files, context=context)

    def task(self, said: UserRecord) -> UserRecord:
        """Return the request to answer: the user's message, or the question of the continued run plus this message."""
        asked = None
        if self.open:
            asked = next((entry for entry in reversed(self.open.entries) if isinstance(entry, UserRecord)), None)
        if asked is None:
            return said
        if self.has_question:
            new = said
        else:
            new = UserRecord(text="")
        text = paragraphs(asked.text, new.text)
        context = paragraphs(asked.context, new.context)
        return asked.model_copy(update={"text": text, "files": (*asked.files, *new.files), "context": context})


@dataclass(frozen=True)
class Run[P: StrategyParams]:
    """One invocation of a strategy. ``agent.built`` creates it."""

    params: P
    toolbox: Toolbox
    """The node's tools, without virtual tools."""
    submit: Tool | None
    """The tool that takes the answer, if the node sets ``answer_schema``."""
    clock: Clock
    started: float
    """The clock time when the run began."""
    dialogue: Dialogue
    policy: PolicyTexts
    instruction: str
    said: UserRecord
    """The user's message in this turn."""
    task: UserRecord
    """The request that the agent must answer: ``said``, or the question of the continued run plus ``said``."""
    files: tuple[PromptMessageContentUnionTypes, ...]
    """This turn's files as parts of the user's message; empty if the user only answers waiting calls."""
    models: ModelCaller
    tools: ToolRunner
    budget: Budget
    """The tokens and tool calls that all loops of the run share."""
    numbered_sources: NumberedSources
    approvals: Approvals
    totals: RunTotals
    kept_results: KeptResults
    notes: tuple[LogNote, ...]
    """Notes for the log about ignored or omitted values."""

    def deadline(self, share: float) -> Deadline:
        """Return the deadline at the end of this share of the run's time."""
        return Deadline(self.clock, self.started + self.params.maximum_seconds * share)

    def answering(self, toolbox: Toolbox) -> Toolbox:
        """Return these tools and, if the node sets ``answer_schema``, the tool that takes the answer."""
        if self.submit:
            return toolbox.with_tool(self.submit)
        return toolbox

    def transcript(self, text: str) -> Transcript:
        """Return a new conversation with the system prompt, the history, and a message of context, text and files."""
        question = UserInput(self.task.model_copy(update={"text": text}), self.files)
        return self._opened([question])

    def request(self, text: str) -> Transcript:
        """Return a separate conversation with the system prompt and a message of context and text."""
        return Transcript(self.instruction, begun=[UserInput(self.task.model_copy(update={"text": text}))])

    def resumed(self, entries: Sequence[EntryRecord] = ()) -> Transcript:
        """Return a conversation from an earlier run, up to the waiting calls. ``entries`` follow the history."""
        return self._opened(earlier_steps(entries, self.toolbox))

    def _opened(self, begun: Sequence[Step]) -> Transcript:
        found = self.tools.search.found_before
        return Transcript(self.instruction, self.dialogue.earlier, begun, self.kept_results, found)

    def first_loop(self, toolbox: Toolbox, part: LoopPart | None = None) -> AgentLoop:
        """Return the loop for the user's question, or for the conversation in which calls wait."""
        waiting = None
        if self.dialogue.open:
            last = self.dialogue.open.entries[-1:]
            waiting = next((entry for entry in last if isinstance(entry, RoundRecord)), None)
        if waiting:
            transcript = self.resumed()
        else:
            transcript = self.transcript(self.said.text)
        return self.loop(transcript, toolbox, part, waiting=waiting)

    def loop(
        self,
        transcript: Transcript,
        toolbox: Toolbox,
        part: LoopPart | None = None,
        guard: RepeatGuard | None = None,
        waiting: RoundRecord | None = None,
    ) -> AgentLoop:
        """Return a loop over a transcript with these tools. Without a part the loop may use the whole run.

        The loop begins with the calls of the waiting round, which the user has answered.
        """
        part = part or LoopPart()
        params = self.params
        most = params.maximum_iterations
        if part.maximum_iterations is not None:
            most = part.maximum_iterations
        rounds = ToolRounds(
            self.tools, transcript, self.numbered_sources, guard or RepeatGuard(), self.approvals, part.subtask or ""
        )
        tool_deadline = self.deadline(part.tool_share)
        row = SpanStarted(f"{part.parent}.approval" if part.parent else "approval", "APPROVAL")
        resumed = None
        if waiting:
            resumed = in_row(row, self._resume(rounds, waiting, row.key, tool_deadline), self.clock)
        return AgentLoop(
            models=self.models.offering(rounds.equipped(toolbox)),
            rounds=rounds,
            part=part,
            maximum_iterations=most,
            tool_deadline=tool_deadline,
            end=self.deadline(part.end_share),
            show_thoughts=params.emit_intermediate_thoughts and part.is_seen,
            words=self.dialogue.words,
            before=resumed,
        )

    def _resume(
        self, rounds: ToolRounds, waiting: RoundRecord, key: str, deadline: Deadline
    ) -> Generator[Event, None, Sequence[ToolOutcome]]:
        """Run the calls that the user approved, answer the others, and append the rest of the user's message.

        The outcomes of answer tools are returned only if the user's message contains nothing besides the answer to the
        calls.
        """
        resumption = self.dialogue.resumption
        if resumption is None:
            return ()
        left = self.deadline(1).left
        judged = [resumption.judge_again(call, waiting.waiting, self.toolbox, left()) for call in waiting.waiting]
        self.approvals.note_approved(judged)
        tool_answers = yield from rounds.resume(waiting, judged, key, deadline)
        if not resumption.has_question:
            return tool_answers
        rounds.transcript.append(UserInput(self.said, self.files))
        return ()
