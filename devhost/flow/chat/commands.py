"""The commands of a chat with a flow."""

from enum import StrEnum

from devhost.chat.commands import help_on


class FlowCommand(StrEnum):
    VARIABLES = "/variables"
    LOG = "/log"
    SOURCES = "/sources"
    FILE = "/file"
    RESET = "/reset"
    HELP = "/help"


HELP = help_on(
    {
        FlowCommand.VARIABLES: ("", "show the conversation variables, with their types and sizes"),
        FlowCommand.LOG: ("", "show the nodes of the last turn, with the log trees of its agents"),
        FlowCommand.SOURCES: ("", "show the sources of the last turn"),
        FlowCommand.FILE: (" PATH", "send a file with the next message"),
        FlowCommand.RESET: ("", "begin a new conversation: its memory and its variables are those of the beginning"),
        FlowCommand.HELP: ("", "show this list"),
    },
    "the flow",
)
