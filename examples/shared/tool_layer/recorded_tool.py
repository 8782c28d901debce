"""The base of a tool: it opens the database, writes the run step, and returns the envelope, as JSON or in its own way.

A tool in Dify gets no conversation id. The parameter `conversation` has the form `form`: the workflow's author fills
it in with `sys.conversation_id`, and the model never sees it.
"""

from abc import abstractmethod
from collections.abc import Generator
from typing import Any, ClassVar

from dify_plugin import Tool
from dify_plugin.entities.tool import ToolInvokeMessage

from .address import place
from .database import Database
from .envelope import Envelope, JsonObject, Result, failure
from .errors import RefusedError
from .run_steps import recorded

CONVERSATION = "conversation"


class RecordedTool(Tool):
    name: ClassVar[str]

    @abstractmethod
    def database(self) -> Database:
        """By the provider's credentials.

        Raises:
            SetupError: The credentials name none.
        """

    @abstractmethod
    def answer(self, given: JsonObject, conversation: str) -> Envelope[Any] | Envelope[Result]:
        """Parse what the model sent, and let an application service do the work.

        Raises:
            RefusedError: The model reads the sentence as an error result.
        """

    def _invoke(self, tool_parameters: dict[str, Any]) -> Generator[ToolInvokeMessage, None, None]:
        given = {name: value for name, value in tool_parameters.items() if name != CONVERSATION}
        conversation = str(tool_parameters.get(CONVERSATION) or "")

        def work() -> JsonObject:
            try:
                return self.answer(given, conversation).as_json()
            except RefusedError as error:
                return failure(str(error)).as_json()

        yield from self.messages(recorded(self.database(), self.name, conversation, given, work))

    def messages(self, output: JsonObject) -> Generator[ToolInvokeMessage, None, None]:
        """The envelope as Dify's messages; a search, say, sends text and sources instead."""
        yield self.create_json_message({**output, "stored_in": place(self.database().url)})
