"""A provider's failure as the engine's nodes know it.

In: what a model raises. Out: the engine's error, whose text is what the node shows: for the five kinds of
`InvokeError` the provider's own words, for the others those of Dify's plugin daemon.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from graphon.model_runtime.errors.invoke import (
    InvokeAuthorizationError,
    InvokeBadRequestError,
    InvokeConnectionError,
    InvokeError,
    InvokeRateLimitError,
    InvokeServerUnavailableError,
)

from devhost.models.backend import ModelCallError
from devhost.protocol.failures import ApiCallError, ApiStalledError

KINDS: dict[str, type[InvokeError]] = {
    kind.__name__: kind
    for kind in (
        InvokeAuthorizationError,
        InvokeBadRequestError,
        InvokeConnectionError,
        InvokeRateLimitError,
        InvokeServerUnavailableError,
    )
}


@contextmanager
def provider_failures() -> Iterator[None]:
    """Raises an `InvokeError` in the place of each failure of the model that is called inside."""
    try:
        yield
    except ModelCallError as error:
        raise _as_the_node_shows_it(error) from error
    except (ApiCallError, ApiStalledError) as error:  # what a script makes of Dify's API
        raise InvokeError(str(error) or "the API does not answer") from error


def _as_the_node_shows_it(error: ModelCallError) -> InvokeError:
    if error.error_type in KINDS:
        return KINDS[error.error_type](error.message)
    said = {"error_type": error.error_type, "message": error.message, "args": {"description": error.message}}
    return InvokeError(f"PluginInvokeError: {json.dumps(said, ensure_ascii=False)}")
