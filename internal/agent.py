"""One run of the agent, put together.

In: the host's parameters and session, and a strategy's policy texts. Out: the messages of the run. Everything a run
needs is made here and handed down; nothing outlives it.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dify_plugin.core.runtime import Session
from dify_plugin.entities.agent import AgentInvokeMessage
from gevent.lock import BoundedSemaphore

from internal.answer import no_answer_sentence
from internal.attachments import opening_messages
from internal.deadline import SERVERLESS_SECONDS, TOOL_PHASE_SHARE, Clock, Deadline
from internal.errors import InvalidParameters
from internal.events import AnswerBreak, AnswerText, Event, Noted, RunFinished, RunSummary, StopReason
from internal.loop import AgentLoop
from internal.model_turn import ModelCaller
from internal.params import StrategyParams, read_params
from internal.policy import PolicyTexts, build_system_instruction, read_policy_overrides
from internal.render import render
from internal.session import HostSession
from internal.sources import Bibliography, read_context
from internal.tool_runner import ToolRunner
from internal.toolbox import Toolbox, build_toolbox
from internal.transcript import Transcript
from internal.window import Window


def run_agent(
    parameters: Mapping[str, Any], session: Session, policy: PolicyTexts, clock: Clock | None = None
) -> Generator[AgentInvokeMessage, None, None]:
    """Run the agent once.

    Raises:
        InvalidParameters: before any model call.
        ModelCallFailed, PromptTooLarge: with logs and thoughts closed.
    """
    params = read_params(parameters)
    toolbox = build_toolbox(params.tools, allowed=params.allowed_tools, files=params.files)
    if toolbox.tools and not params.model.can_call_tools():
        raise InvalidParameters(
            f"parameter 'model': {params.model.config.model} cannot call tools, and the node has "
            f"{len(toolbox.tools)}; choose a model with the feature 'tool-call', or remove the tools"
        )
    clock = clock or Clock()
    run = _Run(params, toolbox, HostSession(session), policy, clock, clock.now())
    yield from render(run.events(), toolbox.redactor)


@dataclass(frozen=True)
class _Run:
    """What one run is made of."""

    params: StrategyParams
    toolbox: Toolbox
    host: HostSession
    policy: PolicyTexts
    clock: Clock
    started: float
    """On the clock; what is done before the first model call counts too."""
    bibliography: Bibliography = field(default_factory=Bibliography)

    def events(self) -> Generator[Event, None, None]:
        params = self.params
        overrides = read_policy_overrides(params.prompt_policy_overrides)
        for note in (*params.notes, *overrides.notes, *self.toolbox.notes):
            yield Noted(note)
        self.bibliography.add(read_context(self.toolbox.redactor.json(params.context)))
        ending = yield from self._loop().run()
        answer = ending.text
        if not answer and ending.reason is not StopReason.ANSWERED:  # an image alone is an answer too
            answer = no_answer_sentence(ending.reason, params.query)
            yield AnswerBreak()
            yield AnswerText(answer)
        yield RunFinished(
            RunSummary(
                stop_reason=ending.reason,
                rounds=ending.rounds,
                answer=answer,
                usage=ending.usage,
                tool_runs=ending.tool_runs,
                sources=self.bibliography.entries(),
            )
        )

    def _loop(self) -> AgentLoop:
        params, clock, redactor = self.params, self.clock, self.toolbox.redactor
        seconds = min(params.maximum_seconds, SERVERLESS_SECONDS) if self.host.is_serverless else params.maximum_seconds
        end = Deadline(clock, self.started + seconds)
        instruction = build_system_instruction(params.instruction, params.prompt_policy_overrides, defaults=self.policy)
        window = Window(self.toolbox.prompt_tools, params.model.context_size, params.model.max_tokens)
        slots = BoundedSemaphore(params.parallel_tool_calls)
        return AgentLoop(
            models=ModelCaller(self.host, params.model, window, clock, redactor),
            tools=ToolRunner(self.host, self.toolbox, clock, slots, params.tool_result_limit, redactor),
            transcript=Transcript(opening_messages(params, instruction, self.bibliography.entries(), end.left())),
            bibliography=self.bibliography,
            maximum_iterations=params.maximum_iterations,
            show_thoughts=params.emit_intermediate_thoughts,
            tool_deadline=Deadline(clock, self.started + seconds * TOOL_PHASE_SHARE),
            end=end,
        )
