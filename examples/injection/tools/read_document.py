"""The tool `read_document`.

In: an id. Out: the whole document, as it was sent.
"""

from collections.abc import Generator
from typing import Any

from dify_plugin import Tool
from dify_plugin.entities.tool import ToolInvokeMessage
from office_store.calls import answered, office, text_of
from office_store.wording import whole


class ReadDocumentTool(Tool):
    def _invoke(self, tool_parameters: dict[str, Any]) -> Generator[ToolInvokeMessage, None, None]:
        store = office()
        document_id = text_of(tool_parameters, "id")
        yield self.create_text_message(answered("read_document", lambda: whole(store.read(document_id))))
