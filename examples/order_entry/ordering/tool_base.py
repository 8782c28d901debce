"""The base of this plugin's tools: a recorded tool with the application behind it."""

from functools import cached_property

from tool_layer.database import Database
from tool_layer.recorded_tool import RecordedTool

from ordering.application import Application


class OrderTool(RecordedTool):
    @cached_property
    def application(self) -> Application:
        return Application.by_credentials(self.runtime.credentials)

    def database(self) -> Database:
        return self.application.database
