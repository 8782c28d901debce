"""What a person asks of an evaluation. In: the values of a form, the suite. Out: the arguments of `devhost eval`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from itertools import pairwise
from pathlib import Path
from typing import Self

from devhost.evaluation.suite import Suite

INSTRUCTION = "instruction"
MOST_REPEATS = 1_000


@dataclass(frozen=True)
class Asked:
    cases: tuple[str, ...] = ()
    """By name; empty for all."""
    columns: tuple[str, ...] = ()
    repeats: str = ""
    """As typed; empty for those of the file."""
    instruction: str | None = None
    """None for that of the file."""
    real: bool = False
    """Whether a model behind an API is asked."""
    model: str = ""
    fresh: bool = False
    against_last: bool = False

    @classmethod
    def read(cls, one: Mapping[str, str], several: Mapping[str, Sequence[str]], suite: Suite) -> Self:
        """`several`: the values of those names that a form may send more than once."""
        text = one.get(INSTRUCTION, "").replace("\r\n", "\n")
        return cls(
            cases=_chosen(several.get("case", ()), [case.name for case in suite.cases]),
            columns=_chosen(several.get("column", ()), [column.name for column in suite.columns]),
            repeats=one.get("repeats", "").strip(),
            instruction=None if text == instruction_of(suite) or INSTRUCTION not in one else text,
            real=one.get("real") == "yes",
            model=one.get("model", "").strip(),
            fresh=one.get("fresh") == "yes",
        )

    def mistakes(self) -> dict[str, str]:
        """By field."""
        is_number = self.repeats.isascii() and self.repeats.isdigit() and 1 <= int(self.repeats[:9]) <= MOST_REPEATS
        found = {"repeats": f"a number from 1 to {MOST_REPEATS:,}, or nothing"}
        return found if self.repeats and not is_number else {}

    def arguments(self, file: Path, plugin: Path | None) -> tuple[str, ...]:
        return tuple(self._arguments(file, plugin))

    def _arguments(self, file: Path, plugin: Path | None) -> Iterator[str]:
        yield from ("eval", str(file))
        for option, names in (("--case", self.cases), ("--column", self.columns)):
            for name in names:
                yield from (option, escape(name))  # a name is no pattern
        values = {
            "--repeats": self.repeats,
            "--param": None if self.instruction is None else f"{INSTRUCTION}={self.instruction}",
            "--model": self.model if self.real else "",
            "--plugin": None if plugin is None else str(plugin),
            "--against": "last" if self.against_last else "",
        }
        for option, value in values.items():
            if value:
                yield from (option, value)
        if not self.real:
            yield "--scripted"
        if self.fresh:
            yield "--fresh"


def instruction_of(suite: Suite) -> str:
    """For all cases, if the file has one."""
    value = suite.params.get(INSTRUCTION)
    return value if isinstance(value, str) else ""


def instruction_in(arguments: Sequence[str]) -> str | None:
    """What an evaluation with these arguments changes; None if it leaves that of the file."""
    begin = f"{INSTRUCTION}="
    given = (value for option, value in pairwise(arguments) if option == "--param" and value.startswith(begin))
    return next((value.removeprefix(begin) for value in given), None)


def _chosen(names: Sequence[str], among: Sequence[str]) -> tuple[str, ...]:
    """All of them is the same as none."""
    known = tuple(name for name in among if name in names)
    return () if len(known) == len(among) else known
