"""The help of every command ends with examples that can run."""

import re
import shlex
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from devhost.cli.commands import COMMANDS as SUMMARIES
from devhost.cli.commands import commands
from devhost.plugin.problems import RULES
from tests.support.command_checks import check_page
from tests.support.pages import PAGES


def of_group(group: click.Group, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from of_group(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = {" ".join(path): path for path, _ in of_group(commands, ())}
GROUPS: tuple[tuple[str, ...], ...] = ((), ("flow",))


def help_of(path: tuple[str, ...]) -> str:
    """As at a terminal of 80 columns."""
    return CliRunner().invoke(commands, [*path, "--help"], terminal_width=80).output


def examples_of(path: tuple[str, ...]) -> list[str]:
    _, after = help_of(path).split("For example:\n")
    return [line.strip() for line in after.splitlines() if line.strip()]


@pytest.mark.parametrize("path", COMMANDS.values(), ids=COMMANDS)
def test_the_help_has_an_example_of_the_command(path: tuple[str, ...]) -> None:
    examples = examples_of(path)

    short = path[:-1] if path[-1] == "run" and len(path) > 1 else path
    assert any(shlex.split(line)[1 : 1 + len(short)] == list(short) for line in examples)


@pytest.mark.parametrize("path", [*GROUPS, *COMMANDS.values()], ids=["devhost", "flow", *COMMANDS])
def test_the_examples_run_in_the_repository(path: tuple[str, ...]) -> None:
    examples = examples_of(path)

    assert all(line.startswith("devhost ") for line in examples)
    page = "\n".join(["```sh", *examples, "```"])
    assert check_page(page) == []
    assert not re.search(r"\b[A-Z]{3,}\b|…", " ".join(examples)), "a word that stands for something else"


@pytest.mark.parametrize("name", SUMMARIES)
def test_the_list_says_of_a_command_what_its_own_help_says_first(name: str) -> None:
    command = commands.get_command(click.Context(commands), name)

    assert command is not None
    assert SUMMARIES[name][1] == command.get_short_help_str(limit=200)


def test_the_help_of_check_lists_the_rules() -> None:
    shown = help_of(("check",))
    assert [rule for rule in RULES if f"\n    {rule} " not in shown] == []


def test_each_option_is_on_a_page() -> None:
    said = "".join(page.read_text(encoding="utf-8") for page in PAGES if page.stem != "CHANGELOG")
    options = {each for _, command in of_group(commands, ()) for option in command.params for each in option.opts}
    missing = {each for each in options if each.startswith("--") and not re.search(rf"{each}(?![\w-])", said)}
    assert missing == {"--install", "--open", "--output"}, "two defaults, and one that the pages write as -o"
