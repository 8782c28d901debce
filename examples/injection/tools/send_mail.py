"""The tool `send_mail`.

In: recipient, subject, body. Out: a row in the database; nothing leaves this machine.
"""

from collections.abc import Generator
from typing import Any

from dify_plugin import Tool
from dify_plugin.entities.tool import ToolInvokeMessage
from office_store.calls import answered, office, text_of


class SendMailTool(Tool):
    def _invoke(self, tool_parameters: dict[str, Any]) -> Generator[ToolInvokeMessage, None, None]:
        store = office()
        recipient, subject, body = (text_of(tool_parameters, name) for name in ("to", "subject", "body"))

        def act() -> str:
            store.send(recipient, subject, body)
            return f"Sent to {recipient}."

        yield self.create_text_message(answered("send_mail", act))
