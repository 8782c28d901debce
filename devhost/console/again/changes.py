"""What a person wants to change of a run. In: the pairs of a form or an address. Out: `Changed`."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, Self

from devhost.console.forms.choices import Choices

type Answers = Literal["recorded", "script", "real"]
"""What the model says after the rounds that stay."""


@dataclass(frozen=True)
class Changed:
    turn: str = ""
    """As typed; empty for the last one."""
    at: str = ""
    """As typed; empty for none."""
    answers: Answers = "recorded"
    live: bool = False
    """Whether tools run."""
    form: Choices = field(default_factory=Choices)
    """Script, model and parameters."""

    @classmethod
    def read(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        given = dict(pairs)
        answers: dict[str, Answers] = {"script": "script", "real": "real"}
        return cls(
            turn=given.get("turn", "").strip(),
            at=given.get("at", "").strip(),
            answers=answers.get(given.get("answers", ""), "recorded"),
            live=given.get("live") == "yes",
            form=Choices.read(given.items()),
        )
