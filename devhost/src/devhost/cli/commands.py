"""The command `devhost` with all its subcommands.

The exit code is 0 if the run ended well, 1 if it did not, or if it broke a rule under --strict, 2 if the command line
is wrong, and 130 after Ctrl-C.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from devhost.errors import HostError, PluginLostError, PluginStartError
from devhost.words import examples

RUN_FAILED = 1
ASKED_WRONGLY = 2
INTERRUPTED = 130
DISK_FAULTS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
COMMANDS = {
    "chat": ("run.chat", "Have a conversation with a strategy or a chatflow, one message per line."),
    "check": ("devhost.overview.check", "Check a plugin by the daemon's rules, or an app by the editor's."),
    "compare": ("trace.compare", "Show what differs between two traced runs."),
    "eval": ("evaluation.eval_", "Run the cases of a file, and say which ones pass."),
    "flow": ("flow.flow", "Play a chatflow or workflow on Dify's own engine, without Dify."),
    "fork": ("recording.fork", "Run a traced run again from a given round, with a change."),
    "init": ("devhost.scaffold.plugin_folder.init", "Write a new plugin that runs, with a scenario and a test."),
    "list": ("devhost.overview.list_", "List a plugin's strategies, tools, parameters and examples."),
    "model": ("model.model", "Call one model of a model plugin, or list its models."),
    "package": ("devhost.package.package", "Check a plugin, pack it, and try to install the package."),
    "record": ("recording.record", "Make a case from a traced run: a script that runs it again."),
    "replay": ("trace.replay", "Show a traced run again, as it was printed."),
    "report": ("trace.report_page", "Make a self-contained page of a traced run."),
    "run": ("run.run", "Run a strategy or a flow, and show what happens."),
    "tool": ("tool.tool", "Call one tool, and show every message."),
    "ui": ("ui.ui", "Serve the console, a local page to run and compare agents."),
}
"""The location of each command and its summary in `devhost --help`."""


class LazyGroup(click.Group):
    """A group that imports a command only when it is used, because importing all commands takes a second."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click calls it with a context
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        if cmd_name not in COMMANDS:
            return None
        place, _ = COMMANDS[cmd_name]
        module, _, name = (place if place.startswith("devhost.") else f"devhost.cli.{place}").rpartition(".")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in sorted(COMMANDS.items())])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command, prints its error if it fails, and returns the exit code."""
    given = tuple(sys.argv[1:] if arguments is None else arguments)
    try:
        code: int = commands.main(args=list(given), prog_name="devhost", standalone_mode=False, obj=given)
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return ASKED_WRONGLY
    except HostError as error:
        click.echo(f"Error: {error}", err=True)
        if isinstance(error, PluginStartError | PluginLostError):
            return RUN_FAILED
        return ASKED_WRONGLY
    except OSError as error:
        is_too_long = error.errno == errno.ENAMETOOLONG
        if error.errno not in DISK_FAULTS and not is_too_long:
            raise
        with contextlib.suppress(OSError):
            where = error.filename or "the output"
            click.echo(f"Error: {where} cannot be {'used' if is_too_long else 'written'}: {error.strerror}", err=True)
        with contextlib.suppress(OSError):  # otherwise Python writes the rest of its buffer at exit and fails again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if is_too_long:
            return ASKED_WRONGLY
        return RUN_FAILED
    return code


@click.group(
    cls=LazyGroup,
    epilog=examples(
        "devhost run --example helpdesk --trace run.jsonl",
        "devhost report run.jsonl",
        "devhost chat --example helpdesk",
        "devhost ui",
    ),
)
@click.version_option(package_name="dify-devhost")
def commands() -> None:
    """Run agent strategies, tools and whole flows without Dify. Each command has its own help."""
