"""`python -m examples.helpdesk`: each step of a plan alone, and what keyword and meaning find.

A step reads the JSON that the step before printed. Without a key a scripted model answers, from steps.yaml.
"""

import json
import sys
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))

from helpdesk_steps.compare import figures, lines
from helpdesk_steps.steps import Finding, Steps

from devhost import Host
from devhost.hosting import ModelOptions
from devhost.models.scripted.script import Script
from devhost.options import takes

HERE = Path(__file__).resolve().parent
STEPS = ("plan", "subtask", "reflect", "answer")


@click.group()
def desk() -> None:
    """The help desk's steps, one at a time, and its searches compared."""


@desk.command()
@click.argument("chosen", metavar=f"[{'|'.join(STEPS)}]", type=click.Choice(STEPS))
@click.argument("given", metavar="[JSON]", required=False)
@takes(model_options=ModelOptions)
def step(chosen: str, given: str | None, *, model_options: ModelOptions) -> int:
    """Run one step; prints what it was given, and its own result, as JSON for the next step.

    JSON, else standard input, is an object with the `question`; subtask also needs `plan` (and takes `number`), reflect
    `plan` and `finding`, answer `finding`.
    """
    try:
        known: dict[str, Any] = json.loads(given or sys.stdin.read())
    except ValueError as error:
        raise click.UsageError(f'not JSON: {error}; give an object such as {{"question": "…"}}') from None
    script = Script.read(HERE / "steps.yaml")  # plays for any question
    model = model_options.choose(script, script.query)
    with Host.start(HERE.parents[1], tools=[HERE]) as host:
        known |= _done(Steps(host, model), chosen, known)
    click.echo(json.dumps(known, ensure_ascii=False, indent=2))
    return 0


def _done(steps: Steps, chosen: str, known: dict[str, Any]) -> dict[str, Any]:
    question = known["question"]
    if chosen == "plan":
        return {"plan": steps.plan(question)}
    if chosen == "subtask":
        return {"finding": vars(steps.subtask(question, known["plan"], known.get("number", 1)))}
    finding = Finding(**known["finding"])
    if chosen == "reflect":
        return dict(steps.reflect(known["plan"], finding))
    return {"answer": steps.answer(question, [finding])}


@desk.command()
def compare() -> None:
    """Print what keywords and meaning find, for the questions of comparison.yaml."""
    for line in lines(figures(HERE)):
        click.echo(line)


if __name__ == "__main__":
    desk(prog_name="python -m examples.helpdesk")
