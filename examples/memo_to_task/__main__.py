"""The desk's command line: `python -m examples.memo_to_task`. The database is that of the plugin.

It reads the same environment variable as the plugin, or uses the plugin's own file.
"""

import sys
from pathlib import Path

import click

sys.path.append(str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))

from memos.database import VARIABLE, address, begin_again, memo_database, remove_draft
from memos.services import MemoService
from memos.values import NewMemo, Task
from tool_layer.audit import audit_lines
from tool_layer.database import Database
from tool_layer.errors import RefusedError, SetupError
from tool_layer.parsing import parse
from tool_layer.run_steps import steps_of


@click.group(epilog=f"The database is the one that {VARIABLE} names, else the plugin's own SQLite file.")
def desk() -> None:
    """Memos for the example memo_to_task, and what the agent made of them."""


@desk.command()
@click.argument("text")
def add(text: str) -> None:
    """Put a memo into the inbox, and print what to say to the agent."""
    try:
        new = parse(NewMemo, "add", {"text": text})
    except RefusedError as error:
        raise click.ClickException(str(error)) from None
    click.echo(MemoService(memo_database({})).add(new.text).message)


@desk.command("list")
def list_all() -> None:
    """Print all memos, their tasks, and why they became that."""
    service = MemoService(memo_database({}))
    for memo in service.memos():
        click.echo(f"{memo.message}  [{memo.status}]")
        for task in service.tasks(memo.id):
            click.echo(f"    {_line(task)}")
        if decision := service.decision(memo.id):
            summary = decision.decision_summary
            click.echo(f"    because {', '.join(summary.applied_rules)}")
            for quotation in summary.quotations:
                click.echo(f'    it says "{quotation}"')
            for note in summary.safety_notes or ():
                click.echo(f"    note: {note}")


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


def _line(task: Task) -> str:
    more = [str(task.status), f"due {task.due_date}" if task.due_date else "", task.project_title or ""]
    return f"task: {task.title}  [{', '.join(filter(None, more))}]"


if __name__ == "__main__":
    try:
        desk(prog_name="python -m examples.memo_to_task")
    except SetupError as error:
        sys.exit(f"Error: {error}")
