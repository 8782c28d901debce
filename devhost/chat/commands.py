"""The commands of a chat: lines that begin with a slash. In: a line. Out: which command, and the words behind it."""

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


_MEANINGS = {
    Command.APPROVE: ("", "approve the calls that wait"),
    Command.REJECT: (" REASON", "reject them; the agent reads the reason, which may be left out"),
    Command.LOG: ("", "show the log tree of the last run"),
    Command.SOURCES: ("", "show the sources of the last run"),
    Command.PARAM: (" KEY=VALUE", "set a parameter of the strategy for the next turns; alone, show those that are set"),
    Command.FILE: (" PATH", "send a file with the next question"),
    Command.RESET: ("", "begin a new conversation, with empty memory and state"),
    Command.HELP: ("", "show this list"),
}
_WIDTH = max(len(command + words) for command, (words, _) in _MEANINGS.items())
HELP = "\n".join(
    [
        "Commands:",
        *(f"  {(command + words).ljust(_WIDTH)}  {meaning}" for command, (words, meaning) in _MEANINGS.items()),
        "To send the agent a text that begins with a slash, type a space before it.",
    ]
)


@dataclass(frozen=True)
class Typed:
    name: str
    """As it was typed."""
    command: Command | None
    """None for an unknown one."""
    words: str


def read_command(line: str) -> Typed:
    """Letter case does not matter in the command."""
    name, *rest = line.split(maxsplit=1)
    known = {command.value: command for command in Command}
    return Typed(name, known.get(name.lower()), "".join(rest).strip())
