"""Whether the commands of a page can run: targets, options, examples and files of the repository that they name exist.

In: a page's text. Out: a sentence for each command that cannot run as it stands there.
"""

import importlib.util
import re

import click

from devhost.cli.commands import commands
from tests.support.documented_commands import Command, shown_commands
from tests.support.pages import ROOT

TEMPLATES = ROOT / "devhost" / "src" / "devhost" / "scaffold" / "templates"
NEW_PLUGIN = {
    str(path.relative_to(folder)).removesuffix(".jinja").replace("{{ name }}", f"my_{folder.name}")
    for folder in TEMPLATES.iterdir()
    for path in folder.rglob("*.jinja")
}
"""What `devhost init` writes in examples."""
FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir()}


class MistakeError(Exception):
    """What is wrong with a command of a page."""


def check_page(text: str) -> list[str]:
    """A sentence for each command that cannot run as it stands, with the line."""
    problems = []
    for command in shown_commands(text):
        try:
            _check(command)
        except (MistakeError, click.ClickException) as mistake:
            problems.append(f"{command.line}: {mistake}")
    return problems


def _check(command: Command) -> None:
    """Look for what the command names.

    Raises:
        MistakeError: something that it names does not exist.
        click.ClickException: devhost has no such command or option.
    """
    if command.devhost is not None:
        _check_devhost(command.devhost)
        return
    match command.words:
        case ("make", *targets):
            _check_make(targets)
        case ("cd", _):
            pass  # also a folder of another program
        case ("python" | ".venv/bin/python", "-m", module, *_):
            _expect(importlib.util.find_spec(module) is not None, f"there is no module {module}")
        case (program, script, *_) if program.endswith("python"):
            _expect((ROOT / script).is_file(), f"there is no {script}")
        case (program, *_) if program.startswith((".ci", "scripts")):
            _expect((ROOT / program).is_file(), f"there is no {program}")
        case _:
            raise MistakeError("no rule says what this is")


def _expect(fact: bool, otherwise: str) -> None:  # noqa: FBT001 - it is the subject
    if not fact:
        raise MistakeError(otherwise)


def _check_make(words: list[str]) -> None:
    known = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[0].split()
    for target in (word for word in words if "=" not in word):
        _expect(target in known, f"make has no target {target}")


def _check_devhost(arguments: list[str]) -> None:
    command: click.Command = commands
    context = click.Context(command, info_name="devhost")
    rest = arguments
    while isinstance(command, click.Group):
        if rest[0] not in command.commands and "run" in command.commands and command is not commands:
            rest = ["run", *rest]  # devhost flow FILE
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command = found
        context = click.Context(found, info_name=name, parent=context)
    given, _, _ = command.make_parser(context).parse_args(list(rest))
    values = {parameter: _values(given.get(parameter.name or "")) for parameter in command.params}
    for parameter, each in ((parameter, each) for parameter, all_of in values.items() for each in all_of):
        if isinstance(parameter.type, click.Choice):
            parameter.type.convert(each, parameter, context)
        elif isinstance(parameter.type, click.Path):
            _check_path(each)
    _check_example({parameter.name: all_of for parameter, all_of in values.items()})


def _values(given: object) -> list[str]:
    """Of an option that can be repeated all, of any other the one."""
    if isinstance(given, list | tuple):
        return [str(each) for each in given]
    if isinstance(given, str):
        return [given]
    return []


def _check_path(path: str) -> None:
    """Whether it exists if it is one of the repository; others a reader has, or an earlier command writes."""
    is_ours = path.partition("/")[0] in FOLDERS and path not in NEW_PLUGIN
    _expect(not is_ours or (ROOT / path).exists(), f"the repository has no {path}")


def _check_example(named: dict[str | None, list[str]]) -> None:
    for example in named.get("example", []):
        folder = ROOT / "examples" / example
        _expect((folder / "manifest.yaml").is_file(), f"there is no example {example}")
        for scenario in named.get("scenario", []):
            _expect((folder / "scenarios" / f"{scenario}.yaml").is_file(), f"{example} has no scenario {scenario}")
