"""Asks a person at the terminal: the form's content, its fields one by one, its buttons.

In: a `Form`, and what options have answered of it. Out: a `FormAnswer`.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from devhost.errors import ParameterError, UnansweredFormError
from devhost.flow.form import TIMEOUT, FieldValue, Form, FormAnswer, FormField
from devhost.flow.forms.answers import LATE, Read
from devhost.flow.forms.declared import FIELD
from devhost.terminal.tables.text import printable
from devhost.text.secrets import Secrets

type Prompt = Callable[[str, str], str]
"""In: the prompt, and the text that can be edited. Out: what the person leaves there."""


PATHS = {"file": " (path)", "file-list": " (path, or JSON list of paths)"}


class AskAtTerminal:
    def __init__(self, console: Console, prompt: Prompt, hidden: Secrets) -> None:
        """`hidden` is never shown."""
        self._hidden = hidden
        self._console = console
        self._prompt = prompt

    def __call__(self, form: Form, button: str | None, values: Mapping[str, FieldValue], read: Read) -> FormAnswer:
        content = FIELD.sub(lambda found: f"[{found[1]}]", form.content)
        self._say(f"{form.node.title or form.node.id}:", "bold")
        self._say(content)
        try:
            asked = [each for each in form.fields if each.name not in values]
            filled = {**values, **{each.name: self._field(each, read) for each in asked}}
            chosen = button or self._button(form)
        except (KeyboardInterrupt, EOFError):
            raise UnansweredFormError(f"{form.node} was left without an answer: the flow stays paused") from None
        return FormAnswer(TIMEOUT) if chosen == TIMEOUT else FormAnswer(chosen, filled)

    def _field(self, asked: FormField, read: Read) -> FieldValue:
        if asked.kind == "select":
            return self._choice(asked.name, [(option, option) for option in asked.options])
        hides = self._hidden.masked(asked.default) != asked.default
        hint = " (Enter takes the default, which is secret)" if hides else PATHS.get(asked.kind, "")
        while True:
            typed = self._prompt(f"{printable(asked.name)}{hint}> ", "" if hides else asked.default)
            try:
                return read(asked, asked.default if hides and not typed else typed)
            except ParameterError as error:
                self._say(str(error), "dim")

    def _button(self, form: Form) -> str:
        buttons = [(button.id, button.title) for button in form.buttons]
        late = [(TIMEOUT, f"{LATE}: not answered in time")] if form.can_time_out else []
        return self._choice("button", [*buttons, *late])

    def _choice(self, name: str, choices: Sequence[tuple[str, str]]) -> str:
        """By number, id or title."""
        for number, (_, title) in enumerate(choices, start=1):
            self._say(f"  {number}  {title}")
        while True:
            typed = self._prompt(f"{printable(name)}> ", "").strip()
            for number, choice in enumerate(choices, start=1):
                if typed.casefold() in {str(number), *_names(choice)}:
                    return choice[0]
            self._say(f"Type a number from 1 to {len(choices)}, or one of the words.", "dim")

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Text(printable(self._hidden.masked(text)), style), soft_wrap=True)


def _names(choice: tuple[str, str]) -> Iterator[str]:
    own, title = choice
    yield own.casefold()
    yield LATE if own == TIMEOUT else title.casefold()


def ask_at_terminal(console: Console, hidden: Secrets) -> AskAtTerminal | None:
    """None if standard input is not a terminal."""
    if sys.stdin is None or not sys.stdin.isatty():
        return None

    def prompt(label: str, default: str) -> str:
        from prompt_toolkit import PromptSession  # noqa: PLC0415 - slow to import, and only a typed answer needs it
        from prompt_toolkit.output import create_output  # noqa: PLC0415

        session: PromptSession[str] = PromptSession(label, output=create_output(always_prefer_tty=True))
        return session.prompt(default=default).encode(errors="surrogateescape").decode(errors="replace")

    return AskAtTerminal(console, prompt, hidden)
