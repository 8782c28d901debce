"""The services, put together for one call: by the provider's credentials, or by what a back end knows."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sqlalchemy import URL
from tool_layer.address import database_url
from tool_layer.database import Database
from tool_layer.errors import SetupError

from ordering.order_system import CREDENTIAL, DEFAULT_URL, HttpOrderSystem, OrderSystem, is_address
from ordering.services.drafts import Drafts
from ordering.services.item_search import ItemSearch
from ordering.services.placing import Placing
from ordering.services.reviewing import Reviewing
from ordering.services.similar_orders import SimilarOrders
from ordering.storage.seed import prepare

PLUGIN_FOLDER = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Application:
    database: Database
    items: ItemSearch
    similar_orders: SimilarOrders
    drafts: Drafts
    placing: Placing
    reviewing: Reviewing

    @classmethod
    def over(cls, url: URL, order_system: OrderSystem) -> Self:
        database = Database(url, prepare)
        return cls(
            database,
            ItemSearch(database),
            SimilarOrders(database),
            Drafts(database),
            Placing(database, order_system),
            Reviewing(database),
        )

    @classmethod
    def by_credentials(cls, credentials: Mapping[str, object]) -> Self:
        """Raises SetupError: a credential cannot be used."""
        return cls.over(chosen_database(credentials), HttpOrderSystem(chosen_order_system(credentials)))


def chosen_database(credentials: Mapping[str, object]) -> URL:
    return database_url(
        PLUGIN_FOLDER, credentials, variable="ORDER_ENTRY_DATABASE_URL", file_name="order_entry.sqlite3"
    )


def chosen_order_system(credentials: Mapping[str, object]) -> str:
    url = str(credentials.get(CREDENTIAL) or "").strip() or DEFAULT_URL
    if not is_address(url):
        raise SetupError(f"{CREDENTIAL} is not an address such as https://orders.example.")
    return url
