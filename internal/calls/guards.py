"""Endless loops of one identical call are stopped.

In: the signature of each call that is about to run, and later how it ended. Out: Allow, or Refuse with the text that
the model reads instead of a result. One guard per transcript; nothing is shared between runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from internal.report.tool_calls import CallStatus, EndedCall, Signature
from prompt import template

REPEATED_FAILURE = "tool invoke error: repeated failure detected; skipped duplicate call"
_TRANSIENT_CHANCES = 2


@dataclass(frozen=True)
class Allow:
    """The call may run."""


@dataclass(frozen=True)
class Refuse:
    """The call must not run; the model reads ``text`` instead of a result."""

    text: str
    ends_tool_phase: bool = False
    """The model was told already and asks again: no more rounds, the answer is due."""


@dataclass(frozen=True)
class _Past:
    """How the calls with one signature ended in earlier rounds."""

    failed: bool = False
    transient_failures: int = 0
    last: str | None = None
    repeats: bool = False
    """The last two results were equal."""
    told: bool = False


@dataclass
class RepeatGuard:
    """Remembers the calls of one transcript."""

    _past: dict[Signature, _Past] = field(default_factory=dict)

    def judge(self, signature: Signature) -> Allow | Refuse:
        past = self._past.get(signature, _Past())
        if past.failed or past.transient_failures >= _TRANSIENT_CHANCES:
            return Refuse(REPEATED_FAILURE)
        if past.repeats and past.last is not None:
            return Refuse(f"{past.last}\n\n{template.REPEATED_RESULT_NOTE}", ends_tool_phase=past.told)
        return Allow()

    def record_round(self, ended: Sequence[EndedCall]) -> None:
        """Remember a round that is over. Of several equal calls in it every failure counts, and the last result."""
        known = [(call.judged.signature, call) for call in ended if call.judged.signature is not None]
        results = {signature: call.tool_response for signature, call in known if call.status is CallStatus.OK}
        for signature, call in known:
            past = self._past.get(signature, _Past())
            if call.status is CallStatus.REFUSED:
                self._past[signature] = replace(past, told=past.repeats)
            elif call.status is CallStatus.ERROR and call.transient:
                self._past[signature] = replace(past, transient_failures=past.transient_failures + 1)
            elif call.status is CallStatus.ERROR:
                self._past[signature] = replace(past, failed=True)
        for signature, text in results.items():
            past = self._past.get(signature, _Past())
            self._past[signature] = replace(past, last=text, repeats=past.last == text)
