"""The tool `delete_document`.

In: an id. Out: the document is no longer in the database.
"""

from collections.abc import Generator
from typing import Any

from dify_plugin import Tool
from dify_plugin.entities.tool import ToolInvokeMessage
from office_store.calls import answered, office, text_of


class DeleteDocumentTool(Tool):
    def _invoke(self, tool_parameters: dict[str, Any]) -> Generator[ToolInvokeMessage, None, None]:
        store = office()
        document_id = text_of(tool_parameters, "id")

        def act() -> str:
            store.delete(document_id)
            return f"Deleted: {document_id}."

        yield self.create_text_message(answered("delete_document", act))
