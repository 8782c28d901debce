"""The help of every command ends with examples, whose commands and options exist."""

import shlex
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from devhost.cli.commands import commands


def of_group(group: click.Group, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from of_group(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = {" ".join(path): path for path, _ in of_group(commands, ())}


def examples_of(path: tuple[str, ...]) -> list[str]:
    shown = CliRunner().invoke(commands, [*path, "--help"]).output
    _, found, after = shown.partition("For example:\n")
    assert found, shown
    return [line.strip() for line in after.splitlines() if line.strip()]


@pytest.mark.parametrize("path", COMMANDS.values(), ids=COMMANDS)
def test_the_help_has_an_example_of_the_command(path: tuple[str, ...]) -> None:
    examples = examples_of(path)

    short = path[:-1] if path[-1] == "run" and len(path) > 1 else path
    assert any(shlex.split(line)[1 : 1 + len(short)] == list(short) for line in examples)


@pytest.mark.parametrize("path", COMMANDS.values(), ids=COMMANDS)
def test_the_options_of_an_example_exist(path: tuple[str, ...]) -> None:
    for line in examples_of(path):
        program, *arguments = shlex.split(line)
        assert program == "devhost"
        command: click.Command = commands
        while isinstance(command, click.Group):
            context = click.Context(command)
            command = command.commands.get(arguments[0]) or command.commands["run"]
            arguments = arguments[1:] if arguments[0] == command.name else arguments
            context.close()
        options = {name for option in command.params for name in option.opts}
        assert {argument for argument in arguments if argument.startswith("-")} <= options
