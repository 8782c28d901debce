"""The base of a tool: it parses what the model sent, writes the run step, and returns the envelope.

A tool in Dify does not get to know the conversation. The parameters `conversation` and `turn` have the form `form`: the
workflow's author fills them in with `sys.conversation_id` and `sys.dialogue_count`, and the model never sees them.
"""

import re
from abc import abstractmethod
from collections.abc import Generator, Mapping
from typing import Any, ClassVar

from dify_plugin import Tool
from dify_plugin.entities.tool import ToolInvokeMessage

from .database import Database
from .envelope import JsonObject, Result, failure, success
from .errors import RefusedError
from .parsing import Input, parse
from .run_steps import Turn, recorded

CONVERSATION = "conversation"
TURN = "turn"
LAST_TURN = 2_147_483_647
"""PostgreSQL's integer."""


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
    def result(self, asked: I, turn: Turn) -> Result:
        """Let an application service do the work.

        Raises:
            RefusedError: The model reads the sentence as an error result.
        """

    def _invoke(self, tool_parameters: dict[str, Any]) -> Generator[ToolInvokeMessage, None, None]:
        given = {name: value for name, value in tool_parameters.items() if name not in {CONVERSATION, TURN}}
        turn = _turn(tool_parameters)

        def work() -> JsonObject:
            sent = given if self.parameter is None else given.get(self.parameter)
            try:
                return success(self.result(parse(self.takes, self.name, sent), turn)).as_json()
            except RefusedError as error:
                return failure(str(error)).as_json()

        yield from self.messages(recorded(self.database(), self.name, turn, given, work))

    def messages(self, output: JsonObject) -> Generator[ToolInvokeMessage, None, None]:
        """The envelope as Dify's messages; a search, say, sends text and sources instead."""
        yield self.create_json_message(output)


def _turn(parameters: Mapping[str, object]) -> Turn:
    """A number that is missing, or that a workflow's author has filled with something else, does not fail the call."""
    conversation = str(parameters.get(CONVERSATION) or "")
    written = str(parameters.get(TURN) or "").strip()
    if re.fullmatch("[0-9]{1,10}", written) and 1 <= int(written) <= LAST_TURN:
        return Turn(conversation, int(written))
    return Turn(conversation)
