"""The tool `read_document`: an id → the whole document, as it was sent."""

from collections.abc import Callable

from office_store import tool
from office_store.store import Store


class ReadDocumentTool(tool.OfficeTool):
    name = "read_document"

    def act(self, office: Store, given: Callable[[str], str]) -> str:
        document = office.read(given("id"))
        return f"{document.line}\n\n{document.text}"
