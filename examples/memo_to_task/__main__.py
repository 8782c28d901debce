"""The desk's command line: `python -m examples.memo_to_task`. The database is that of the plugin.

It reads the same environment variable as the plugin, or uses the plugin's own file.
"""

import sys
from pathlib import Path

import click

sys.path.append(str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))

from memos.opening import VARIABLE, address, begin_again, memo_database, remove_draft
from memos.services.memos import MemoApplicationService
from memos.services.tasks import TaskApplicationService
from memos.storage.samples import message
from memos.values.schemas import NewMemo
from memos.values.stored import StoredTask
from tool_layer.audit import audit_lines
from tool_layer.database import Database
from tool_layer.envelope import Envelope
from tool_layer.errors import SetupError
from tool_layer.parsing import parse
from tool_layer.run_steps import steps_of


@click.group(epilog=f"The database is the one that {VARIABLE} names, else the plugin's own SQLite file.")
def desk() -> None:
    """Memos for the example memo_to_task, and what the agent made of them."""


@desk.command()
@click.argument("text")
def add(text: str) -> None:
    """Put a memo into the inbox, and print what to say to the agent."""
    parsed = parse(NewMemo, "add", {"text": text})
    if isinstance(parsed, Envelope):
        raise click.ClickException(parsed.result.message)
    memo = MemoApplicationService(memo_database({})).add(parsed.text)
    click.echo(message(memo.id, memo.text))


@desk.command("list")
def list_all() -> None:
    """Print all memos, their tasks, and why they became that."""
    memos, tasks = MemoApplicationService(memo_database({})), TaskApplicationService(memo_database({})).tasks()
    for memo in memos.memos():
        click.echo(f"{message(memo.id, memo.text)}  [{memo.status}]")
        for task in tasks:
            if task.memo_id == memo.id:
                click.echo(f"    {_line(task)}")
        if decision := memos.decision(memo.id):
            click.echo(f"    because {', '.join(decision.payload.decision_summary.applied_rules)}")
    if loose := [task for task in tasks if task.memo_id is None]:
        click.echo("Tasks that no decision names:")
        for task in loose:
            click.echo(f"    {_line(task)}")


@desk.command()
@click.argument("conversation", required=False)
def audit(conversation: str | None) -> None:
    """Print every call of a tool with what went in and what came out."""
    for line in audit_lines(steps_of(memo_database({}), conversation)):
        click.echo(line)


@desk.command()
@click.confirmation_option(prompt="This deletes all memos, tasks and decisions. Go on?")
def begin() -> None:
    """Empty the database, and put the six sample memos into it."""
    with Database(address({}), begin_again).session():
        click.echo("The database holds the six sample memos, and no task.")


@desk.command("downgrade")
def go_back() -> None:
    """Take the status draft out of the database again; drafts become tasks to do. A tool's next call brings it back."""
    with Database(address({}), remove_draft).session():
        click.echo("No task can be a draft any more.")


def _line(task: StoredTask) -> str:
    due = "" if task.due_date is None else f", due {task.due_date.isoformat()}"
    project = "" if task.project_title is None else f", {task.project_title}"
    return f"task {task.id}: {task.title}  [{task.status}{due}{project}]"


if __name__ == "__main__":
    try:
        desk(prog_name="python -m examples.memo_to_task")
    except SetupError as error:
        sys.exit(f"Error: {error}")
