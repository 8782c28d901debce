"""What the tools return to each of the agents: `message` for its next turn, and a few named values.

What has no value is left out of the JSON (tool_layer/envelope.py).
"""

from pydantic import BaseModel, ConfigDict
from tool_layer.envelope import Result

from .vocabulary import Confidence, Verdict


class SalesResult(Result):
    saved_order_request_id: int | None = None
    referenced_order_request_id: int | None = None
    """An order request that was there before, and is the one that the customer means."""


class OrderEntryResult(Result):
    output_report: str | None = None
    """What was ordered, in lines that a person may read."""


class Judgement(BaseModel):
    """A second reader's, of one version of an order request."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    verdict: Verdict
    concerns: tuple[str, ...]
    confidence: Confidence


class ReviewerOutput(BaseModel):
    model_config = ConfigDict(frozen=True)

    order_request_id: int
    version: int
    verdict: Verdict
    """`change` if a rule or the second reader asks for a change."""
    findings: tuple[str, ...]
    """Of the rules that need no reader."""
    second_reader: Judgement | None = None
    """None until a second reader has read this version."""


class ReviewerResult(Result):
    reviewer_output: ReviewerOutput | None = None
    order_to_approve: str | None = None
    """What `request_order` takes as `order`; None for a draft that cannot be placed as it is."""
