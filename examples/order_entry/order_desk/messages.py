"""A chat message and its data: what the front end sent, apart from what the back end adds.

Nothing else belongs here: results of tools on their way and the agent's memory stay in the run and its state.
"""

from typing import Literal

from ordering.values.results import Judgement
from pydantic import BaseModel, ConfigDict


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FrontEndData(_Kept):
    """Where the user was when the message was written; the back end never changes it."""

    customer_number: str
    customer_name: str
    branch: str | None = None
    attachments: tuple[str, ...] = ()
    """Names of files."""
    page_snapshot: str | None = None
    """The text of the page that the user saw."""


class Annotation(_Kept):
    """A second reader's judgement of one version of an order request."""

    order_request_id: int
    version: int
    judgement: Judgement


class BackEndData(_Kept):
    saved_order_request_id: int | None = None
    referenced_order_request_id: int | None = None
    report: str | None = None
    annotations: tuple[Annotation, ...] = ()


class MessageData(_Kept):
    front_end: FrontEndData | None = None
    """None on a message of the assistant."""
    back_end: BackEndData = BackEndData()


class ChatMessage(_Kept):
    role: Literal["user", "assistant"]
    text: str
    data: MessageData = MessageData()
