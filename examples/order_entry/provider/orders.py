"""The provider: both credentials are optional, and checked before Dify saves them."""

from typing import Any

from dify_plugin import ToolProvider
from dify_plugin.errors.tool import ToolProviderCredentialValidationError
from ordering.services import OrderService
from tool_layer.errors import SetupError


class OrdersProvider(ToolProvider):
    def _validate_credentials(self, credentials: dict[str, Any]) -> None:
        try:
            with OrderService.by_credentials(credentials).database.session():
                pass
        except SetupError as error:
            raise ToolProviderCredentialValidationError(str(error)) from None  # the host would show the traceback
