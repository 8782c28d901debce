"""The spans of a trace: `invoke_agent`, `chat` and `execute_tool`, with tokens; contents only where they are asked for.

Names and attributes follow the semantic conventions for generative AI (the package opentelemetry-semantic-conventions).
Groups of the log, such as rounds and subtasks, are not spans: their calls stand under what contains the group.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai
from opentelemetry.semconv.attributes.error_attributes import ERROR_TYPE

from devhost.trace.calls import Call
from devhost.trace.outcome import run_of
from devhost.trace.reader import Trace
from devhost.trace.runs import TracedRun, traced_runs
from devhost.trace.timeline import Span, timeline
from devhost.trace.turns import written_calls

type Attribute = str | int | float | bool | Sequence[str]
FAILED = "_OTHER"
"""The conventions' error type where none is known."""


@dataclass(frozen=True)
class AgentSpan:
    """Times are seconds since the trace began."""

    name: str
    is_client: bool
    """Whether it calls out of the agent, as a model call does."""
    began: float
    ended: float
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    error: str | None = None
    """Its words, which are empty without contents; None if it did not fail."""
    children: tuple["AgentSpan", ...] = ()


def agent_spans(trace: Trace, *, contents: bool) -> tuple[AgentSpan, ...]:
    """A span for each run."""
    return tuple(_of_run(trace, run, contents=contents) for run in traced_runs(trace))


def _of_run(trace: Trace, run: TracedRun, *, contents: bool) -> AgentSpan:
    strategy = trace.header.strategy
    outcome = run_of(run, strategy)
    usage = outcome.calls.spent
    attributes: dict[str, Attribute] = {
        gen_ai.GEN_AI_OPERATION_NAME: "invoke_agent",
        gen_ai.GEN_AI_AGENT_NAME: strategy,
        gen_ai.GEN_AI_PROVIDER_NAME: _provider(trace.header.model.provider),
        gen_ai.GEN_AI_REQUEST_MODEL: trace.header.model.name,
        gen_ai.GEN_AI_USAGE_INPUT_TOKENS: _whole(usage.get("prompt_tokens")),
        gen_ai.GEN_AI_USAGE_OUTPUT_TOKENS: _whole(usage.get("completion_tokens")),
    }
    if contents:
        attributes[gen_ai.GEN_AI_INPUT_MESSAGES] = _messages("user", run.question)
        attributes[gen_ai.GEN_AI_OUTPUT_MESSAGES] = _messages("assistant", outcome.outputs.text)
    error = None
    if outcome.error is not None:
        attributes[ERROR_TYPE] = outcome.error.kind
        error = outcome.error.message if contents else ""
    children = tuple(_of_spans(timeline(run), trace, run.finished, contents=contents))
    return AgentSpan(f"invoke_agent {strategy}", False, run.began, run.finished, attributes, error, children)  # noqa: FBT003 - a field


def _of_spans(spans: Iterable[Span], trace: Trace, finished: float, *, contents: bool) -> Iterator[AgentSpan]:
    for span in spans:
        inner = tuple(_of_spans(span.children, trace, finished, contents=contents))
        if not span.calls:
            yield from inner
            continue
        *earlier, last = span.calls
        for call in earlier:
            yield _of_call(call, span, trace, finished, contents=contents)
        yield _of_call(last, span, trace, finished, contents=contents, children=inner)


def _of_call(  # noqa: PLR0913 - what surrounds a call
    call: Call, span: Span, trace: Trace, finished: float, *, contents: bool, children: tuple[AgentSpan, ...] = ()
) -> AgentSpan:
    is_model = call.kind == "llm"
    operation = "chat" if is_model else "execute_tool"
    attributes: dict[str, Attribute] = {gen_ai.GEN_AI_OPERATION_NAME: operation}
    attributes |= _of_model(call, trace, contents=contents) if is_model else _of_tool(call, span, contents=contents)
    error = None
    if call.error:
        attributes[ERROR_TYPE] = FAILED
        error = call.error if contents else ""
    ended = finished if call.ended is None else call.ended
    return AgentSpan(f"{operation} {call.name}", is_model, call.began, ended, attributes, error, children)


def _of_model(call: Call, trace: Trace, *, contents: bool) -> dict[str, Attribute]:
    usage = call.usage
    attributes: dict[str, Attribute] = {
        gen_ai.GEN_AI_PROVIDER_NAME: _provider(str(call.request.get("provider") or trace.header.model.provider)),
        gen_ai.GEN_AI_REQUEST_MODEL: call.name,
        gen_ai.GEN_AI_RESPONSE_MODEL: call.name,
        gen_ai.GEN_AI_USAGE_INPUT_TOKENS: _whole(usage.get("prompt_tokens")),
        gen_ai.GEN_AI_USAGE_OUTPUT_TOKENS: _whole(usage.get("completion_tokens")),
    }
    reasons = [str(reason) for piece in call.pieces if (reason := _delta(piece.data).get("finish_reason"))]
    if reasons:
        attributes[gen_ai.GEN_AI_RESPONSE_FINISH_REASONS] = reasons
    if contents:
        attributes[gen_ai.GEN_AI_INPUT_MESSAGES] = json.dumps(call.request.get("prompt_messages"), ensure_ascii=False)
        attributes[gen_ai.GEN_AI_OUTPUT_MESSAGES] = _answer(call)
    return attributes


def _of_tool(call: Call, span: Span, *, contents: bool) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {gen_ai.GEN_AI_TOOL_NAME: call.name, gen_ai.GEN_AI_TOOL_TYPE: "function"}
    if given := span.data.get("tool_call_id"):
        attributes[gen_ai.GEN_AI_TOOL_CALL_ID] = str(given)
    if contents:
        parameters, results = call.request.get("tool_parameters"), [piece.data for piece in call.pieces]
        attributes[gen_ai.GEN_AI_TOOL_CALL_ARGUMENTS] = json.dumps(parameters, ensure_ascii=False)
        attributes[gen_ai.GEN_AI_TOOL_CALL_RESULT] = json.dumps(results, ensure_ascii=False)
    return attributes


def _provider(name: str) -> str:
    """Dify's `langgenius/openai/openai` is `openai`."""
    return name.rpartition("/")[2]


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _delta(data: Mapping[str, object]) -> Mapping[str, object]:
    delta = data.get("delta")
    return delta if isinstance(delta, dict) else {}


def _messages(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}], ensure_ascii=False)


def _answer(call: Call) -> str:
    """In the conventions' form: one message, whose parts are its text and its tool calls."""
    contents = [_content(_delta(piece.data).get("message")) for piece in call.pieces]
    parts: list[dict[str, object]] = [{"type": "text", "content": text}] if (text := "".join(contents)) else []
    parts += [
        {"type": "tool_call", "id": each.id, "name": each.name, "arguments": each.values}
        for each in written_calls(call)
    ]
    return json.dumps([{"role": "assistant", "parts": parts}], ensure_ascii=False)


def _content(message: object) -> str:
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, str) else ""
