"""The commands `sync`, `ask`, `list`, `audit` and `evaluate`.

Exit codes: 0 it worked, 1 there is no answer, 2 for a mistake in the command or its settings.
"""

import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import click
from answering.domain.retrieval import RetrievalContext
from answering.domain.values import PromptTemplate
from answering.index.folder import UnreadableError
from answering.services import (
    PLUGIN_FOLDER,
    VARIABLE,
    answers_of,
    generate_and_reply,
    open_database,
    sync_service,
)
from tool_layer.address import CREDENTIAL
from tool_layer.audit import audit_lines
from tool_layer.database import Database
from tool_layer.errors import SetupError
from tool_layer.run_steps import steps_of

from devhost import Host, HostError, ModelBackend
from devhost.hosting import ModelOptions
from devhost.options import takes
from devhost.script import Script

from .agent import STRATEGIES, AgentGenerator
from .evaluating import evaluation_lines
from .output import answer_lines, page_lines, reply_lines, sync_lines
from .prompt import INSTRUCTION
from .scripted import NOTICE, script_for

REPOSITORY = Path(__file__).resolve().parents[3]
"""Where the strategy plugin is."""
ANSWERED = 0
NOT_ANSWERED = 1
ASKED_WRONGLY = 2


def main(arguments: Sequence[str] | None = None) -> int:
    logging.basicConfig(format="%(levelname)s %(message)s")
    try:
        code: int | None = commands.main(args=arguments, prog_name="python -m examples.answers", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return ASKED_WRONGLY
    except (SetupError, UnreadableError, HostError) as error:
        click.echo(f"Error: {error}", err=True)
        return ASKED_WRONGLY
    return code or 0


@click.group()
@click.option(
    "--database", metavar="URL", help=f"postgresql://… or sqlite:///…; else {VARIABLE}, else a file in data/."
)
@click.pass_context
def commands(context: click.Context, database: str | None) -> None:
    """Answers from a folder of documents, with their sources."""
    context.obj = open_database({CREDENTIAL: database})


@commands.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.pass_obj
def sync(database: Database, folder: Path) -> None:
    """Build the index of a folder of Markdown files; again: read only what has changed."""
    _print(sync_lines(sync_service(database).sync(folder)))


@commands.command()
@click.argument("question")
@click.option("--strategy", type=click.Choice(STRATEGIES), default=STRATEGIES[0], help="The agent's strategy.")
@click.option(
    "--save/--no-save",
    "saves",
    default=True,
    envvar="ANSWERS_SAVE",
    show_envvar=True,
    help="Save the answer with its sources; by default yes.",
)
@click.option(
    "--system-prompt",
    metavar="TEXT",
    default=INSTRUCTION,
    envvar="ANSWERS_SYSTEM_PROMPT",
    show_envvar=True,
    help="What the agent is told, in place of the text in answers_cli/prompt.py; {documents} are the titles found.",
)
@takes(model_options=ModelOptions)
@click.pass_obj
def ask(  # noqa: PLR0913 - its options
    database: Database, question: str, strategy: str, *, saves: bool, system_prompt: str, model_options: ModelOptions
) -> int:
    """Answer a question from the index; no key is needed."""
    _refuse_wrong_options(model_options)
    try:
        prompt = PromptTemplate(system_prompt)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--system-prompt") from None
    generator = AgentGenerator(
        partial(Host.start, REPOSITORY), partial(_choose_model, model_options, strategy), strategy, prompt
    )
    reply = generate_and_reply(database, generator, saves_answers=saves).reply_to(question)
    _print(reply_lines(reply))
    if reply.code is None:
        return ANSWERED
    return NOT_ANSWERED


def _choose_model(options: ModelOptions, strategy: str, context: RetrievalContext) -> ModelBackend:
    model = options.choose(script_for(context, strategy), context.question.text)
    click.echo(NOTICE if model.description.scripted else f"model: {model.description.name}", err=True)
    return model


def _refuse_wrong_options(options: ModelOptions) -> None:
    """Before anything is searched; devhost's ParameterError says what is wrong."""
    options.choose(Script.of({"query": "", "turns": [{"text": ""}]}), "")


DAY = "%Y-%m-%d"
INSTANT = click.DateTime([DAY, "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"])
FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)


@commands.command("list")
@click.option("--from", "first", type=INSTANT, help="A day or an instant in UTC: 2026-11-01, 2026-11-01T08:30.")
@click.option("--to", "last", type=INSTANT, help="A day, which is included, or an instant, which is not.")
@click.option("--page", type=click.IntRange(1, 1_000_000), default=1, show_default=True)
@click.option("--size", type=click.IntRange(1, 1000), default=20, show_default=True, help="Answers on a page.")
@click.option("--recent", type=click.IntRange(1, 1000), metavar="N", help="Only the newest N, of any time.")
@click.pass_obj
def list_(  # noqa: PLR0913 - its options
    database: Database, *, first: datetime | None, last: datetime | None, page: int, size: int, recent: int | None
) -> None:
    """Show saved answers and the questions without one, the newest first."""
    if recent is not None:
        _print(answer_lines(answers_of(database).recent(recent)))
        return
    begin = first.replace(tzinfo=UTC) if first else FIRST
    end = last.replace(tzinfo=UTC) if last else LAST
    if last and last.time() == last.min.time():
        end += timedelta(days=1)
    _print(page_lines(answers_of(database).between(begin, end, page=page, size=size), page))


@commands.command()
@click.argument("conversation", required=False)
@click.pass_obj
def audit(database: Database, conversation: str | None) -> None:
    """Show what the tool was asked and returned, of a conversation; or of all, with the questions without an answer."""
    _print(audit_lines(steps_of(database, conversation)))
    if conversation is None:
        _print(answer_lines(answers_of(database).unanswered()))


@commands.command()
@click.argument(
    "questions", metavar="[FILE]", default=PLUGIN_FOLDER / "questions.yaml", type=click.Path(path_type=Path)
)
@click.pass_obj
def evaluate(database: Database, questions: Path) -> None:
    """Show what letters, meaning and both find of each question in FILE."""
    _print(evaluation_lines(database, questions))


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)
