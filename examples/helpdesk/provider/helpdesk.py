"""The provider: all credentials are optional; given ones are checked before Dify saves them."""

import os
from pathlib import Path
from typing import Any

from dify_plugin import ToolProvider
from dify_plugin.errors.tool import ToolProviderCredentialValidationError
from helpdesk_search.errors import HelpdeskError
from helpdesk_search.location import index_directory
from meaning.api import EmbeddingError
from meaning.embeddings import KEY_CREDENTIAL, chosen_embedding

_PLUGIN_FOLDER = Path(__file__).resolve().parent.parent


class HelpdeskProvider(ToolProvider):
    def _validate_credentials(self, credentials: dict[str, Any]) -> None:
        try:
            index_directory(_PLUGIN_FOLDER, credentials, os.environ)
            embedding = chosen_embedding(credentials, os.environ)
            if credentials.get(KEY_CREDENTIAL):
                embedding.vectors(["Is this key good?"])  # only a call shows whether it is
        except (HelpdeskError, EmbeddingError) as error:
            raise ToolProviderCredentialValidationError(str(error)) from None  # the host would show the traceback
