"""One conversation at the order desk: what a user writes → the assistant's message with its data. Both are stored."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from order_tools.results import described
from ordering.services import OrderService

from devhost import Run

from .agents import SalesAgent, SecondReader
from .messages import Annotation, BackEndData, ChatMessage, Conversation, FrontEndData, message_to_model


class Desk:
    def __init__(
        self, conversation: Conversation, orders: OrderService, agent: SalesAgent, second_reader: SecondReader
    ) -> None:
        self._conversation = conversation
        self._orders = orders
        self._agent = agent
        self._second_reader = second_reader

    def say(self, text: str, front_end: FrontEndData) -> ChatMessage:
        """If the run fails, the message says so; what its tools saved stays."""
        history, state = self._conversation.messages(), self._conversation.state()
        users = [message.text for message in history if message.role == "user"]
        self._conversation.add(ChatMessage(role="user", text=text, front_end=front_end))
        # An answer to a call that waits is sent as it is: the run goes on from its state, which has the context.
        message = text if state.waiting else message_to_model(text, front_end, history)
        run = self._agent.run(text, message, state, conversation=self._conversation.id, asked=users.count(text))
        found = list(_results(run))
        said = run.outputs.text if run.error is None else f"The agent failed: {run.error.message}"
        # The second reader speaks before the user is asked for an approval.
        added = BackEndData(**_named(found), annotations=tuple(self._read(found, [*users, text])))
        answer = ChatMessage(role="assistant", text=said, back_end=added)
        self._conversation.add(answer, state.after(run))
        return answer

    def _read(self, found: Sequence[Mapping[str, Any]], customer_wrote: list[str]) -> Iterator[Annotation]:
        """Drafts that `review_order` was called for and that no second reader has judged yet."""
        reviews = [result["reviewer_output"] for result in found if "reviewer_output" in result]
        for number in dict.fromkeys(each["order_request_id"] for each in reviews if "second_reader" not in each):
            request = self._orders.review(number).request
            judgement = self._second_reader.judged(described(request), customer_wrote)
            if judgement is not None and self._orders.judge(request, judgement):
                yield Annotation(
                    order_request_id=request.id,
                    version=request.version,
                    verdict=judgement.verdict,
                    concerns=judgement.concerns,
                    confidence=judgement.confidence,
                )


def shown(message: ChatMessage) -> Iterator[str]:
    """A message of the assistant as lines for the terminal: the text, and what the back end added."""
    added = message.back_end
    yield message.text
    if added.report is not None:
        yield f"\n{added.report}"
    ids = {
        "saved order request": added.saved_order_request_id,
        "referenced order request": added.referenced_order_request_id,
    }
    yield from (f"· {name} {number}" for name, number in ids.items() if number is not None)
    for each in added.annotations:
        which = f"order request {each.order_request_id}, version {each.version}"
        concerns = " ".join(each.concerns) or "no concerns"
        yield f"· second reader of {which}: {each.verdict} ({each.confidence} confidence): {concerns}"


def _results(run: Run) -> Iterator[Mapping[str, Any]]:
    """Of the calls that succeeded. Every tool of the desk is this plugin's, whose envelope this is."""
    for entry in run.outputs.variables.get("tool_results") or ():
        if (entry["json"] or {}).get("status") == "success":
            yield entry["json"]["result"]


def _named(found: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Of each named value the last one; `message` is for the model alone."""
    kept = {"output_report": "report"}
    names = ("saved_order_request_id", "referenced_order_request_id", "output_report")
    return {kept.get(name, name): result[name] for result in found for name in names if name in result}
