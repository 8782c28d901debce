"""The SDK's calls of models and tools, each sent under an id that is known before.

In: the id. Out: the SDK's own ``invoke``. The SDK asks for the id once for each request, in every install method
(``BackwardsInvocation._backwards_invoke``, 0.4.4 to 0.10.2). An SDK that does not ask sends an id of its own: then the
call works as before, and the log has an id that is not on the wire.
"""

import uuid
from typing import Any

from dify_plugin.core.entities.invocation import InvokeType
from dify_plugin.core.runtime import Session
from dify_plugin.invocations.model.llm import LLMInvocation
from dify_plugin.invocations.tool import ToolInvocation

from internal.host.wire import WireMessage


def new_request_id() -> str:
    """An id as the SDK makes them."""
    return uuid.uuid4().hex


class ModelInvocation(LLMInvocation):
    """One call of a model."""

    def __init__(self, session: Session, request_id: str) -> None:
        super().__init__(session)
        self._request_id = request_id

    def _generate_backwards_request_id(self) -> str:
        return self._request_id


class LenientToolInvocation(ToolInvocation):
    """One call of a tool; reads messages of any type: one unknown type would end the SDK's own generator."""

    def __init__(self, session: Session, request_id: str) -> None:
        super().__init__(session)
        self._request_id = request_id

    def _generate_backwards_request_id(self) -> str:
        return self._request_id

    def _backwards_invoke(self, type: InvokeType, data_type: Any, data: dict[str, Any]) -> Any:  # noqa: A002, ANN401
        del data_type
        return super()._backwards_invoke(type, WireMessage, data)  # type: ignore[arg-type] # what this class is for
