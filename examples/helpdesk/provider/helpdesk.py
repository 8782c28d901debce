"""The provider: no account stands behind the manual, so all there is to check is where the index shall be kept."""

import os
from pathlib import Path
from typing import Any

from dify_plugin import ToolProvider
from dify_plugin.errors.tool import ToolProviderCredentialValidationError
from helpdesk_search.errors import HelpdeskError
from helpdesk_search.location import index_directory

_PLUGIN_FOLDER = Path(__file__).resolve().parent.parent


class HelpdeskProvider(ToolProvider):
    def _validate_credentials(self, credentials: dict[str, Any]) -> None:
        try:
            index_directory(_PLUGIN_FOLDER, credentials, os.environ)
        except HelpdeskError as error:
            raise ToolProviderCredentialValidationError(str(error)) from None  # the host shows the trace
