"""The questions of a conversation: typed at a prompt, or a line each from a pipe. Blank lines are skipped.

A space before a slash stays, because it makes a question of what would be a command.
At the prompt Ctrl-C discards the line and Ctrl-D ends the chat; a text pasted over several lines is one question.
"""

import io
import sys
from collections.abc import Iterator

from devhost.errors import ParameterError
from devhost.terminal.tables import printable

PROMPT = "you> "


def read_questions() -> Iterator[str]:
    if sys.stdin is None:
        raise ParameterError("a chat reads its questions from standard input, which is closed: pipe them in, or type")
    return _typed() if sys.stdin.isatty() else _piped()


def _typed() -> Iterator[str]:
    from prompt_toolkit import PromptSession  # noqa: PLC0415 - slow to import, and only a typed chat needs it
    from prompt_toolkit.output import create_output  # noqa: PLC0415

    prompt: PromptSession[str] = PromptSession(PROMPT, output=create_output(always_prefer_tty=True))
    while True:
        try:
            if question := _question(_well_formed(prompt.prompt())):
                yield question  # inside the try: a Ctrl-C that comes just too late for a turn is one at the prompt
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _question(typed: str) -> str:
    question = typed.strip()
    return f" {question}" if question.startswith("/") and typed[0].isspace() else question


def _well_formed(typed: str) -> str:
    """Bytes that are not UTF-8 arrive as lone surrogates, which no message can contain."""
    return typed.encode(errors="surrogateescape").decode(errors="replace")


def _piped() -> Iterator[str]:
    """Questions are printed as they are read, so that the output reads as a conversation."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    for line in sys.stdin:
        if question := _question(line):
            sys.stdout.write(f"{PROMPT}{printable(question)}\n")
            sys.stdout.flush()
            yield question
