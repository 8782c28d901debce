"""The stream of a response, as turn events.

In: the Responses API's events. Out: text as it comes, reasoning summaries as thoughts; at the end all tool calls at
once and whole, and the response's output items as they were, for the next request to send back.
"""

from collections.abc import Iterable, Iterator

from openai.types.responses import Response, ResponseFunctionToolCall, ResponseStreamEvent

from devhost.models.backend import tool_call
from devhost.models.openai_api.responses_request import OUTPUT_ITEMS
from devhost.models.provider.failures import cut_off, failed_in_stream
from devhost.models.provider.tokens import TokenCounts
from devhost.models.provider.turn_events import Finished, Said, ThoughtText, TurnEvent, text_of

_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}
"""Finish reasons by `incomplete_details.reason`; any other is "incomplete"."""


def responses_turn(events: Iterable[ResponseStreamEvent]) -> Iterator[TurnEvent]:
    text = ThoughtText()
    for event in events:
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                yield Said(text.words(event.delta))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield Said(text.thought(event.delta))
            case "response.reasoning_summary_part.added" if event.summary_index > 0:
                yield Said(text.thought("\n\n"))
            case "response.completed" | "response.incomplete":
                yield Said(text.end())
                yield _finished(event.response)
                return
            case "response.failed":
                error = event.response.error
                raise failed_in_stream(error.code if error else None, error.message if error else "no reason given")
            case "error":
                raise failed_in_stream(event.code, event.message)
    raise cut_off("response.completed")


def _finished(response: Response) -> Finished:
    calls = tuple(
        tool_call(text_of(item.call_id), text_of(item.name), text_of(item.arguments))
        for item in response.output
        if isinstance(item, ResponseFunctionToolCall)
    )
    reason = "tool_calls" if calls else "stop"
    if response.status == "incomplete":
        # Dify's plugin passes no calls of a response that was cut on, but its items all the same.
        details = response.incomplete_details
        calls, reason = (), _REASONS.get(details.reason or "" if details else "", "incomplete")
    usage = response.usage
    return Finished(
        reason=reason,
        calls=calls,
        opaque_body={OUTPUT_ITEMS: [item.to_dict(mode="json") for item in response.output]},
        tokens=None if usage is None else TokenCounts.read(usage.to_dict(), "input_tokens", "output_tokens"),
    )
