"""Command options, each declared once, as a field of a frozen dataclass that the command receives."""

import functools
import inspect
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import Field, field, fields
from pathlib import Path
from typing import Any

import click

from devhost.words import examples


class _Folder(click.Path):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's type
        if str(value).endswith(".difypkg") and Path(value).is_file():
            self.fail(f"{value} is a package: unpack it, as a zip file, and name the folder", param, ctx)
        return super().convert(value, param, ctx)


FILE = click.Path(dir_okay=False, path_type=Path)
DIRECTORY = _Folder(file_okay=False, path_type=Path)
PATH = click.Path(path_type=Path)
PLUGIN_PATH = _Folder(path_type=Path)
_BY_NAME = {"FILE": FILE, "DIR": DIRECTORY, "PATH": PATH}
_CHOICE = re.compile(r"[\[{]([a-z]+(?:\|[a-z]+)+)[]}]")

type Command = Callable[..., int]
type Kind = click.ParamType[Any, Any]
type Declared = Any
"""A dataclass field of any type."""


def option(usage: str, words: str, *, hidden: bool = False, **settings: Any) -> Declared:  # noqa: ANN401 - click's types
    """Declare a field that is an option, with `words` as its help and further settings for `click.option`.

    `usage` is written as in a synopsis: `--force` is a flag, and `--tools DIR...` may be repeated. The placeholder of
    the value sets its type, if it is FILE, DIR, PATH or `[one|another]`. `hidden` means that the value may be secret.
    """
    parts = usage.replace(", ", " ").split(" ")
    names = [part for part in parts if part.startswith("-")]
    taken, dots, _ = "".join(parts[len(names) :]).partition("...")
    settings = {"type": _type(taken), "multiple": bool(dots), "is_flag": not taken, **settings}
    default = settings.get("default")
    if dots:
        default = ()
    elif not taken:
        default = settings.get("default", False)
    declared = functools.partial(click.option, *names, metavar=taken or None, help=words, **settings)
    return field(default=default, repr=not hidden, metadata={"declared": declared})


def argument(usage: str, kind: Kind | None = None) -> Declared:
    """Declare a field that is an argument. It may be left out if it is in brackets, and repeated if it has dots.

    `kind` is its type. By default, the placeholder sets the type, as for an option.
    """
    required = not usage.startswith("[")
    count = 1
    default: tuple[()] | None = None
    if usage.endswith("..."):
        count = -1
        default = ()
    declared = functools.partial(
        click.argument, type=kind or _type(usage), required=required, metavar=usage, nargs=count
    )
    return field(default=default, metadata={"declared": declared})


def _type(taken: str) -> Kind | None:
    choice = _CHOICE.fullmatch(taken)
    if choice:
        return click.Choice(choice[1].split("|"))
    return _BY_NAME.get(taken.strip("[]"))


def command(
    *groups: type,
    name: str | None = None,
    of: click.Group | None = None,
    epilog: str = "",
    cls: type[click.Command] = click.Command,
) -> Callable[[Command], click.Command]:
    """Make a command that `takes` these groups.

    The command's help is the function's docstring, in which `For example:` begins the examples.
    """

    def decorated(function: Command) -> click.Command:
        words, _, lines = inspect.cleandoc(function.__doc__ or "").partition("\n\nFor example:\n")
        shown = epilog + examples(*map(str.strip, lines.splitlines()))
        make = click.command if of is None else of.command
        return make(name, cls=cls, help=words, epilog=shown)(takes(*groups)(function))

    return decorated


def takes(*groups: type, **named: type) -> Callable[[Command], Command]:
    """Call the command with an instance of each of these frozen dataclasses, and with the values of other options.

    A field that several dataclasses have is one option.
    """
    declared = {each.name: each for group in (*groups, *named.values()) for each in _declared(group)}

    def decorated(command: Command) -> Command:
        @functools.wraps(command)
        def called(*passed: object, **given: object) -> int:
            def value(group: type) -> object:
                return group(**{each.name: given[each.name] for each in _declared(group)})

            values = [value(group) for group in groups]
            by_name = {name: value(group) for name, group in named.items()}
            others = {name: other for name, other in given.items() if name not in declared}
            return command(*passed, *values, **by_name, **others)

        for each in reversed(declared.values()):
            each.metadata["declared"](each.name)(called)
        return called

    return decorated


def arguments(group: Any) -> Iterator[str]:  # noqa: ANN401 - any dataclass
    """Yield a value as it would be typed: its argument, and its options that differ from their defaults."""
    for each in _declared(group):
        value = getattr(group, each.name)
        names = each.metadata["declared"].args[:1]
        if value is True:
            yield from names
        elif value != each.default:
            for one in value if isinstance(value, tuple) else (value,):
                yield from (*names, str(one))


def _declared(group: Any) -> list[Field[Any]]:  # noqa: ANN401 - any dataclass
    return [each for each in fields(group) if "declared" in each.metadata]


# Options that several commands have.

PLUGIN = "The strategy plugin; by default DEVHOST_PLUGIN, else the nearest in or above the folder."


def json_option() -> Declared:
    return option("--json", "Print one JSON object on stdout, and the rest on stderr.")


def color_option() -> Declared:
    """Declare an option that is true unless --no-color is given."""
    declared = functools.partial(
        click.option, "--no-color", is_flag=True, callback=lambda *given: not given[-1], help="Print without colours."
    )
    return field(default=True, metadata={"declared": declared})


def traceback_option() -> Declared:
    return option("--traceback", "Show the tracebacks of the plugins' errors.")


def trace_option() -> Declared:
    words = "Write every message both ways to a file of JSON lines, without credentials, for replay and report."
    return option("--trace FILE", words)


def print_json(value: Any) -> None:  # noqa: ANN401 - any JSON value
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))
