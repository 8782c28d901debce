"""Opens the order desk for a conversation: the plugins, an order system, and everything that the desk is made of."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from order_system_server.book import OrderBook
from order_system_server.server import OrderSystemServer
from ordering.application import PLUGIN_FOLDER, Application
from ordering.order_system import HttpOrderSystem
from sqlalchemy import URL

from devhost import Host, ToolSetup
from devhost.cli.options.hosting_options import ModelOptions
from devhost.models.scripted.script import Script

from .agents import second_reader
from .agents.sales import SalesAgent
from .desk import Desk
from .store import MessageStore

ROOT = PLUGIN_FOLDER.parents[1]
PROVIDER = "orders"


@dataclass(frozen=True)
class Opening:
    script: Script
    strategy: str
    models: ModelOptions
    database: URL
    order_system: str = ""
    """An address; empty for an order system of the desk's own."""


@contextmanager
def opened(opening: Opening, conversation: str) -> Iterator[Desk]:
    with OrderSystemServer(OrderBook()) as server:
        address = opening.order_system or server.url
        with Host.start(ROOT, tools=[_tools(opening.database, address, conversation)]) as host:
            choose = opening.models.choose
            reader_script = Script.read(second_reader.SCRIPT)
            yield Desk(
                conversation,
                store=MessageStore(opening.database),
                agent=SalesAgent(host, opening.script, opening.strategy, conversation, choose),
                reviewing=Application.over(opening.database, HttpOrderSystem(address)).reviewing,
                second_reader=second_reader.SecondReader(host, partial(choose, reader_script, reader_script.query)),
            )


def _tools(database: URL, order_system: str, conversation: str) -> ToolSetup:
    """As the node's panel sets them: every tool gets the conversation."""
    credentials = {"database_url": database.render_as_string(hide_password=False), "order_system_url": order_system}
    tools = sorted((PLUGIN_FOLDER / "tools").glob("*.yaml"))
    return ToolSetup.read(
        PLUGIN_FOLDER,
        credentials={PROVIDER: credentials},
        fixed={tool.stem: {"conversation": conversation} for tool in tools},
    )
