"""The function-calling agent, and the start of every run."""

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from dify_plugin.core.runtime import Session
from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.model.llm import LLMMode
from gevent.lock import BoundedSemaphore
from pydantic_core import to_json

from internal.budget import Budget
from internal.calls.judging import Approvals, refusing_secrets
from internal.calls.runner import ToolRunner
from internal.clock import Clock, Deadline, give_way_if_due, in_turns
from internal.end import Result, finish, kept_alive
from internal.errors import InvalidParameters, OurWords, Sentence, reported
from internal.events import Event, LogNote, RunTotals
from internal.host.session import HostSession
from internal.memory.records import found_tools, waiting_files
from internal.memory.state import decode
from internal.model.turn import ModelCaller, ModelWithFallback
from internal.node.model import ModelSelection, file_parts, read_fallback_model
from internal.node.params import CallForm, ExtraOutput, StrategyParams, node_secrets
from internal.node.skills import Skills
from internal.node.tool_search import ToolSearch
from internal.node.tools import Toolbox, build_toolbox, name_files
from internal.node.virtual_tools import RESERVED_NAMES, answer_tool
from internal.policy import DEFAULT_POLICY, PolicyTexts, build_system_instruction, read_policy
from internal.render.log import LogContent
from internal.render.messages import bounded, paced, render
from internal.review import AnswerReview
from internal.run import Dialogue, Run
from internal.sources import NumberedSources, context_block, read_context
from internal.text.language import language_of
from internal.text.secrets import KnownSecrets
from internal.transcript.kept_results import KeptResults
from internal.transcript.summary import Summaries
from internal.transcript.transcript import Window, estimate_tokens
from prompt import template, user_texts

_SKILLS_SHARE = 0.25
"""Share of the window for skills that earlier runs have read (docs/skills.md). The model can read others again."""
_MAX_NOTES = 100

type Strategy[P: StrategyParams] = Callable[[Run[P]], Generator[Event, None, Result]]


def function_calling(run: Run[StrategyParams]) -> Generator[Event, None, Result]:
    """Run the strategy with one transcript and one loop."""
    loop = run.first_loop(run.answering(run.toolbox))
    answer_review = AnswerReview(run)
    ending = yield from kept_alive(run, answer_review.answer(loop))
    return Result(ending, loop.rounds.transcript.steps, variables=answer_review.variables)


@dataclass(frozen=True)
class Blueprint[P: StrategyParams]:
    """The parts of a strategy that ``run_agent`` needs."""

    name: str
    """The name of the strategy. Only the same strategy continues its waiting calls."""
    policy: PolicyTexts
    params_type: type[P]
    execute: Strategy[P]
    needs_tool_calls: bool = False
    """Whether the strategy needs tool calls even if the node has no tools, because it uses virtual tools."""


FUNCTION_CALLING = Blueprint("gpt5_function_calling", DEFAULT_POLICY, StrategyParams, function_calling)


