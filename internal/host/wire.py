"""What passes between this plugin and the host, as the host writes it."""

from typing import Any

from pydantic import BaseModel


class WireMessage(BaseModel):
    """A tool's message, whatever its type and shape: one that could not be read would end the tool's stream."""

    type: Any = None
    message: Any = None
    meta: Any = None
