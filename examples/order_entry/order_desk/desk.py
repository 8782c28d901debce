"""One conversation at the order desk.

In: what a user writes, with what the front end knows. Out: the assistant's message with its data. Both are stored.
"""

from ordering.services.reviewing import Reviewing

from .agents.sales import SalesAgent
from .agents.second_reader import SecondReader
from .context import message_to_model
from .messages import Annotation, ChatMessage, FrontEndData, MessageData
from .pending import Pending
from .store import MessageStore


class AgentFailedError(Exception):
    """A run ended in an error. What its tools saved stays, and `find_similar_orders` finds it in the next turn."""


class Desk:
    def __init__(
        self,
        conversation: str,
        *,
        store: MessageStore,
        agent: SalesAgent,
        reviewing: Reviewing,
        second_reader: SecondReader,
    ) -> None:
        self._conversation = conversation
        self._store = store
        self._agent = agent
        self._reviewing = reviewing
        self._second_reader = second_reader
        self._pending = Pending()

    def say(self, text: str, front_end: FrontEndData) -> ChatMessage:
        """Raises: AgentFailedError."""
        history = self._store.of(self._conversation)
        self._store.add(self._conversation, ChatMessage(role="user", text=text, data=MessageData(front_end=front_end)))
        # An answer to a call that waits is sent as it is: the run goes on from its state, which has the context.
        message = text if self._agent.waits else message_to_model(text, front_end, history)
        run = self._agent.run(text, message)
        self._pending.add_results(run.outputs.variables.get("tool_results") or ())
        if run.error is not None:
            raise AgentFailedError(run.error.message)
        self._have_read([each.text for each in history if each.role == "user"] + [text])
        answer = ChatMessage(role="assistant", text=run.outputs.text, data=MessageData(back_end=self._pending.taken()))
        self._store.add(self._conversation, answer)
        return answer

    def _have_read(self, customer_wrote: list[str]) -> None:
        """Drafts that `review_order` was called for and that no second reader has judged yet."""
        for order_request_id in self._pending.reviewed():
            read = self._reviewing.to_read(order_request_id)
            judgement = self._second_reader.judged(read, customer_wrote)
            if judgement is not None and self._reviewing.record(read, judgement):
                self._pending.add_annotation(
                    Annotation(order_request_id=read.order_request_id, version=read.version, judgement=judgement)
                )
