"""The provider: it has no credentials, so that its tools run in Dify without an authorization."""

from typing import Any

from dify_plugin import ToolProvider


class HelpdeskProvider(ToolProvider):
    def _validate_credentials(self, credentials: dict[str, Any]) -> None:
        """There are none."""
