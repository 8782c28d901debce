"""The tool `send_mail`: a mail becomes a row in the database; nothing leaves this machine."""

from collections.abc import Callable

from office_store import tool
from office_store.store import Store


class SendMailTool(tool.OfficeTool):
    name = "send_mail"

    def act(self, office: Store, given: Callable[[str], str]) -> str:
        office.send(given("to"), given("subject"), given("body"))
        return f"Sent to {given('to')}."
