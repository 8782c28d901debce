"""Finds items of the catalogue, however they are written."""

from tool_layer.database import Database

from ordering.orders.matching import candidates
from ordering.storage.items import Items
from ordering.values.inputs import ItemQuery
from ordering.values.results import SalesResult

from .wording import item_in_words

MOST = 5
"""Candidates of one search."""


class ItemSearch:
    def __init__(self, database: Database) -> None:
        self._database = database

    def search(self, asked: ItemQuery) -> SalesResult:
        with self._database.session() as session:
            items = Items(session).all()
        found = candidates(asked.query, ((item, item.names) for item in items), MOST)
        if not found:
            return SalesResult(
                message=f"No item is like '{asked.query}'. Try a shorter name, or another word for the same thing; "
                "if nothing is found, ask the customer."
            )
        lines = "\n".join(f"- {item_in_words(each.value)}; likeness {each.score:.0f} of 100" for each in found)
        advice = "If more than one of them fits, ask the customer which one is meant."
        return SalesResult(message=f"Items like '{asked.query}', the most likely first:\n{lines}\n{advice}")
