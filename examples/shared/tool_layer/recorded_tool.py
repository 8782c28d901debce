"""The base of a tool: it parses what the model sent, writes the run step, and returns the envelope.

A tool in Dify gets no conversation id. The parameter `conversation` has the form `form`: the workflow's author fills
it in with `sys.conversation_id`, and the model never sees it.
"""

from abc import abstractmethod
from collections.abc import Generator
from typing import Any, ClassVar

from dify_plugin import Tool
from dify_plugin.entities.tool import ToolInvokeMessage

from .database import Database
from .envelope import JsonObject, Result, failure, success
from .errors import RefusedError
from .parsing import Input, parse
from .run_steps import recorded

CONVERSATION = "conversation"


class RecordedTool[I: Input](Tool):
    """A tool imports this module and not the class: the SDK takes every class of `Tool` in a tool's module for it."""

    name: ClassVar[str]
    takes: type[I]
    parameter: ClassVar[str | None] = None
    """Of an input that is an object in one parameter."""

    @abstractmethod
    def database(self) -> Database:
        """By the provider's credentials.

        Raises:
            SetupError: The credentials name none.
        """

    @abstractmethod
    def result(self, asked: I, conversation: str) -> Result:
        """Let an application service do the work.

        Raises:
            RefusedError: The model reads the sentence as an error result.
        """

    def _invoke(self, tool_parameters: dict[str, Any]) -> Generator[ToolInvokeMessage, None, None]:
        given = {name: value for name, value in tool_parameters.items() if name != CONVERSATION}
        conversation = str(tool_parameters.get(CONVERSATION) or "")

        def work() -> JsonObject:
            sent = given if self.parameter is None else given.get(self.parameter)
            try:
                return success(self.result(parse(self.takes, self.name, sent), conversation)).as_json()
            except RefusedError as error:
                return failure(str(error)).as_json()

        yield from self.messages(recorded(self.database(), self.name, conversation, given, work))

    def messages(self, output: JsonObject) -> Generator[ToolInvokeMessage, None, None]:
        """The envelope as Dify's messages; a search, say, sends text and sources instead."""
        yield self.create_json_message(output)
