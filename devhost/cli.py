"""`python -m devhost`: the commands.

Exit codes: 0 the run ended well, 1 it did not, 2 it was asked for wrongly, 130 Ctrl-C.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from devhost.declaration import PluginDeclaration
from devhost.errors import HostError, ParameterError, PluginLostError, PluginStartError
from devhost.host import Host, find_strategy
from devhost.report import report
from devhost.scenario import Example, parameter_values, parse_assignments
from devhost.scripted import ScriptedModel
from devhost.terminal import RunView, open_console

HOME = Path(__file__).resolve().parent.parent
ENDED_WELL, RUN_FAILED, ASKED_WRONGLY, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        code: int = commands.main(args=arguments, prog_name="python -m devhost", standalone_mode=False)
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return ASKED_WRONGLY
    except HostError as error:
        click.echo(f"Error: {error}", err=True)
        return RUN_FAILED if isinstance(error, PluginStartError | PluginLostError) else ASKED_WRONGLY
    return code


@click.group()
def commands() -> None:
    """An embedded Dify for agent strategies."""


@commands.command()
@click.option(
    "--example", "example_name", metavar="NAME", required=True, help="The example to run, a folder of examples/."
)
@click.option("--query", metavar="TEXT", help="Ask this instead of the example's own question.")
@click.option("--strategy", "strategy_name", metavar="NAME", help="The strategy; the plugin's first one by default.")
@click.option(
    "--param", "assignments", metavar="KEY=VALUE", multiple=True, help="Set a parameter of the strategy; repeatable."
)
@click.option(
    "--plugin",
    "plugin_directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=HOME,
    help="The strategy plugin; by default the one devhost stands in.",
)
@click.option(
    "--examples",
    type=click.Path(file_okay=False, path_type=Path),
    default=HOME / "examples",
    help="Where the examples are; by default beside devhost.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, and the rest on stderr.")
@click.option("--no-color", is_flag=True, help="Print without colours.")
def run(  # noqa: PLR0913 - click gives one argument per option
    *,
    example_name: str,
    query: str | None,
    strategy_name: str | None,
    assignments: tuple[str, ...],
    plugin_directory: Path,
    examples: Path,
    as_json: bool,
    no_color: bool,
) -> int:
    """Run a strategy on an example and show it."""
    example = Example.read(examples, example_name)
    question = example.script.query if query is None else query
    declaration = PluginDeclaration.read(plugin_directory)
    if not declaration.strategies:
        raise ParameterError(f"{plugin_directory} has no agent strategy")
    _, strategy = find_strategy(declaration, strategy_name or next(iter(declaration.strategies)))
    values = parameter_values(strategy, example.script, question, parse_assignments(assignments))
    model = ScriptedModel.from_script(example.script, query=question)

    view = RunView(open_console(stderr=as_json, color=not no_color))
    view.open(example.name, example.script.description, strategy.identity.name, model.description, question)
    try:
        with _host(plugin_directory, example) as host:
            ended = host.run(strategy.identity.name, values, model=model, on_message=view.show)
    finally:
        view.abandon()
    view.close(ended, model.remaining)
    if as_json:
        click.echo(json.dumps(report(ended, model.description), ensure_ascii=False, indent=2))
    return ENDED_WELL if ended.error is None else RUN_FAILED


@contextmanager
def _host(plugin: Path, example: Example) -> Iterator[Host]:
    """The run's files outlive it, for whoever wants to open them; without files nothing is left."""
    files = Path(tempfile.mkdtemp(prefix=f"devhost-{example.name}-"))
    try:
        with Host.start(plugin, tools=[example.directory], files=files) as host:
            yield host
    finally:
        if not any(files.iterdir()):
            files.rmdir()
