"""The tool `search_documents`: words → ids, titles and senders of the documents that contain them all."""

from collections.abc import Callable

from office_store import tool
from office_store.store import Store


class SearchDocumentsTool(tool.OfficeTool):
    name = "search_documents"

    def act(self, office: Store, given: Callable[[str], str]) -> str:
        found = office.search(given("words"))
        if not found:
            return f"No document contains all of these words: {given('words')}."
        return "\n".join([f"{len(found)} documents:", *(f"- {document.line}" for document in found)])
