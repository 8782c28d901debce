"""Turns parts of a run into safe HTML and text: answers, files, bars on the time axis, short summaries."""

import base64
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token
from markupsafe import Markup

from devhost.node.outputs.outputs import REFUSED
from devhost.node.outputs.run import ToolCalls
from devhost.node.texts import ThoughtSpans
from devhost.page.calls import ShownSource, given_to
from devhost.protocol.wire import JsonObject
from devhost.trace.timeline import Span
from devhost.words import counted, in_a_line

# The answer, which is Markdown.

_CITATION = re.compile(r"\[(\d{1,4})\]")
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
"""The renderer of answers, which shows a picture as a link, because a browser would load the picture unasked."""


@dataclass(frozen=True)
class Passage:
    """A part of an answer as HTML, either a thought or text for the user."""

    is_thought: bool
    html: Markup


def passages(text: str, sources: Iterable[ShownSource], anchor: str) -> list[Passage]:
    """Splits an answer into thoughts and text, rendered as HTML.

    The citation `[3]` becomes a link to `#{anchor}3` if exactly one source has the number 3. The sources of several
    agents may share a number.
    """
    numbers = Counter(source.number for source in sources)
    spans = ThoughtSpans()
    environment = {"numbers": numbers, "anchor": anchor}
    grouped = groupby([*spans.feed(text), *spans.finish()], key=itemgetter(0))
    joined = [(is_thought, "".join(piece for _, piece in pieces)) for is_thought, pieces in grouped]
    return [
        # The result is safe as Markup, because every rule that writes HTML escapes the text.
        Passage(is_thought, Markup(_MARKDOWN.render(_json_as_code(words), environment)))  # noqa: S704
        for is_thought, words in joined
        if words.strip()
    ]


def _json_as_code(text: str) -> str:
    with suppress(ValueError, RecursionError):
        if isinstance(value := json.loads(text), dict | list):
            return f"```\n{pretty(value)}\n```"
    return text


def _text(
    _renderer: object, tokens: Sequence[Token], index: int, _options: object, environment: Mapping[str, Any]
) -> str:
    def cited(match: re.Match[str]) -> str:
        number = match.group(1)
        if environment["numbers"][number] != 1:
            return match.group()
        return f'<a class="cite" href="#{environment["anchor"]}{number}">{number}</a>'

    return _CITATION.sub(cited, escapeHtml(tokens[index].content))


_MARKDOWN.add_render_rule("text", _text)


# The files of a run on its page. Small pictures are embedded, other files are links, and nothing on the page can run.
#
# A path in a trace is not trusted. The page contains the bytes of the file only if they are a picture.

LARGEST = 1024 * 1024
"""The size limit of an embedded picture, in bytes."""
OPENED_SAFELY = frozenset(
    {
        *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".mp3", ".m4a", ".wav", ".mp4", ".webm", ".mov"),
        *(".txt", ".md", ".csv", ".json", ".pdf", ".docx", ".xlsx", ".pptx", ".zip"),
    }
)
"""Suffixes of files in which a browser runs nothing.

HTML, SVG and unknown files get no link, because they may contain scripts.
"""
_BEGINNINGS = {
    rb"\x89PNG\r\n\x1a\n": "image/png",
    rb"\xff\xd8\xff": "image/jpeg",
    rb"GIF8[79]a": "image/gif",
    rb"RIFF....WEBP": "image/webp",
}
"""The media types of pictures, by a pattern for the first bytes. SVG is left out, because it may contain scripts."""


@dataclass(frozen=True)
class ShownFile:
    """A file of a run as the page shows it."""

    name: str
    facts: str
    """The media type and the size."""
    path: str
    """The path of the file; empty if it does not exist on this machine."""
    link: str
    """The address of the file; empty if opening it could run a script."""
    picture: str
    """The picture as a data URI; empty if the file is not a picture."""


def shown_file(file: JsonObject, folder: Path | None = None) -> ShownFile:
    """Returns what the page shows about a file.

    A link to a file in the page's `folder` is relative, so that the link still works after the folder is moved.
    """
    size = ""
    if isinstance(file.get("size"), int):
        size = counted(file["size"], "byte")
    facts = " · ".join(filter(None, (str(file.get("mime_type") or ""), size)))
    path = Path(str(file.get("path") or ""))
    data = b""
    try:
        exists = path.is_file()
        if exists and path.stat().st_size <= LARGEST:
            data = path.read_bytes()
    except (OSError, ValueError):  # the file was deleted or is not readable, or its path contains NUL
        exists = False
    link = ""
    if exists:
        link = _link(path, folder)
    kind = next((kind for beginning, kind in _BEGINNINGS.items() if re.match(beginning, data, re.DOTALL)), "")
    picture = ""
    if kind:
        picture = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return ShownFile(str(file.get("filename") or "file"), facts, str(path) if exists else "", link, picture)


