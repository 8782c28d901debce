"""`python -m examples.helpdesk`: each step of a plan alone, and what keyword and meaning find.

A step reads the JSON that the step before printed. Without a key a script answers one question, from steps.yaml.
"""

import json
import sys
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))

from helpdesk_search.answers import read_answers
from helpdesk_search.index import build
from helpdesk_steps.compare import figures, lines
from helpdesk_steps.measures import chunking, nearness, rewriting, table
from helpdesk_steps.steps import STEPS, StepError, steps

from devhost import ScriptedModel
from devhost.hosting import ModelOptions
from devhost.options import takes
from devhost.script import Script

HERE = Path(__file__).resolve().parent


@click.group()
def desk() -> None:
    """The help desk's steps, one at a time, and its searches compared."""


@desk.command()
@click.argument("chosen", metavar=f"[{'|'.join(STEPS)}]", type=click.Choice(STEPS))
@click.argument("given", metavar="[JSON]", required=False)
@takes(model_options=ModelOptions)
def step(chosen: str, given: str | None, *, model_options: ModelOptions) -> int:
    """Run one step; prints what it was given, and its own result, as JSON for the next step.

    JSON, else standard input, is an object with the `question` and what the steps before printed. `number` chooses the
    subtask, from 1.
    """
    try:
        known: Any = json.loads(given or sys.stdin.read())
    except ValueError as error:
        raise click.UsageError(f'not JSON: {error}; give an object such as {{"question": "…"}}') from None
    if not isinstance(known, dict) or not isinstance(known.get("question"), str):
        raise click.UsageError('it has no question; give an object such as {"question": "…"}')
    script = Script.read(HERE / "steps.yaml")
    model = model_options.choose(script, script.query)
    if isinstance(model, ScriptedModel):
        if known["question"] != script.query:
            raise click.UsageError(
                f"without OPENAI_API_KEY a script answers, and it knows one question: {script.query}"
            )
        click.echo("A script answers (steps.yaml), since there is no OPENAI_API_KEY.", err=True)
    with steps(model) as desk:
        try:
            known = desk.take(chosen, known)
        except StepError as error:
            raise click.ClickException(str(error)) from None
    click.echo(json.dumps(known, ensure_ascii=False, indent=2))
    return 0


@desk.command()
def compare() -> None:
    """Print what keywords and meaning find, for the questions of comparison.yaml."""
    for line in lines(figures(HERE)):
        click.echo(line)


@desk.command()
def index() -> None:
    """Keep the index in a file, index.sqlite3, so that no process has to make it."""
    past = read_answers(HERE / "qa")
    stored = build(HERE / "manual", [each.question for each in past])
    click.echo(f"{stored.name} has the manual and the vectors of {len(past)} past questions.")


@desk.command()
@click.argument(
    "what", metavar="[nearness|rewriting|chunking]", type=click.Choice(["nearness", "rewriting", "chunking"])
)
def measure(what: str) -> None:
    """Print a table of the page on search: measures of nearness, rewritten questions, or cuts of the manual."""
    rows = {"nearness": nearness, "rewriting": rewriting, "chunking": chunking}[what](HERE)
    for line in table(rows):
        click.echo(line)


if __name__ == "__main__":
    desk(prog_name="python -m examples.helpdesk")