def run_agent[P: StrategyParams](
    parameters: Mapping[str, Any],
    session: Session,
    blueprint: Blueprint[P],
    clock: Clock | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Generator[AgentInvokeMessage, None, None]:
    """Run a strategy once. ``environment`` has the settings of the whole plugin.

    Raises:
        InvokeError: the run failed. The error is one of the five that Dify knows, and logs and thoughts are closed.
    """
    yield from reported(_run(parameters, session, blueprint, clock or Clock(), LogContent.read(environment)))


def _run[P: StrategyParams](
    parameters: Mapping[str, Any], session: Session, blueprint: Blueprint[P], clock: Clock, log_content: LogContent
) -> Generator[AgentInvokeMessage, None, None]:
    run = built(parameters, session, blueprint, clock)
    events = run.totals.watch(_events(run, blueprint.execute))
    known = replace(log_content, tools=run.answering(run.toolbox).tools)
    messages = render(
        events,
        run.models.secrets,
        known,
        may_ask=run.toolbox.asks_first,
        last_words=user_texts.FAILED_AFTER_TEXT[language_of(run.dialogue.words)],
    )
    yield from paced(in_turns(bounded(messages)), clock)


def _events[P: StrategyParams](run: Run[P], strategy: Strategy[P]) -> Generator[Event, None, None]:
    yield from run.notes
    yield from finish(run, (yield from strategy(run)))


def writes_calls(model: ModelSelection, form: CallForm, *, is_asked: bool) -> bool:
    """Return whether the model writes its calls as text. ``is_asked`` says whether the run needs calls at all.

    Raises:
        InvalidParameters: the model cannot make calls in any form, or not in the form that the node sets.
    """
    if form is CallForm.NATIVE or (form is CallForm.AUTO and model.lists_tool_calls()):
        if is_asked and not model.can_call_tools():
            advice = "set it to auto or text, or choose a model with the feature 'tool-call'"
            raise InvalidParameters(f"parameter 'tool_calls': {model.config.model} has no native tool calls; {advice}")
        return False
    if is_asked and model.config.mode == LLMMode.COMPLETION.value:
        advice = "remove the tools, or choose a chat model"
        raise InvalidParameters(f"parameter 'model': {model.config.model} completes texts and calls no tools; {advice}")
    return True


def _on_results(policy: str, skills: Skills, toolbox: Toolbox) -> str:
    """Return the default policy for results, plus the rules for skills and references if they are used."""
    lines = [policy]
    if skills.by_name:
        lines.append(template.SKILLS_ARE_INSTRUCTIONS)
    if toolbox.takes_results:
        lines.append(template.REFERENCES_POLICY)
    return "\n".join(lines)


def _notes_on_tools(toolbox: Toolbox, model: ModelSelection, *, offers_tools: bool) -> Iterator[OurWords]:
    if toolbox.held_back:
        count = len(toolbox.tools)
        offered = len(toolbox.prompt_tools)
        yield OurWords(f"tools: of {count}, prompts offer {offered} at first; find_tools finds the others")
    if model.stop and offers_tools:
        # The OpenAI plugin discards the tool calls of a turn with a stop word: docs/model-facts.md, "Stop words".
        yield OurWords("model: the completion parameter 'stop' is dropped, since it would discard tool calls")


def _first(notes: Sequence[Sentence]) -> Iterator[Sentence]:
    """Yield only as many notes as a person would read, so that a completely wrong list does not fill the log."""
    yield from notes[:_MAX_NOTES]
    if len(notes) > _MAX_NOTES:
        yield OurWords(f"{len(notes) - _MAX_NOTES:,} more notes of this kind are left out")


def built[P: StrategyParams](
    parameters: Mapping[str, Any], session: Session, blueprint: Blueprint[P], clock: Clock
) -> Run[P]:
    """Build everything that lives as long as a run."""
    started = clock.now()
    turn = perf_counter()
    params = blueprint.params_type.model_validate(parameters)
    state = decode(params.state)
    turn = give_way_if_due(turn)
    of_the_node = node_secrets(params.tools)
    params = params.redacted(of_the_node)
    secrets = KnownSecrets(of_the_node)
    if state:
        state = state.redacted(of_the_node)
    model = params.model
    in_use = ModelWithFallback(model.config, read_fallback_model(params.fallback_model), model.defaults)
    submit = None
    if params.answer_schema.strip():
        submit = refusing_secrets(answer_tool(params.answer_schema), secrets)
    turn = give_way_if_due(turn)
    toolbox = build_toolbox(
        params.tools,
        allowed=params.allowed_tools,
        naming={"approval_required": params.approval_required, "answer_tools": params.answer_tools},
        files={**waiting_files(state), **name_files(params.files)},
        reserved=RESERVED_NAMES,
    ).holding_back(params.tools_in_prompt)
    skills = Skills.of(params.skills, state.skills if state else ())
    needs_calls = (
        blueprint.needs_tool_calls or bool(skills.by_name) or submit is not None or bool(params.answer_criteria.strip())
    )
    offers_tools = bool(toolbox.tools) or needs_calls
    calls_in_text = writes_calls(model, params.tool_calls, is_asked=offers_tools)
    dialogue = Dialogue.of(params, toolbox, blueprint.name, state)
    turn = give_way_if_due(turn)
    noted: list[Sentence] = [*dialogue.notes, *params.notes]
    policy = read_policy(params.prompt_policy_overrides, blueprint.policy, noted.append)
    if policy.tool_results_policy == blueprint.policy.tool_results_policy:
        policy = replace(policy, tool_results_policy=_on_results(policy.tool_results_policy, skills, toolbox))
    noted += toolbox.notes
    noted += _notes_on_tools(toolbox, model, offers_tools=offers_tools)
    turn = give_way_if_due(turn)
    numbered_sources = NumberedSources(state.last_source if state else 0)
    numbered_sources.add(read_context(params.context) if dialogue.has_question else ())
    left = Deadline(clock, started + params.maximum_seconds).left()
    files, of_files = file_parts(params.files if dialogue.has_question else (), model, left)
    said = dialogue.said(params, context_block(numbered_sources.entries()))
    give_way_if_due(turn)
    host = HostSession(session)
    budget = Budget(params.maximum_total_tokens, params.maximum_tool_calls)
    slots = BoundedSemaphore(params.parallel_tool_calls)
    stop = model.stop
    if offers_tools:
        stop = ()
    settings = [in_use.first, in_use.fallback, stop]
    window = Window(toolbox.prompt_tools, model.context_size, model.max_tokens, len(to_json(settings)))
    known = skills.known(window.prompt_tokens * _SKILLS_SHARE, estimate_tokens)
    if known:
        names = ", ".join(repr(skill.name) for skill in known)
        noted.append(OurWords(f"skills: the system prompt has those that were read before: {names}"))
    return Run(
        params=params,
        toolbox=toolbox,
        submit=submit,
        clock=clock,
        started=started,
        dialogue=dialogue,
        policy=policy,
        instruction=build_system_instruction(params.instruction, policy, skills=skills.block(known)),
        said=said,
        task=dialogue.task(said),
        files=files,
        models=ModelCaller(
            host, toolbox, in_use, window, clock, secrets, budget, Summaries(), stop, calls_in_text, params.thought_tags
        ),
        tools=ToolRunner(
            host,
            toolbox,
            clock,
            slots,
            secrets,
            budget,
            ToolSearch(toolbox, found_tools(state, toolbox)),
            skills,
            params.tool_result_limit,
            keeps_pictures=model.can_take("image"),
            calls_in_text=calls_in_text,
        ),
        budget=budget,
        numbered_sources=numbered_sources,
        approvals=Approvals(secrets, state.last_call if state else 0),
        totals=RunTotals(keeps_thoughts=ExtraOutput.THOUGHTS in params.extra_outputs),
        kept_results=KeptResults(given=state.last_result if state else 0),
        notes=(*map(LogNote, _first(noted)), *(LogNote(note, is_row=True) for note in _first(of_files))),
    )
