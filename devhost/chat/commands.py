"""The commands of a chat: lines that begin with a slash. In: a line. Out: which command, and the words behind it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Command(StrEnum):
    APPROVE = "/approve"
    REJECT = "/reject"
    LOG = "/log"
    SOURCES = "/sources"
    PARAM = "/param"
    FILE = "/file"
    RESET = "/reset"
    HELP = "/help"


def help_on(meanings: Mapping[StrEnum, tuple[str, str]], addressee: str) -> str:
    """`meanings`: for each command the words that it takes, and what it does. `addressee`: who gets other lines."""
    width = max(len(command + words) for command, (words, _) in meanings.items())
    lines = [f"  {(command + words).ljust(width)}  {meaning}" for command, (words, meaning) in meanings.items()]
    last = f"To send {addressee} a text that begins with a slash, type a space before it."
    return "\n".join(["Commands:", *lines, last])


HELP = help_on(
    {
        Command.APPROVE: ("", "approve the calls that wait"),
        Command.REJECT: (" REASON", "reject them; the agent reads the reason, which may be left out"),
        Command.LOG: ("", "show the log tree of the last run"),
        Command.SOURCES: ("", "show the sources of the last run"),
        Command.PARAM: (
            " KEY=VALUE",
            "set a parameter of the strategy for the next turns; alone, show those that are set",
        ),
        Command.FILE: (" PATH", "send a file with the next question"),
        Command.RESET: ("", "begin a new conversation, with empty memory and state"),
        Command.HELP: ("", "show this list"),
    },
    "the agent",
)


@dataclass(frozen=True)
class Typed[C: StrEnum]:
    name: str
    """As it was typed."""
    command: C | None
    """None for an unknown one."""
    words: str


def read_command[C: StrEnum](line: str, commands: type[C]) -> Typed[C]:
    """Letter case does not matter in the command."""
    name, *rest = line.split(maxsplit=1)
    known = {command.value: command for command in commands}
    return Typed(name, known.get(name.lower()), "".join(rest).strip())
