"""What is expected of a run that becomes a case. In: the run, or what a form holds. Out: `Expecting`."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from devhost.evaluation.checks.observed import Observed
from devhost.protocol.wire import JsonObject
from devhost.recording.case import runs_of, strategy_of
from devhost.trace.outcome import run_of
from devhost.trace.reader import Trace

LONGEST_PART, LONGEST_NAME = 100, 60
"""Characters of what is suggested."""


@dataclass(frozen=True)
class Expecting:
    """One expectation a line; an empty text expects nothing."""

    text: str = ""
    """Parts of the answer."""
    calls: str = ""
    """Tools, in the order of their calls."""
    stop_reason: str = ""
    sources: str = ""
    """Parts of the titles of sources that are cited."""

    @classmethod
    def of(cls, observed: Observed) -> Self:
        """What was true of the run."""
        first = next((line.strip() for line in observed.text.splitlines() if line.strip()), "")
        return cls(
            text=first[:LONGEST_PART].strip(),
            calls="\n".join(call.name for call in observed.calls),
            stop_reason=observed.stop_reason,
            sources="\n".join(dict.fromkeys(observed.cited)),
        )

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Self:
        """Those whose box is ticked."""
        kept = {name: given.get(name, "").replace("\r\n", "\n") for name in cls.__dataclass_fields__}
        return cls(**{name: text if given.get(f"expect.{name}") == "yes" else "" for name, text in kept.items()})

    def as_plain(self) -> JsonObject:
        """As a case has it under `expect`."""
        text, calls, sources = map(_lines, (self.text, self.calls, self.sources))
        whole: JsonObject = {
            "text": {"contains": text} if text else None,
            "calls": {"in_order": calls} if calls else None,
            "stop_reason": self.stop_reason.strip() or None,
            "sources": {"cited": sources} if sources else None,
        }
        return {name: value for name, value in whole.items() if value is not None}


def observed_of(trace: Trace, file: Path) -> Observed:
    """The last conversation; TraceError for a trace without a run."""
    return Observed.of([run_of(run, strategy_of(trace, run)) for run in runs_of(trace, file)])


def suggested_name(question: str, taken: Sequence[str]) -> str:
    """That no other case has."""
    words = _begin(" ".join(question.split())) or "case"
    number = next(number for number in range(1, len(taken) + 2) if _numbered(words, number) not in taken)
    return _numbered(words, number)


def _begin(words: str) -> str:
    """Whole words, if there are blanks between them, without the punctuation at the end."""
    if len(words) > LONGEST_NAME:
        words = words[: LONGEST_NAME + 1].rpartition(" ")[0] or words[:LONGEST_NAME]
    while words and unicodedata.category(words[-1]) in {"Po", "Pd", "Pc", "Ps", "Pi", "Zs"}:
        words = words[:-1]
    return words


def _numbered(words: str, number: int) -> str:
    return words if number == 1 else f"{words} ({number})"


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]
