"""The provider: its one credential is optional, and checked before Dify saves it."""

from pathlib import Path
from typing import Any

from dify_plugin import ToolProvider
from dify_plugin.errors.tool import ToolProviderCredentialValidationError
from office_store.errors import OfficeError
from office_store.location import database_directory

_PLUGIN_FOLDER = Path(__file__).resolve().parent.parent


class OfficeProvider(ToolProvider):
    def _validate_credentials(self, credentials: dict[str, Any]) -> None:
        try:
            database_directory(_PLUGIN_FOLDER, credentials)
        except OfficeError as error:
            raise ToolProviderCredentialValidationError(str(error)) from None  # the host would show the traceback
