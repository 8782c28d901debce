"""The repository of the catalogue."""

from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.orm import Session

from ordering.orders.rules import Item

from .tables import ItemRow


class Items:
    def __init__(self, session: Session) -> None:
        self._session = session

    def all(self) -> list[Item]:
        """In the order of their codes."""
        return [_item(row) for row in self._session.scalars(select(ItemRow).order_by(ItemRow.code))]

    def by_code(self, codes: Collection[str]) -> dict[str, Item]:
        """Those of the codes that the catalogue has."""
        found = self._session.scalars(select(ItemRow).where(ItemRow.code.in_(codes)))
        return {row.code: _item(row) for row in found}


def _item(row: ItemRow) -> Item:
    return Item(row.code, row.name, row.reading, row.english_name, row.pack_size, tuple(row.units), row.usual_maximum)
