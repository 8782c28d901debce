"""The questions of a conversation: typed at a prompt, or from a pipe a line each, or a JSON text each.

Blank ones are skipped.

A space before a slash stays, because it makes a question of what would be a command.
At the prompt Ctrl-C discards the line and Ctrl-D ends the chat; a text pasted over several lines is one question.
"""

import io
import json
import sys
from collections.abc import Iterable, Iterator

from devhost.errors import ParameterError
from devhost.terminal.tables.text import printable

PROMPT = "you> "


def read_questions() -> Iterator[str]:
    if sys.stdin is None:
        raise ParameterError("a chat reads its questions from standard input, which is closed: pipe them in, or type")
    return _typed() if sys.stdin.isatty() else _piped()


def read_json_lines() -> Iterator[str]:
    """From a program: each line is a text in JSON, which may have several lines; ParameterError for any other line."""
    if sys.stdin is None:
        raise ParameterError("--json-lines reads standard input, which is closed")
    return _written_as_json()


def _written_as_json() -> Iterator[str]:
    for number, line in enumerate(_from_pipe(), start=1):
        if line.strip() and (question := _question(_json_text(line, number))):
            yield _shown(question)


def _json_text(line: str, number: int) -> str:
    try:
        text = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ParameterError(f"--json-lines: line {number} of the input is not JSON: {error}") from error
    if not isinstance(text, str):
        raise ParameterError(f'--json-lines: line {number} of the input must be a text in JSON, such as "What now?"')
    return text.encode(errors="replace").decode()  # JSON can escape lone surrogates, which no message can contain


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
    for line in _from_pipe():
        if question := _question(line):
            yield _shown(question)


def _from_pipe() -> Iterable[str]:
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    return sys.stdin


def _shown(question: str) -> str:
    """Questions are printed as they are read, so that the output reads as a conversation."""
    sys.stdout.write(f"{PROMPT}{printable(question)}\n")
    sys.stdout.flush()
    return question
