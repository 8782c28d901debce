"""The next steps of a loop, as a closed union of values, and the result of a loop."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from internal.report.events import StopReason


@dataclass(frozen=True)
class AnotherRound:
    """The model may call tools once more."""


@dataclass(frozen=True)
class ClosingAnswer:
    """The tool phase is over without an answer: ask for it."""

    reason: StopReason


@dataclass(frozen=True)
class Finish:
    """Nothing more is sent."""

    reason: StopReason
    text: str = ""
    submitted: Mapping[str, Any] | None = None
    """The answer in the requested schema."""
    cut: StopReason | None = None
    """Why the text ends too early."""


type NextStep = AnotherRound | ClosingAnswer | Finish


@dataclass(frozen=True)
class Ending:
    """The result of a loop."""

    reason: StopReason
    text: str
    """The visible text of the last turn; "" when there is none."""
    submitted: Mapping[str, Any] | None
    cut: StopReason | None = None
    """Why the text ends too early: length, content_filter or time_limit."""
