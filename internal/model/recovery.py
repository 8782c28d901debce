"""Remedies for a failed model call: waiting, a shorter prompt, a prompt without opaque bodies.

In: how a try failed, and what its request carried. Out: whether another try makes sense, and notes for the log. Each
remedy is used a limited number of times, so a turn ends.
"""

from collections.abc import Generator
from dataclasses import dataclass

from internal.conversation.transcript import Transcript
from internal.conversation.window import Window
from internal.host.clock import Clock
from internal.host.failures import FailureKind, HostFailure, is_transient
from internal.host.request import ModelRequest
from internal.model.reading import Reading, TurnSpan
from internal.report.events import Event, Noted
from internal.text.notes import OurWords

RETRY_WAITS = (1.0, 4.0)
"""Seconds before the second and the third try of a call that failed for a temporary reason."""
# Each provider refuses a body in its own words; some of those words are not known here.
_MAY_REFUSE_A_BODY = frozenset({FailureKind.INVALID_REQUEST, FailureKind.UNKNOWN})


@dataclass
class Recovery:
    """What has been done so far to save one turn."""

    transcript: Transcript
    window: Window
    clock: Clock
    span: TurnSpan
    is_used_up: bool = False
    """Whether the request is sent once, whatever comes of it."""
    _retries: int = 0
    _has_shrunk: bool = False
    _has_repeated: bool = False

    def prepare(self, failure: HostFailure, request: ModelRequest) -> Generator[Event, None, bool]:
        """Do what may let the next try succeed; False when nothing is left.

        Whether opaque bodies are to blame is judged by this request: another conversation of the run may have dropped
        them since it was sent.
        """
        if self.is_used_up:
            return False
        if failure.names_opaque_body and request.carries_opaque_body():
            return (yield from self._do_without_opaque_bodies())
        if is_transient(failure.kind) and (yield from self._wait(failure.kind)):
            return True
        if failure.kind is FailureKind.CONTEXT_LENGTH and not self._has_shrunk:
            self._has_shrunk = True
            if (yield from self._shrink()):
                return True
        if failure.kind in _MAY_REFUSE_A_BODY and request.carries_opaque_body():
            return (yield from self._do_without_opaque_bodies())
        return False

    def repeat_if_lost(self, reading: Reading) -> Generator[Event, None, bool]:
        """Whether a stream that was cut without an error has to be asked for again; a turn has one such repetition."""
        if not reading.was_cut_off:
            return False
        is_lost = not reading.calls and not reading.has_shown and self._use_repetition()
        consequence = "it is asked for once more" if is_lost else "what came last may be missing"
        note = OurWords(f"the stream ended with neither finish reason nor usage, so it was cut: {consequence}")
        yield Noted(note, self.span.key)
        return is_lost

    def _use_repetition(self) -> bool:
        if self._has_repeated or self.is_used_up:
            return False
        self._has_repeated = True
        return not self.span.deadline.has_passed()

    def _wait(self, kind: FailureKind) -> Generator[Event, None, bool]:
        wait = RETRY_WAITS[self._retries] if self._retries < len(RETRY_WAITS) else None
        if wait is None or wait >= self.span.deadline.left():
            return False
        self._retries += 1
        yield Noted(OurWords(f"{kind}; tried again after {wait:g} s"), self.span.key)
        self.clock.sleep(wait)
        return True

    def _shrink(self) -> Generator[Event, None, bool]:
        notes = list(self.window.shrink(self.transcript))
        for note in notes:
            yield Noted(note, self.span.key)
        return bool(notes)

    def _do_without_opaque_bodies(self) -> Generator[Event, None, bool]:
        self.transcript.drop_opaque_bodies()
        note = OurWords("the host refused the provider's opaque bodies; the run goes on without them")
        yield Noted(note, self.span.key)
        return True
