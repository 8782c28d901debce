"""Cleans texts on their way out: known secrets are replaced, and the text can be stored.

In: texts and JSON of a run. Out: the same without secrets and well-formed. Every message of a run is made of what
stands here: ``redacted_text`` has the text that streams, in pieces cut anywhere, ``Outgoing`` everything else.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

from internal.errors import AgentError
from internal.render.log_content import preview
from internal.report.events import AnswerText, Event, Noted, Remark, Shown, ShownTogether, ThoughtText
from internal.state.form import encode
from internal.state.records import State
from internal.text.redaction import KnownSecrets
from internal.text.secret_detection import without_named
from internal.text.wellformed import wellformed

_ERROR_ENDS = 900, 100
"""Characters of a long error's beginning and end that are shown."""


def size_on_the_wire(value: object) -> int:
    """Bytes of a JSON value, with a comma."""
    return len(to_json(value)) + 1


@dataclass(frozen=True)
class Outgoing:
    """What may leave a run; ``secrets`` grow while it goes on."""

    secrets: KnownSecrets

    def text(self, text: str) -> str:
        return wellformed(self.secrets.for_people.text(text))

    def json(self, value: Any) -> Any:  # noqa: ANN401 - JSON in, JSON out
        """A JSON value of ours: its texts are redacted, its names and numbers stay."""
        return self.secrets.for_people.values(value)

    def of_others(self, value: Any) -> Any:  # noqa: ANN401 - as above
        """A JSON value that a model or a tool wrote: its names and numbers are redacted too."""
        return self.secrets.for_people.json(value)

    def words(self, text: str) -> str:
        """A sentence that may quote others, also without what has the shape of a credential."""
        return wellformed(self.secrets.for_people.error(text))

    def error(self, text: str) -> str:
        """What went wrong, also without what it calls a password and the like; a long one loses its middle."""
        shown = without_named(self.words(text))
        head, tail = _ERROR_ENDS
        return shown if len(shown) <= head + tail else f"{shown[:head]} … {shown[-tail:]}"

    def state(self, state: State) -> str:
        """A state as the text of a variable."""
        return encode(state.redacted(self.secrets.for_people))

    def preview(self, value: object) -> object:
        """What the log shows of a value."""
        return preview(wellformed(value) if isinstance(value, str) else value, self.secrets.for_people)

    def arguments(self, arguments: Mapping[str, Any] | str) -> object:
        """What the log shows of a call's arguments; a text is one that is not JSON, as the model wrote it."""
        if not isinstance(arguments, str):
            return self.preview(arguments)
        return preview(wellformed(arguments), self.secrets.for_people, with_unquoted_names=True)

    def clean(self, failure: Exception) -> None:
        """Replace the text of an exception on its way out; of any but ours ``errors.reported`` shows no text."""
        if isinstance(failure, AgentError):
            failure.args = (self.error(str(failure)),)


def redacted_text(events: Iterable[Event], out: Outgoing) -> Iterator[Event]:
    """Redact the texts of a run; if it fails, what was held back comes before the failure."""
    text = _StreamedText(out.secrets)
    try:
        for event in events:
            match event:
                case ShownTogether(parts):
                    shown = tuple(redacted for part in parts for redacted in text.take(part))
                    yield from (ShownTogether(shown),) if shown else ()
                case Noted():  # may come amid a text, and is for the log only
                    yield event
                case Remark(remark):
                    yield Remark(out.secrets.for_people.text(remark))
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
class _StreamedText:
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
        certain, self._held = self.secrets.for_people.split(self._held + part.text)
        if certain:
            yield self._kind(certain)

    def rest(self) -> Iterator[Shown]:
        held, self._held = self._held, ""
        if held:
            yield self._kind(self.secrets.for_people.text(held))
