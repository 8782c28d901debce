"""In place of a model where there is none: every call is refused, as Dify refuses a model that is not configured."""

from collections.abc import Iterator

from devhost.models.backend import ModelDescription
from devhost.models.request import ModelRequest
from devhost.protocol.failures import ApiCallError
from devhost.protocol.wire import JsonObject


class NoModel:
    description = ModelDescription(
        "",
        "none",
        "none: a tool that asks for a model is refused, and a summary is cut",
        scripted=True,
        context_size=None,
    )

    def invoke(self, request: ModelRequest, /) -> Iterator[JsonObject]:
        """Raises when the first chunk is asked for."""
        raise ApiCallError.invalid(
            f"model {request.model} is not configured: set OPENAI_API_KEY, or OPENAI_BASE_URL with --model"
        )
        yield {}
