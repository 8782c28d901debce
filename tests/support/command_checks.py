"""Whether the commands of a page can run: targets, options, files and examples that they name exist.

In: a page's text. Out: a sentence for each command that cannot run as it stands there.
"""

import importlib.util
import re
from pathlib import Path

import click
import yaml
from pathspec import GitIgnoreSpec

from devhost.cli.commands import commands
from devhost.plugin.contents import Ignored
from tests.support.documented_commands import Command, shown_commands, shown_files
from tests.support.pages import ROOT

TEMPLATES = ROOT / "devhost" / "src" / "devhost" / "scaffold" / "templates"
NEW_PLUGIN = {
    str(path.relative_to(folder)).removesuffix(".jinja").replace("{{ name }}", f"my_{folder.name}")
    for folder in TEMPLATES.iterdir()
    for path in folder.rglob("*.jinja")
}
"""What `devhost init` writes in examples."""
_PLACEHOLDER = re.compile(r"[A-Z]+(?:\.\w+)?")
_OUTPUTS = frozenset({"--output", "--trace", "--report", "--results", "--storage", "--folder"})
"""Options that name a file or a folder to be written."""


class MistakeError(Exception):
    """What is wrong with a command of a page."""


def check_page(text: str) -> list[str]:
    """A sentence for each command that cannot run as it stands, with the line."""
    return _tried(text)[1]


def packed_or_known(text: str) -> set[str]:
    """Of what the files and commands of a page leave in the root: what git offers to add, or a package would hold."""
    left = {path for path in _tried(text)[0] if not path.startswith(("/", ".."))}
    git = GitIgnoreSpec.from_lines((ROOT / ".gitignore").read_text(encoding="utf-8").splitlines())
    dify = Ignored.of((ROOT / ".difyignore").read_text(encoding="utf-8"))
    return {path for path in left if not (git.match_file(path) and dify.leaves_out(path, is_folder=False))}


def _tried(text: str) -> tuple[set[str], list[str]]:
    """What is written, and a sentence for each command that cannot run."""
    made = set(shown_files(text))
    problems = []
    for command in shown_commands(text):
        try:
            made |= {*command.written, *_check(command, made)}
        except (MistakeError, click.ClickException) as mistake:
            problems.append(f"{command.line}: {mistake}")
    return made, problems


def _check(command: Command, made: set[str]) -> set[str]:
    """What the command writes.

    Raises:
        MistakeError: something that it names does not exist.
        click.ClickException: devhost has no such command or option.
    """
    if command.devhost is not None:
        return _check_devhost(command.devhost, made)
    match command.words:
        case ("make", *targets):
            return _check_make(targets)
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
    return set()


def _expect(fact: bool, otherwise: str) -> None:  # noqa: FBT001 - it is the subject
    if not fact:
        raise MistakeError(otherwise)


def _check_make(words: list[str]) -> set[str]:
    known = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[0].split()
    for target in (word for word in words if "=" not in word):
        _expect(target in known, f"make has no target {target}")
    return {_package(ROOT)} if "package" in words else set()


def _package(plugin: Path) -> str:
    manifest = yaml.safe_load((plugin / "manifest.yaml").read_text(encoding="utf-8"))
    return f"dist/{manifest['name']}-{manifest['version']}.difypkg"


def _check_devhost(arguments: list[str], made: set[str]) -> set[str]:
    command: click.Command = commands
    context = click.Context(command, info_name="devhost")
    rest = arguments
    while isinstance(command, click.Group):
        if rest[0] not in command.commands and "run" in command.commands and command is not commands:
            rest = ["run", *rest]  # devhost flow FILE
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command, context = found, click.Context(found, info_name=name, parent=context)
    given, _, _ = command.make_parser(context).parse_args(list(rest))
    values = {parameter: _values(given.get(parameter.name or "")) for parameter in command.params}
    written = set()
    for parameter, each in ((parameter, each) for parameter, all_of in values.items() for each in all_of):
        if isinstance(parameter.type, click.Choice):
            parameter.type.convert(each, parameter, context)
        elif isinstance(parameter.type, click.Path):
            if _OUTPUTS & {*parameter.opts}:
                written.add(each)
            else:
                _expect(_is_there(each, made), f"no earlier command writes {each}, and the repository does not have it")
    named = {parameter.name: [str(each) for each in all_of] for parameter, all_of in values.items()}
    _check_example(named)
    return written | _written_unnamed(command.name or "", named)


def _values(given: object) -> list[str]:
    """Of an option that can be repeated all, of any other the one."""
    if isinstance(given, list | tuple):
        return [str(each) for each in given]
    return [given] if isinstance(given, str) else []


def _is_there(path: str, made: set[str]) -> bool:
    below_made = any(path.startswith(f"{folder}/") for folder in made)
    return (
        _PLACEHOLDER.fullmatch(path) is not None
        or path in made
        or below_made
        or path in NEW_PLUGIN
        or (ROOT / path).exists()
    )


def _check_example(named: dict[str, list[str]]) -> None:
    for example in named.get("example", []):
        folder = ROOT / "examples" / example
        _expect((folder / "manifest.yaml").is_file(), f"there is no example {example}")
        for scenario in named.get("scenario", []):
            _expect((folder / "scenarios" / f"{scenario}.yaml").is_file(), f"{example} has no scenario {scenario}")


def _written_unnamed(name: str, named: dict[str, list[str]]) -> set[str]:
    """What a command writes without being told where."""
    match name:
        case "report" | "record" if not named["output"]:
            suffix = ".html" if name == "report" else ".case.yaml"
            return {str(Path(trace).with_suffix(suffix)) for trace in named["trace"]}
        case "package" if not named["output"]:
            return {_package(ROOT / plugin) for plugin in named["plugin"] or ["."]}
        case "init" if not named["folder"]:
            return set(named["name"])
    return set()
