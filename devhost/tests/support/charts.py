"""The charts plugin, written as Dify's tutorial writes one: where it is, and ready for an agent."""

from devhost.scenario import read_tool_setups
from devhost.tools.setup import ToolSetup
from support.plugins import CHARTS

API_KEY = "ck_live_1234567890"


def charts(*settings: str, api_key: str = API_KEY) -> ToolSetup:
    (setup,) = read_tool_setups([CHARTS], [f"charts.api_key={api_key}"], settings, {})
    return setup
