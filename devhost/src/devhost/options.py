"""Options of a command, each declared once: as a field of a frozen value that the command gets."""

import functools
import json
from collections.abc import Callable, Iterator
from dataclasses import Field, field, fields
from pathlib import Path
from typing import Any

import click

DIRECTORY = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
PATH = click.Path(path_type=Path)

type Command = Callable[..., int]


def option(*names: str, hidden: bool = False, **settings: Any) -> Any:  # noqa: ANN401 - a field of any type
    """A field that is an option, with the settings of `click.option`. `hidden`: its value may be secret."""
    default = () if settings.get("multiple") else settings.get("default", False if settings.get("is_flag") else None)
    declared = functools.partial(click.option, *names, **settings)
    return field(default=default, repr=not hidden, metadata={"declared": declared})


def argument(**settings: Any) -> Any:  # noqa: ANN401 - a field of any type
    """A field that is an argument, with the settings of `click.argument`."""
    return field(default=None, metadata={"declared": functools.partial(click.argument, **settings)})


def takes(*groups: type, **named: type) -> Callable[[Command], Command]:
    """Calls the command with a value of each of these frozen dataclasses, and with what other options give.

    A field that several have is one option.
    """
    declared = {each.name: each for group in (*groups, *named.values()) for each in _declared(group)}

    def decorated(command: Command) -> Command:
        @functools.wraps(command)
        def called(*passed: object, **given: object) -> int:
            def value(group: type) -> object:
                return group(**{each.name: given[each.name] for each in _declared(group)})

            values, by_name = [value(group) for group in groups], {name: value(group) for name, group in named.items()}
            others = {name: other for name, other in given.items() if name not in declared}
            return command(*passed, *values, **by_name, **others)

        for each in reversed(declared.values()):
            each.metadata["declared"](each.name)(called)
        return called

    return decorated


def arguments(group: Any) -> Iterator[str]:  # noqa: ANN401 - a dataclass
    """A value as it would be typed: its argument, and its options that differ from their defaults."""
    for each in _declared(group):
        value, names = getattr(group, each.name), each.metadata["declared"].args[:1]
        if value is True:
            yield from names
        elif value != each.default:
            for one in value if isinstance(value, tuple) else (value,):
                yield from (*names, str(one))


def _declared(group: Any) -> list[Field[Any]]:  # noqa: ANN401 - a dataclass
    return [each for each in fields(group) if "declared" in each.metadata]


# Options that several commands have.


def json_option() -> Any:  # noqa: ANN401 - a field
    return option("--json", is_flag=True, help="Print one JSON object on stdout, and the rest on stderr.")


def json_lines_option() -> Any:  # noqa: ANN401 - a field
    words = (
        "Read each question as a line of JSON, a text, so that it can have several lines; for other programs. "
        "Ctrl-C then ends a turn, and has no effect between two."
    )
    return option("--json-lines", is_flag=True, help=words)


def color_option() -> Any:  # noqa: ANN401 - a field
    """True unless --no-color is given."""
    declared = functools.partial(
        click.option, "--no-color", is_flag=True, callback=lambda *given: not given[-1], help="Print without colours."
    )
    return field(default=True, metadata={"declared": declared})


def traceback_option() -> Any:  # noqa: ANN401 - a field
    return option("--traceback", is_flag=True, help="Show the tracebacks of the plugins' errors.")


def trace_argument() -> Any:  # noqa: ANN401 - a field
    return argument(metavar="TRACE", type=FILE)


def trace_option() -> Any:  # noqa: ANN401 - a field
    words = "Write every message both ways to a file of JSON lines, without credentials, for replay and report."
    return option("--trace", metavar="FILE", type=FILE, help=words)


def print_json(value: Any) -> None:  # noqa: ANN401 - JSON
    """What --json prints."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))
