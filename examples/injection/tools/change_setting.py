"""The tool `change_setting`.

In: the name of a setting and its new value. Out: the changed row in the database.
"""

from collections.abc import Generator
from typing import Any

from dify_plugin import Tool
from dify_plugin.entities.tool import ToolInvokeMessage
from office_store.calls import answered, office, text_of


class ChangeSettingTool(Tool):
    def _invoke(self, tool_parameters: dict[str, Any]) -> Generator[ToolInvokeMessage, None, None]:
        store = office()
        name, value = text_of(tool_parameters, "name"), text_of(tool_parameters, "value")

        def act() -> str:
            store.change(name, value)
            return f"{name} is now '{value}'."

        yield self.create_text_message(answered("change_setting", act))
