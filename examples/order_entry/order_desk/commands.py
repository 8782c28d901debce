"""`python -m examples.order_entry`: the chat, the audit trail, and the order system."""

import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path

import click
from ordering.services import CREDENTIAL, DEFAULT_URL, PLUGIN_FOLDER, VARIABLE, chosen_database
from ordering.storage import begin_again
from sqlalchemy import URL
from tool_layer.audit import audit_lines
from tool_layer.database import Database
from tool_layer.errors import SetupError
from tool_layer.run_steps import make_table, steps_of

from devhost import Host, HostError, ToolSetup
from devhost.hosting import ModelOptions
from devhost.options import takes
from devhost.script import Script
from devhost.terminal.chat_view import read_questions

from .conversation import Conversation, FrontEndData
from .desk import Desk, shown
from .order_system_server import OrderSystemServer
from .sources import MOST_OF_A_FILE, MOST_OF_A_PAGE, FrontEndError, branch_name, name_of, text_in

ROOT = PLUGIN_FOLDER.parents[1]
STRATEGY = "gpt5_function_calling"
TEXT_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
DOWN = "order-system-down"
NOTHING_LISTENS = "http://127.0.0.1:1"


@click.group(epilog=f"The database is the one that {VARIABLE} names, else the plugin's own SQLite file.")
def commands() -> None:
    """Order entry: the back end around the example's tools."""


@contextmanager
def _as_sentence() -> Iterator[None]:
    try:
        yield
    except (FrontEndError, HostError, SetupError) as error:
        raise click.ClickException(str(error)) from None


@commands.command()
@click.argument("conversation", required=False)
def audit(conversation: str | None) -> None:
    """Print the run steps of a CONVERSATION, or of all."""
    with _as_sentence():
        steps = steps_of(Database(chosen_database({}), make_table), conversation)
    for line in audit_lines(steps):
        click.echo(line)


@commands.command()
@click.confirmation_option(prompt="This deletes all order requests, conversations and run steps. Go on?")
def begin() -> None:
    """Empty the database, and put the catalogue and two order requests into it."""
    with _as_sentence(), Database(chosen_database({}), begin_again).session():
        click.echo("The database holds the catalogue and two order requests.")


@commands.command("order-system")
@click.option("--port", type=click.IntRange(0, 65_535), default=int(DEFAULT_URL.rpartition(":")[2]), show_default=True)
def order_system(port: int) -> None:
    """Run the order system until Ctrl-C; its book ends with it."""
    try:
        opened_server = OrderSystemServer(port)
    except OSError as error:
        raise click.ClickException(
            f"Port {port} cannot be used: {error.strerror}. Choose another with --port."
        ) from None
    with opened_server as server:
        click.echo(f"The order system listens at {server.url}. Ctrl-C ends it.")
        threading.Event().wait()


@commands.command()
@click.option("--scenario", metavar="NAME", help="Whose scripted model answers; by default that of script.yaml.")
@click.option("--play", is_flag=True, help="Say what the script's user says, instead of reading from the terminal.")
@click.option("--conversation", default="", metavar="ID", help="Go on with a conversation, also after a restart.")
@click.option("--customer-number", default="C-3001", show_default=True)
@click.option("--customer-name", default="Café Lindqvist", show_default=True)
@click.option("--branch", "branch_org_id", default="", metavar="ID", help="The customer's branch, such as ORG-3001-2.")
@click.option("--attach", type=TEXT_FILE, multiple=True, help="A text file that goes with the first message.")
@click.option("--page", type=TEXT_FILE, help="HTML of the page that the user sees while writing the first message.")
@takes(model_options=ModelOptions)
def chat(  # noqa: PLR0913 - the options
    *,
    scenario: str | None,
    play: bool,
    conversation: str,
    attach: tuple[Path, ...],
    page: Path | None,
    model_options: ModelOptions,
    **where: str,
) -> int:
    """Chat with the sales agent. Without a key, a script answers. The chat has an order system of its own."""
    file = PLUGIN_FOLDER / f"scenarios/{scenario}.yaml" if scenario else PLUGIN_FOLDER / "script.yaml"
    with _as_sentence(), OrderSystemServer() as own:
        script = Script.read(file, STRATEGY)
        kept = Conversation(chosen_database({}), conversation or str(uuid.uuid4()))
        front_end = FrontEndData.model_validate(where)
        if front_end.branch_org_id:
            branch_name(front_end.branch_org_id, front_end.customer_number)
        first = _first_message(kept, front_end, attach, page)
        address = NOTHING_LISTENS if scenario == DOWN else own.url
        with Host.start(ROOT, tools=[_tools(chosen_database({}), address, kept.id)]) as host:
            desk = Desk(kept, host, script, STRATEGY, model_options)
            click.echo(f"Conversation {kept.id}. Ctrl-D ends it.\n")
            for message in kept.messages()[-1:]:
                click.echo("\n".join(shown(message)))
            texts = (script.query, *(each.query for each in script.then)) if play else read_questions()
            for text, seen in zip(texts, chain([first], repeat(front_end)), strict=False):
                if play:
                    click.echo(f"you> {text}")
                answer = desk.say(text, seen)
                click.echo("\n".join([*shown(answer), ""]))
    click.echo(f"The audit trail: .venv/bin/python -m examples.order_entry audit {kept.id}")
    return 0


def _first_message(
    kept: Conversation, front_end: FrontEndData, attach: Sequence[Path], page: Path | None
) -> FrontEndData:
    """With the files and the page, which the other messages do not have."""
    dom_snapshot = ""
    if page is not None:
        dom_snapshot = text_in(page, MOST_OF_A_PAGE)
    texts = [(name_of(path), text_in(path, MOST_OF_A_FILE)) for path in attach]
    attachments = tuple(kept.attach(name, text) for name, text in texts)
    return front_end.model_copy(update={"attachments": attachments, "dom_snapshot": dom_snapshot})


def _tools(database: URL, order_system: str, conversation: str) -> ToolSetup:
    """As the node's panel sets them: every tool gets the conversation."""
    credentials = {"database_url": database.render_as_string(hide_password=False), CREDENTIAL: order_system}
    return ToolSetup.read(
        PLUGIN_FOLDER,
        credentials={"orders": credentials},
        fixed={tool.stem: {"conversation": conversation} for tool in (PLUGIN_FOLDER / "tools").glob("*.yaml")},
    )
