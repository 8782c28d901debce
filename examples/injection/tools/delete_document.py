"""The tool `delete_document`: a document is no longer in the database."""

from collections.abc import Callable

from office_store import tool
from office_store.store import Store


class DeleteDocumentTool(tool.OfficeTool):
    name = "delete_document"

    def act(self, office: Store, given: Callable[[str], str]) -> str:
        office.delete(given("id"))
        return f"Deleted: {given('id')}."
