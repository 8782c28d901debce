"""`python -m examples.order_entry`: the chat, the audit trail, and the order system."""

import threading
import uuid

import click
from order_system_server.book import OrderBook
from order_system_server.server import OrderSystemServer
from ordering.application import PLUGIN_FOLDER, chosen_database
from ordering.order_system import DEFAULT_URL
from sqlalchemy import URL
from tool_layer.audit import audit_lines
from tool_layer.database import Database
from tool_layer.errors import SetupError
from tool_layer.run_steps import make_table, steps_of

from devhost import HostError
from devhost.cli.options.hosting_options import ModelOptions, model_options
from devhost.host.host import find_strategy
from devhost.models.scripted.script import Script
from devhost.plugin.declaration import PluginDeclaration
from devhost.terminal.chat_view import read_questions

from .desk import AgentFailedError, Desk
from .messages import FrontEndData
from .opening import ROOT, Opening, opened
from .shown import shown
from .store import begin_again

DOWN, NOTHING_LISTENS = "order-system-down", "http://127.0.0.1:1"
DATABASE = click.option("--database-url", default="", help="SQLite or PostgreSQL; by default that of the plugin.")


@click.group()
def commands() -> None:
    """Order entry: the back end around the example's tools."""


@commands.command()
@click.argument("conversation", required=False)
@DATABASE
def audit(conversation: str | None, database_url: str) -> None:
    """Print the run steps of a CONVERSATION, or of all."""
    try:
        steps = steps_of(Database(_url(database_url), make_table), conversation)
    except SetupError as error:
        raise click.ClickException(str(error)) from None
    for line in audit_lines(steps):
        click.echo(line)
    if not steps:
        click.echo(f"There are no run steps{f' of conversation {conversation}' if conversation else ''}.", err=True)


@commands.command()
@DATABASE
@click.confirmation_option(prompt="This deletes all order requests and run steps. Go on?")
def begin(database_url: str) -> None:
    """Empty the database, and put the catalogue and two order requests into it."""
    try:
        begin_again(_url(database_url))
    except SetupError as error:
        raise click.ClickException(str(error)) from None
    click.echo("The database holds the catalogue and two order requests.")


@commands.command("order-system")
@click.option("--port", type=click.IntRange(0, 65_535), default=int(DEFAULT_URL.rpartition(":")[2]), show_default=True)
def order_system(port: int) -> None:
    """Run the order system until Ctrl-C; its book ends with it."""
    try:
        opened_server = OrderSystemServer(OrderBook(), port)
    except OSError as error:
        raise click.ClickException(
            f"Port {port} cannot be used: {error.strerror}. Choose another with --port."
        ) from None
    with opened_server as server:
        click.echo(f"The order system listens at {server.url}. Ctrl-C ends it.")
        threading.Event().wait()


@commands.command()
@click.option("--scenario", metavar="NAME", help="Whose scripted model answers; by default that of script.yaml.")
@click.option("--strategy", default="gpt5_function_calling", show_default=True)
@click.option("--play", is_flag=True, help="Say what the script's user says, instead of reading from the terminal.")
@click.option("--customer-number", default="C-3001", show_default=True)
@click.option("--customer-name", default="Café Lindqvist", show_default=True)
@click.option("--branch", default=None)
@click.option("--attachment", "attachments", multiple=True, help="The name of an attached file; repeatable.")
@click.option("--page-snapshot", default=None, help="The text of the page that the user sees.")
@click.option(
    "--order-system-url",
    default="",
    help=f"By default, an order system of the chat's own is started; none for the scenario {DOWN}.",
)
@DATABASE
@model_options
def chat(  # noqa: PLR0913 - click gives one argument per option
    *,
    scenario: str | None,
    strategy: str,
    play: bool,
    order_system_url: str,
    database_url: str,
    model_options: ModelOptions,
    **front_end: object,
) -> int:
    """Chat with the sales agent. Without a key, a script answers."""
    data = FrontEndData.model_validate(front_end)
    file = PLUGIN_FOLDER / f"scenarios/{scenario}.yaml" if scenario else PLUGIN_FOLDER / "script.yaml"
    conversation = str(uuid.uuid4())
    try:
        find_strategy(PluginDeclaration.read(ROOT), strategy)
        script = Script.read(file, strategy)
        lines = (script.query, *(each.query for each in script.then)) if play else read_questions()
        address = order_system_url or (NOTHING_LISTENS if scenario == DOWN else "")
        opening = Opening(script, strategy, model_options, _url(database_url), address)
        with opened(opening, conversation) as desk:
            click.echo(f"Conversation {conversation}. Ctrl-D ends it.\n")
            for text in lines:
                if play:
                    click.echo(f"you> {text}")
                _answer(desk, text, data)
    except (HostError, SetupError) as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"The audit trail: .venv/bin/python -m examples.order_entry audit {conversation}")
    return 0


def _answer(desk: Desk, text: str, data: FrontEndData) -> None:
    try:
        for line in shown(desk.say(text, data)):
            click.echo(line)
    except AgentFailedError as error:
        click.echo(f"The agent failed: {error}", err=True)
    click.echo()


def _url(given: str) -> URL:
    return chosen_database({"database_url": given})
