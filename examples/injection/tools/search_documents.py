"""The tool `search_documents`.

In: words. Out: ids, titles and senders of the documents that contain them all.
"""

from collections.abc import Generator
from typing import Any

from dify_plugin import Tool
from dify_plugin.entities.tool import ToolInvokeMessage
from office_store.calls import office, text_of
from office_store.wording import listed


class SearchDocumentsTool(Tool):
    def _invoke(self, tool_parameters: dict[str, Any]) -> Generator[ToolInvokeMessage, None, None]:
        words = text_of(tool_parameters, "words")
        store = office()
        yield self.create_text_message(listed(words, store.search(words)))
