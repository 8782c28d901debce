"""The provider: its credential, a database, is checked before Dify saves it."""

from typing import Any

from answering.services import open_database
from dify_plugin import ToolProvider
from dify_plugin.errors.tool import ToolProviderCredentialValidationError
from tool_layer.errors import SetupError


class AnswersProvider(ToolProvider):
    def _validate_credentials(self, credentials: dict[str, Any]) -> None:
        try:
            with open_database(credentials).session():
                pass
        except SetupError as error:
            raise ToolProviderCredentialValidationError(str(error)) from None  # the host would show the traceback
