"""The command `record`: makes a case of a trace."""

from pathlib import Path

import click

from devhost.cli.options.trace_options import trace_argument
from devhost.recording.case import recorded_case
from devhost.recording.file import refuse_to_overwrite, write_case
from devhost.recording.kept_files import KeptFiles
from devhost.text.command_help import examples
from devhost.trace.reader import read_trace

CASE = ".case.yaml"
"""In place of the trace's own suffix."""


@click.command(
    epilog=examples(
        "devhost run --example helpdesk --trace run.jsonl",
        "devhost record run.jsonl -o case.yaml",
        "devhost run --script case.yaml",
    )
)
@trace_argument
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"Where the case goes; by default beside the trace, with {CASE} at its end.",
)
@click.option("--force", is_flag=True, help="Overwrite a file that exists.")
def record(*, trace_file: Path, output: Path | None, force: bool) -> int:
    """Make a case of a traced run: a script that runs it again.

    It needs neither the tools nor a model: the model's turns become turns of the script, and each tool answers from the
    recording, by its name and arguments.
    """
    output = output or trace_file.with_suffix(CASE)
    trace = read_trace(trace_file)
    refuse_to_overwrite(output, force=force)
    case = recorded_case(trace, trace_file, KeptFiles(trace_file, output))
    write_case(case, output)
    for sentence in case.lacks:
        click.echo(f"not recorded: {sentence}", err=True)
    click.echo(output)
    return 0
