"""Known secrets leave the text that the user reads, although it streams in pieces cut anywhere.

In: the events of a run. Out: the same, with text and thoughts redacted. Held back is only what may be the beginning of
a known secret, until the next piece decides.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from internal.report.events import AnswerText, Event, Noted, Shown, ShownTogether, ThoughtText
from internal.text.redaction import KnownSecrets


def redacted_text(events: Iterable[Event], secrets: KnownSecrets) -> Iterator[Event]:
    """Redact the texts of a run; if it fails, what was held back comes before the failure."""
    text = _Streaming(secrets)
    try:
        for event in events:
            match event:
                case ShownTogether(parts):
                    shown = tuple(redacted for part in parts for redacted in text.take(part))
                    yield from (ShownTogether(shown),) if shown else ()
                case Noted():  # may come amid a text, and is for the log only
                    yield event
                case AnswerText() | ThoughtText():
                    yield from text.take(event)
                case _:
                    yield from text.rest()
                    yield event
    except Exception:
        yield from text.rest()
        raise
    yield from text.rest()


@dataclass
class _Streaming:
    """The text or thought that is under way."""

    secrets: KnownSecrets
    _kind: type[AnswerText | ThoughtText] = field(default=AnswerText, init=False)
    _held: str = field(default="", init=False)

    def take(self, part: Shown) -> Iterator[Shown]:
        """What is certain of the text so far; whatever is not its continuation ends it."""
        if not isinstance(part, self._kind):
            yield from self.rest()
        if not isinstance(part, AnswerText | ThoughtText):
            yield part
            return
        self._kind = type(part)
        certain, self._held = self.secrets.redactor.split(self._held + part.text)
        if certain:
            yield self._kind(certain)

    def rest(self) -> Iterator[Shown]:
        held, self._held = self._held, ""
        if held:
            yield self._kind(self.secrets.redactor.text(held))
