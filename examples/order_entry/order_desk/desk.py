"""One conversation at the order desk: what a user writes → the assistant's message with its data. Both are stored."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tool_layer.database import now

from devhost import Host, Run
from devhost.hosting import ModelOptions
from devhost.script import Script

from .conversation import BackEndData, ChatMessage, Conversation, FrontEndData, message_to_model
from .sources import FrontEndError, annotated

NEEDS_APPROVAL = "request_order"
"""The one tool that acts on the world."""
_KEPT = {
    "saved_order_request_id": "saved_order_request_id",
    "referenced_order_request_id": "referenced_order_request_id",
    "output_report": "report",
}
"""The values of a result that a message's data keeps, and under which name; `message` is for the model alone."""


class Desk:
    """Each message is a run of the sales agent, which goes on from the state that the last one left."""

    def __init__(  # noqa: PLR0913 - a desk's parts
        self,
        conversation: Conversation,
        host: Host,
        script: Script,
        strategy: str,
        options: ModelOptions,
        *,
        ended: Callable[[Run], None] = lambda _: None,
    ) -> None:
        """`ended` gets each run."""
        self._conversation = conversation
        self._host = host
        self._script = script
        self._strategy = strategy
        self._options = options
        self._ended = ended

    def say(self, text: str, front_end: FrontEndData) -> ChatMessage:
        """If the run fails, the message says so; what its tools saved stays.

        Raises:
            FrontEndError: The front end's data cannot be used; nothing is stored.
        """
        history = self._conversation.messages()
        state = self._conversation.state()
        files = self._conversation.files()
        message = message_to_model(text, front_end, history, files)
        if state.waiting:
            # An answer to a call that waits is sent as it is: the run goes on from its state, which has the context.
            message = text
            if front_end.attachments or front_end.dom_snapshot:
                raise FrontEndError("A call waits for your answer: answer first, then attach files or a page.")
        self._conversation.add(ChatMessage(role="user", text=text, front_end=front_end))
        asked = sum(before.role == "user" and before.text == text for before in history)
        turn = 1 + sum(before.role == "user" for before in history)
        run = self._run(text, message, state.text, asked, turn)
        self._ended(run)
        said = run.outputs.text if run.error is None else f"The agent failed: {run.error.message}"
        said, annotations = annotated(said, files)
        added = BackEndData(**dict(_kept(run)), file_annotations=annotations)
        answer = ChatMessage(role="assistant", text=said, back_end=added)
        self._conversation.add(answer, state.after(run))
        return answer

    def _run(self, text: str, message: str, state: str, asked: int, turn: int) -> Run:
        parameters = {
            **self._script.params,
            "query": {"constant": message},
            "approval_required": NEEDS_APPROVAL,
            "approval": {"constant": text},
            "state": {"constant": state},
            "extra_outputs": "state, tool_results",
        }
        model = self._options.choose(self._script, text, asked=asked)
        began_at = now()
        try:
            return self._host.run(
                self._strategy,
                parameters,
                model=model,
                variables={"sys.conversation_id": self._conversation.id, "sys.dialogue_count": turn},
                conversation_id=self._conversation.id,
            )
        finally:
            self._conversation.add_turn(turn, since=began_at)


def shown(message: ChatMessage) -> Iterator[str]:
    """A message of the assistant as lines for the terminal: the text, and what the back end added."""
    added = message.back_end
    yield message.text
    for number, each in enumerate(added.file_annotations, start=1):
        yield f'· [{number}] {each.file_name}, line {each.line}: "{each.words}"'
    if added.report is not None:
        yield f"\n{added.report}"
    if added.saved_order_request_id is not None:
        yield f"· saved order request {added.saved_order_request_id}"
    if added.referenced_order_request_id is not None:
        yield f"· referenced order request {added.referenced_order_request_id}"


def _kept(run: Run) -> Iterator[tuple[str, Any]]:
    """Of the calls that succeeded, in their order. All tools are this plugin's, whose envelope this is."""
    for entry in run.outputs.variables.get("tool_results") or ():
        envelope: Mapping[str, Any] = entry["json"] or {}
        if envelope.get("status") == "success":
            yield from ((_KEPT[name], value) for name, value in envelope["result"].items() if name in _KEPT)
