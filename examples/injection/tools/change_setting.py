"""The tool `change_setting`: a setting gets a new value in the database."""

from collections.abc import Callable

from office_store import tool
from office_store.store import Store


class ChangeSettingTool(tool.OfficeTool):
    name = "change_setting"

    def act(self, office: Store, given: Callable[[str], str]) -> str:
        office.change(given("name"), given("value"))
        return f"{given('name')} is now '{given('value')}'."
