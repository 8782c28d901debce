"""The tool `submit_decision`: why a memo became what it is → the decision, made from what the database holds.

It is the node's answer tool (`answer_tools`): its result ends the run, and is not written again. A refusal is an
exception here, since only a failed call is not taken as the answer; the model reads it and continues.
"""

from collections.abc import Generator

from dify_plugin.entities.tool import ToolInvokeMessage
from memos import tool_base
from memos.values import Submission
from tool_layer.envelope import JsonObject
from tool_layer.run_steps import Turn


class DecisionRefusedError(Exception):
    """The sentence says what to do first, or to correct."""


class SubmitDecisionTool(tool_base.MemoTool[Submission]):
    name = "submit_decision"
    takes = Submission
    parameter = "decision"

    def result(self, asked: Submission, turn: Turn) -> tool_base.MemoResult:
        decision = self.service.decide(asked, turn.conversation).model_dump(mode="json")
        return tool_base.MemoResult(message="Stored.", decision=decision)

    def messages(self, output: JsonObject) -> Generator[ToolInvokeMessage, None, None]:
        """The decision alone."""
        if output["status"] == "error":
            raise DecisionRefusedError(output["result"]["message"])
        yield self.create_json_message(output["result"]["decision"])