def _link(path: Path, folder: Path | None) -> str:
    if path.suffix.lower() not in OPENED_SAFELY:
        return ""
    if folder is not None and path.is_relative_to(folder):
        return quote(path.relative_to(folder).as_posix())
    if path.is_absolute():
        return path.as_uri()
    return ""


# Positions on the time axis, in percent, and durations as text.

MOST_TICKS = 5
"""The number of tick labels that fit beside each other on a phone."""
STEPS = (1, 2, 5, 10, 20)
SECOND = 1000
"""The length of a second in milliseconds."""
MINUTE = 60
"""The length of a minute in seconds."""


@dataclass(frozen=True)
class Axis:
    """The time axis of a run or a turn, in seconds."""

    began: float
    ended: float

    @property
    def length(self) -> float:
        return max(self.ended - self.began, 1e-6)

    def bar(self, began: float, ended: float) -> str:
        """Returns the CSS style of a bar in seconds, so that the style stays correct when the axis grows."""
        start, end = (round(min(max(at - self.began, 0.0), self.length), 6) for at in (began, ended))
        return f"--from:{start};--size:{end - start:.6g}"

    @property
    def scale(self) -> str:
        """The CSS style of the element that contains the bars."""
        return f"--length:{self.length:.6g};--step:{100 * self.step / self.length:.4f}%"

    @property
    def step(self) -> float:
        """The seconds between two ticks: the smallest of 1, 2, 5, 10, … that gives at most `MOST_TICKS` steps."""
        power = max(10.0 ** math.floor(math.log10(self.length / MOST_TICKS)), 1e-6)
        return next(step * power for step in STEPS if self.length <= MOST_TICKS * step * power * (1 + 1e-9))

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Yields the position of each tick, in percent of the axis, and its label."""
        for number in range(int(self.length / self.step + 1e-9) + 1):
            at = number * self.step
            yield round(100 * at / self.length, 4), "0" if number == 0 else written(at)


def written(seconds: float) -> str:
    """Returns a duration with as few digits as needed, such as 6 ms, 450 ms, 1.84 s, 12.3 s or 2 min 5 s."""
    milliseconds = round(seconds * 1000)
    if milliseconds < 1:
        if seconds > 0:
            return "<1 ms"
        return "0 ms"
    if milliseconds < SECOND:
        return f"{milliseconds} ms"
    if round(seconds, 1) < MINUTE:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), MINUTE)
    if rest:
        return f"{minutes} min {rest} s"
    return f"{minutes} min"


# Values and rows as text.

LONGEST_HINT = 200
"""How many characters are shown beside the name of a row."""


def every(spans: Sequence[Span]) -> Iterator[Span]:
    """Yields the spans and all their descendants in the order of the page."""
    for span in spans:
        yield span
        yield from every(span.children)


def pretty(value: object) -> str:
    """Returns a text unchanged and any other value as indented JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def number(value: object) -> str:
    """Returns a number of the usage as text, or a dash, because a plugin may send any other value instead."""
    if isinstance(value, int | float):
        return f"{value:,}"
    return "–"


def written_values(span: Span) -> object:
    """Returns the arguments of a tool call as the model wrote them, or `None` if the log does not contain them."""
    if "tool_call_id" in span.data:
        return span.data.get("arguments")
    return None


def hint(span: Span) -> str:
    """Returns a short text beside a row's name: a tool's arguments, a model call's tokens, or a group's calls."""
    for call in span.calls:
        if call.kind == "llm":
            tokens = [number(call.usage.get(name)) for name in ("prompt_tokens", "completion_tokens")]
            if call.usage:
                return f"{' → '.join(tokens)} tokens"
            return ""
        return in_a_line(given_to(call))[:LONGEST_HINT]
    if span.children:
        return counts(span.children)
    return in_a_line(written_values(span) or "")[:LONGEST_HINT]


def counts(spans: Sequence[Span]) -> str:
    """Returns a summary of the calls, such as "2 model calls, 3 tool calls (1 failed, 1 refused)"."""
    inner = list(every(spans))
    calls = [call for span in inner for call in span.calls]
    said = []
    not_sent = sum(span.data.get("status") == REFUSED and bool(span.error) for span in inner)
    for kind, name, refused in (("llm", "model call", 0), ("tool", "tool call", not_sent)):
        failed = [bool(call.error) for call in calls if call.kind == kind]
        ended = ToolCalls(len(failed), sum(failed), refused)
        if ended.count:
            said.append(f"{counted(ended.count, name)}{f' ({ended.trouble})' if ended.trouble else ''}")
    return ", ".join(said)
