"""What a person has typed into the form of a new run.

In: the pairs of a form or an address, or a setup. Out: `Choices`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from devhost.console.runs.setup import Setup

EXAMPLE, SCRIPT, NO_SCRIPT = "example:", "script", "none"
"""Where the scenario comes from: `example:NAME` or `example:NAME/SCENARIO`, a script file, or nowhere."""
TYPED, WAS = "p.", "was."
"""Before the name of a parameter: its text, and the text that the scenario had when the form was made."""
QUESTION = "query"


RESET = "reset "
"""Before the name of a parameter, in the value of the button that resets it."""


@dataclass(frozen=True)
class Choices:
    plugin: str = ""
    strategy: str = ""
    source: str = ""
    script: str = ""
    tools: tuple[str, ...] = ()
    real: bool = False
    model: str = ""
    api: str = ""
    completion: tuple[str, ...] = ()
    """Lines: KEY=VALUE."""
    files: tuple[str, ...] = ()
    typed: Mapping[str, str] = field(default_factory=dict)
    """By parameter."""
    was: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        """Browsers send CR LF at the end of a line."""
        given = {name: text.replace("\r\n", "\n") for name, text in pairs}
        return cls(
            plugin=given.get("plugin", "").strip(),
            strategy=given.get("strategy", "").strip(),
            source=given.get("source", "").strip(),
            script=given.get("script", "").strip(),
            tools=_lines(given.get("tools", "")),
            model=given.get("model", "").strip(),
            api=given.get("api", "").strip(),
            completion=_lines(given.get("completion", "")),
            files=_lines(given.get("files", "")),
            real=given.get("real") == "yes",
            typed=_named(given, TYPED),
            was=_named(given, WAS),
        )

    @classmethod
    def of(cls, setup: Setup) -> Self:
        """Everything that it sets counts as typed."""
        return cls(
            plugin=_text(setup.plugin),
            strategy=setup.strategy or "",
            source=_source(setup),
            script=_text(setup.script),
            tools=tuple(map(str, setup.tools)),
            real=not setup.model.scripted,
            model=setup.model.name or "",
            api=setup.model.api or "",
            completion=tuple(f"{name}={text}" for name, text in setup.model.completion.items()),
            files=tuple(map(str, setup.files)),
            typed={**setup.parameters, QUESTION: setup.question},
        )

    def changed(self, name: str) -> str | None:
        """What was typed, if it is not what the form held."""
        text = self.typed.get(name)
        return None if text is None or text == self.was.get(name) else text

    @property
    def example(self) -> tuple[str | None, str | None]:
        """Its name, and that of its scenario."""
        if not self.source.startswith(EXAMPLE):
            return None, None
        name, _, scenario = self.source.removeprefix(EXAMPLE).partition("/")
        return name, scenario or None


def after_reset(given: Mapping[str, str]) -> Mapping[str, str]:
    """What a form holds, without what was typed into the field that its button `do` resets."""
    do = given.get("do", "")
    reset = f"{TYPED}{do.removeprefix(RESET)}" if do.startswith(RESET) else None
    return {name: text for name, text in given.items() if name != reset}


def _source(setup: Setup) -> str:
    if setup.example is not None:
        return f"{EXAMPLE}{setup.example}" + (f"/{setup.scenario}" if setup.scenario else "")
    return SCRIPT if setup.script is not None else NO_SCRIPT


def _text(path: Path | None) -> str:
    return "" if path is None else str(path)


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.split("\n") if line.strip())


def _named(given: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): text for name, text in given.items() if name.startswith(prefix)}
