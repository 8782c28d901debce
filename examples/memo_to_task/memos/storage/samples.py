"""Six memos to try the agent with, one for each scenario."""

from collections.abc import Mapping

from sqlalchemy import Connection, insert

from .models import Memo

SAMPLES: Mapping[str, str] = {
    "script": "Reply to Ms Sato that Thursday at ten suits us. One line is enough.",
    "delegated": "Asked Kenji for three quotes for the new projector, waiting for his answer.",
    "dated": "Dentist on 4 December 2026 at 15:00. Bring the insurance card.",
    "project": "Office move: list what we take along, book a mover, tell the bank our new address.",
    "review": "New payroll software? Think it over and go through the two offers before we decide anything.",
    "not-actionable": "A mug that shows by its colour when the tea is cool enough to drink.",
}
"""By scenario; the memos have the ids 1 to 6, in this order."""


def add_samples(connection: Connection) -> None:
    connection.execute(insert(Memo), [{"text": text} for text in SAMPLES.values()])


def message(memo_id: int, text: str) -> str:
    """What the user sends to the agent."""
    return f"Memo {memo_id}: {text}"
