"""The function-calling agent: one loop from the question to the answer.

In: the host's parameters and session, and a strategy's policy texts. Out: the messages of the run.
"""

import os
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dify_plugin.core.runtime import Session
from dify_plugin.entities.agent import AgentInvokeMessage

from internal.calls.judging import refusing_secrets
from internal.clock import Clock, in_turns
from internal.end import Result, finish, kept_alive
from internal.errors import InvalidParameters, Sentence, reported
from internal.events import Event
from internal.host.session import HostSession
from internal.loop import CallAnswer, TextAnswer
from internal.memory.records import waiting_files
from internal.memory.state import decode
from internal.node.model import read_fallback_model
from internal.node.params import StrategyParams, node_secrets, read_params
from internal.node.tools import Tool, Toolbox, build_toolbox, name_files
from internal.node.virtual_tools import RESERVED_NAMES, answer_tool
from internal.policy import DEFAULT_POLICY, PolicyTexts, build_system_instruction
from internal.render.messages import paced, render
from internal.render.outgoing import LogContent
from internal.review import SecondLook
from internal.run import Dialogue, Run
from internal.text.secrets import KnownSecrets


def function_calling(run: Run[StrategyParams], submit: Tool | None) -> Generator[Event, None, None]:
    """One transcript, one loop."""
    yield from run.begin()
    toolbox = run.toolbox.with_tool(submit) if submit else run.toolbox
    loop = run.first_loop(run.models(toolbox), CallAnswer() if submit else TextAnswer())
    second_look = SecondLook(run)
    ending = yield from kept_alive(run, run.resumed_first(loop, second_look.answer(loop)))
    yield from finish(run, Result(ending, loop.rounds.transcript.record, variables=second_look.variables), submit)


@dataclass(frozen=True)
class Blueprint[P: StrategyParams]:
    """What a strategy class gives to ``run_agent``."""

    name: str
    """The strategy's: only the same strategy goes on with calls that wait."""
    policy: PolicyTexts
    params_type: type[P]
    execute: Callable[[Run[P], Tool | None], Generator[Event, None, None]]
    """Runs the strategy; given the tool that takes the answer where the node sets ``answer_schema``."""
    needs_tool_calls: bool = False
    """Whether it calls virtual tools even when the node has no tools."""


FUNCTION_CALLING = Blueprint("gpt5_function_calling", DEFAULT_POLICY, StrategyParams, function_calling)


def run_agent[P: StrategyParams](
    parameters: Mapping[str, Any],
    session: Session,
    blueprint: Blueprint[P],
    clock: Clock | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Generator[AgentInvokeMessage, None, None]:
    """Run a strategy once; ``environment`` holds the settings of the whole plugin.

    Raises:
        InvokeError: exactly one of the five that Dify knows; logs and thoughts are closed before.
    """
    yield from reported(_run(parameters, session, blueprint, clock or Clock(), LogContent.read(environment)))


def _run[P: StrategyParams](
    parameters: Mapping[str, Any], session: Session, blueprint: Blueprint[P], clock: Clock, log_content: LogContent
) -> Generator[AgentInvokeMessage, None, None]:
    started = clock.now()
    params = read_params(parameters, blueprint.params_type)
    state = decode(params.state)
    of_the_node = node_secrets(params.tools)
    params, secrets = params.redacted(of_the_node), KnownSecrets(of_the_node)
    state = state.redacted(of_the_node) if state else None
    fallback = read_fallback_model(params.fallback_model)
    submit = refusing_secrets(answer_tool(params.answer_schema), secrets) if params.answer_schema.strip() else None
    toolbox = build_toolbox(
        params.tools,
        allowed=params.allowed_tools,
        needing_approval=params.approval_required,
        files={**waiting_files(state), **name_files(params.files)},
        reserved=RESERVED_NAMES,
    )
    needs_calls = blueprint.needs_tool_calls or submit is not None or bool(params.answer_criteria.strip())
    if not params.model.can_call_tools():
        _require_tool_calls(params, toolbox, needed=needs_calls)
    offers_tools = bool(toolbox.tools) or needs_calls
    dialogue = Dialogue(params, toolbox, blueprint.name, state)
    dialogue.require_question()
    texts, policy_notes = (params.instruction, params.prompt_policy_overrides), list[Sentence]()
    run = Run(
        params=params,
        toolbox=toolbox,
        host=HostSession(session),
        secrets=secrets,
        instruction=build_system_instruction(*texts, defaults=blueprint.policy, note=policy_notes.append),
        policy_notes=policy_notes,
        clock=clock,
        started=started,
        dialogue=dialogue,
        offers_tools=offers_tools,
        fallback=fallback,
    )
    events = run.tally.watch(blueprint.execute(run, submit))
    known = replace(log_content, tools=toolbox.with_tool(submit).tools if submit else toolbox.tools)
    messages = render(events, secrets, known, may_ask=toolbox.asks_first)
    yield from paced(in_turns(messages), clock)


def _require_tool_calls(params: StrategyParams, toolbox: Toolbox, *, needed: bool) -> None:
    cannot = f"parameter 'model': {params.model.config.model} cannot call tools"
    advice = "choose a model with the feature 'tool-call'"
    if toolbox.tools:
        raise InvalidParameters(f"{cannot}, and the node has {len(toolbox.tools)}; {advice}, or remove the tools")
    if needed:
        which = "which this strategy, its answer_schema or its answer_criteria needs"
        raise InvalidParameters(f"{cannot}, {which}; {advice}")
