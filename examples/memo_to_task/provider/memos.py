"""The provider: its one credential is optional, and the database is opened before Dify saves it."""

from typing import Any

from dify_plugin import ToolProvider
from dify_plugin.errors.tool import ToolProviderCredentialValidationError
from memos.database import memo_database
from tool_layer.errors import SetupError


class MemosProvider(ToolProvider):
    def _validate_credentials(self, credentials: dict[str, Any]) -> None:
        try:
            with memo_database(credentials).session():
                pass
        except SetupError as error:
            raise ToolProviderCredentialValidationError(str(error)) from None  # the host would show the traceback
