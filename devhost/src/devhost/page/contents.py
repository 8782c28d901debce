"""The contents of a run as safe HTML: answers, files, bars of time, printed lines."""

import base64
import json
import math
import re
from bisect import insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup

from devhost.node.outputs.outputs import REFUSED
from devhost.node.texts import ThoughtSpans
from devhost.page.calls import given_to
from devhost.protocol.wire import JsonObject
from devhost.trace.lines import PrintedLine
from devhost.trace.runs import Call, TracedRun
from devhost.trace.timeline import Span
from devhost.words import counted, in_a_line

_CITATION = re.compile(r"\[(\d{1,4})\]")
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


@dataclass(frozen=True)
class Passage:
    is_thought: bool
    html: Markup


def passages(text: str, sources: Collection[str], anchor: str) -> list[Passage]:
    """`[3]` becomes a link to `#{anchor}3` where there is a source 3."""
    spans = ThoughtSpans()
    joined: list[tuple[bool, str]] = []
    for is_thought, piece in [*spans.feed(text), *spans.finish()]:
        if joined and joined[-1][0] == is_thought:
            joined[-1] = (is_thought, joined[-1][1] + piece)
        else:
            joined.append((is_thought, piece))
    return [Passage(is_thought, _html(piece, sources, anchor)) for is_thought, piece in joined if piece.strip()]


def _html(text: str, sources: Collection[str], anchor: str) -> Markup:
    environment = {"sources": frozenset(sources), "anchor": anchor}
    # Markup, as every rule that writes HTML escapes what came from the text.
    return Markup(_MARKDOWN.render(text, environment))  # noqa: S704 - see above


def _text(
    _renderer: object, tokens: Sequence[Token], index: int, _options: object, environment: Mapping[str, Any]
) -> str:
    def cited(match: re.Match[str]) -> str:
        number = match.group(1)
        if number not in environment["sources"]:
            return match.group()
        return f'<a class="cite" href="#{environment["anchor"]}{number}">{number}</a>'

    escaped = escapeHtml(tokens[index].content)
    return escaped if _inside_link(tokens, index) else _CITATION.sub(cited, escaped)


def _image(_renderer: object, tokens: Sequence[Token], index: int, _options: object, _environment: object) -> str:
    """Pictures are removed, because a browser would fetch them; a link is only followed by a click."""
    address, words = str(tokens[index].attrs.get("src", "")), tokens[index].content or "picture"
    if _inside_link(tokens, index):
        return escapeHtml(words)
    return f'<a href="{escapeHtml(address)}" rel="noreferrer noopener">{escapeHtml(words)}</a>'


def _link(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, environment: EnvType
) -> str:
    tokens[index].attrSet("rel", "noreferrer noopener")
    return renderer.renderToken(tokens, index, options, environment)


def _inside_link(tokens: Sequence[Token], index: int) -> bool:
    """The nearest tag of a link before the token opens one."""
    tags = [token.type for token in tokens[:index] if token.type in {"link_open", "link_close"}]
    return tags[-1:] == ["link_open"]


def _table(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, environment: EnvType
) -> str:
    """A wide table scrolls within its own box, also by the keyboard."""
    return '<div class="scroll" tabindex="0" role="group" aria-label="Table">' + renderer.renderToken(
        tokens, index, options, environment
    )


def _table_end(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, environment: EnvType
) -> str:
    return renderer.renderToken(tokens, index, options, environment) + "</div>\n"


_MARKDOWN.add_render_rule("table_open", _table)
_MARKDOWN.add_render_rule("table_close", _table_end)
_MARKDOWN.add_render_rule("text", _text)
_MARKDOWN.add_render_rule("image", _image)
_MARKDOWN.add_render_rule("link_open", _link)


# The files of a run on its page: small pictures are embedded, others are links, and nothing on the page can run.
#
# A path in a trace is not trusted: of the file behind it only the bytes of a picture get on the page, and only if its
# size is the recorded.

LARGEST, ALL_TOGETHER = 1024 * 1024, 8 * 1024 * 1024
"""Bytes of one embedded picture, and of those of a page."""
OPENED_SAFELY = frozenset(
    {
        *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".mp3", ".m4a", ".wav", ".mp4", ".webm", ".mov"),
        *(".txt", ".md", ".csv", ".json", ".pdf", ".docx", ".xlsx", ".pptx", ".zip"),
    }
)
"""Suffixes of files in which a browser runs nothing. HTML, SVG and unknown ones may hold scripts: they get no link."""
_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


@dataclass(frozen=True)
class ShownFile:
    name: str
    facts: str
    path: str
    """Empty for a file that is no longer there, or was never here."""
    link: str
    """Empty where a click could run something."""
    picture: str
    """A data URI, or empty."""


class Attachments:
    """Of one page: all of its pictures share a limit."""

    def __init__(self, folder: Path | None = None) -> None:
        """`folder`: the page's own, for links that stay right when both are moved."""
        self._folder = folder
        self._left = ALL_TOGETHER

    def shown(self, files: Iterable[JsonObject]) -> list[ShownFile]:
        return [self._shown(file) for file in files]

    def _shown(self, file: JsonObject) -> ShownFile:
        given = file.get("path")
        path = Path(given) if isinstance(given, str) and _tried(Path(given).is_file) else None
        return ShownFile(
            name=str(file.get("filename") or "file"),
            facts=" · ".join(_facts(file)),
            path="" if path is None else str(path),
            link="" if path is None else self._link(path),
            picture="" if path is None else self._picture(path, file.get("size")),
        )

    def _link(self, path: Path) -> str:
        if path.suffix.lower() not in OPENED_SAFELY:
            return ""
        if self._folder is not None and path.is_relative_to(self._folder):
            return quote(path.relative_to(self._folder).as_posix())
        return path.as_uri() if path.is_absolute() else ""

    def _picture(self, path: Path, size: object) -> str:
        if not isinstance(size, int) or size > min(LARGEST, self._left):
            return ""
        data = _tried(lambda: path.read_bytes() if path.stat().st_size == size else b"") or b""
        mime_type = _picture_type(data)
        if mime_type is None:
            return ""
        self._left -= size
        return f"data:{mime_type};base64,{base64.b64encode(data).decode()}"


def _picture_type(data: bytes) -> str | None:
    """By the bytes: of an SVG, which may hold scripts, there is none."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime_type for beginning, mime_type in _BEGINNINGS.items() if data.startswith(beginning)), None)


def _facts(file: JsonObject) -> Iterator[str]:
    if file.get("mime_type"):
        yield str(file["mime_type"])
    if isinstance(file.get("size"), int):
        yield counted(file["size"], "byte")


def _tried[T](look: Callable[[], T]) -> T | None:
    try:
        return look()
    except (OSError, ValueError):  # gone meanwhile, not ours to read, or a path with NUL
        return None


# Which groups of a timeline show their children at first.

FEW_ROWS = 60
"""So many rows are read at a glance."""
DEEPEST = 24
"""Groups that stand deeper show all that is in them side by side: browsers and templates nest only so far."""


def open_groups(spans: Sequence[Span]) -> frozenset[int]:
    if sum(1 for _ in every(spans)) <= FEW_ROWS:
        return frozenset(id(span) for span in every(spans) if span.children)
    return frozenset({*_around_failures(spans), *_last(spans)})


def every(spans: Sequence[Span]) -> Iterator[Span]:
    """The spans with all that is below them, in the order of the page."""
    for span in spans:
        yield span
        yield from every(span.children)


def _around_failures(spans: Sequence[Span]) -> Iterator[int]:
    for span in spans:
        below = list(_around_failures(span.children))
        yield from below
        if below or any(child.status != "success" for child in span.children):
            yield id(span)


def _last(spans: Sequence[Span]) -> Iterator[int]:
    """The last group with the last group in it, and so on."""
    group = next((span for span in reversed(spans) if span.children), None)
    if group is not None:
        yield id(group)
        yield from _last(group.children)


# Positions on the time axis, in percent, and durations as text.

MOST_TICKS = 8
STEPS = (1, 2, 5, 10, 20)
SECOND, MINUTE = 1000, 60
"""In milliseconds, and in seconds."""


@dataclass(frozen=True)
class Axis:
    began: float
    ended: float

    @property
    def length(self) -> float:
        return max(self.ended - self.began, 1e-6)

    def place(self, at: float) -> float:
        return round(100 * min(max((at - self.began) / self.length, 0.0), 1.0), 4)

    def bar(self, began: float, ended: float) -> str:
        """The style of a bar: its seconds, so that it stays true when the axis grows."""
        return f"--from:{self._seconds(began)};--size:{self._seconds(ended) - self._seconds(began):.6g}"

    @property
    def scale(self) -> str:
        """The style of what holds the bars."""
        return f"--length:{self.length:.6g};--step:{self.step_percent:.4f}%"

    def _seconds(self, at: float) -> float:
        """Since the axis began, on it."""
        return round(min(max(at - self.began, 0.0), self.length), 6)

    @property
    def step(self) -> float:
        """Seconds from tick to tick: the smallest of 1, 2, 5, 10, … that does not make too many of them."""
        power = max(10.0 ** math.floor(math.log10(self.length / MOST_TICKS)), 1e-6)
        return next(step * power for step in STEPS if self.length <= MOST_TICKS * step * power * (1 + 1e-9))

    @property
    def step_percent(self) -> float:
        return 100 * self.step / self.length

    def ticks(self) -> Iterator[tuple[float, str]]:
        for number in range(int(self.length / self.step + 1e-9) + 1):
            at = number * self.step
            yield self.place(self.began + at), "0" if number == 0 else written(at)


def written(seconds: float) -> str:
    """As few digits as needed: 6 ms, 450 ms, 1.84 s, 12.3 s, 2 min 5 s."""
    milliseconds = round(seconds * 1000)
    if milliseconds < 1:
        return "<1 ms" if seconds > 0 else "0 ms"
    if milliseconds < SECOND:
        return f"{milliseconds} ms"
    if round(seconds, 1) < MINUTE:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), MINUTE)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


# Where on the page stands what plugins printed.

TOGETHER = 0.1
"""Seconds: lines of one plugin that come so soon after each other are one moment."""


def lines_of_calls(run: TracedRun) -> Mapping[str, list[PrintedLine]]:
    """By the id of the call: lines whose place among the messages is exact, while the plugin had one call only."""
    found: dict[str, list[PrintedLine]] = {}
    for line in run.printed:
        open_calls = [call for call in run.calls if _serves(line.plugin, call) and _is_open(call, line.at)]
        if line.exact and len(open_calls) == 1:
            found.setdefault(open_calls[0].id, []).append(line)
    return found


def add_moments(spans: list[Span], run: TracedRun) -> list[PrintedLine]:
    """Adds a moment to the timeline for what came during the run; returns what came before and after it."""
    under_calls = {id(line) for lines in lines_of_calls(run).values() for line in lines}
    rest: list[PrintedLine] = []
    together: list[PrintedLine] = []
    for line in run.printed:
        if id(line) in under_calls:
            continue
        if not run.began <= line.at <= run.finished:
            rest.append(line)
        elif together and together[-1].plugin == line.plugin and line.at - together[-1].at < TOGETHER:
            together.append(line)
        else:
            _add(spans, together)
            together = [line]
    _add(spans, together)
    return rest


def _add(spans: list[Span], lines: Sequence[PrintedLine]) -> None:
    if lines:
        at, texts = lines[0].at, tuple(line.text for line in lines)
        moment = Span(f"printed {at}", f"{lines[0].plugin} printed", "success", at, at, is_moment=True, printed=texts)
        insort(_innermost(spans, at), moment, key=lambda span: span.began)


def _innermost(spans: list[Span], at: float) -> list[Span]:
    for span in spans:
        if span.children and not span.calls and span.began <= at <= span.ended:
            return _innermost(span.children, at)
    return spans


def _serves(plugin: str, call: Call) -> bool:
    """A provider's id is author/plugin/provider."""
    return call.kind == "tool" and call.provider.split("/")[1:2] == [plugin]


def _is_open(call: Call, at: float) -> bool:
    return call.began <= at and (call.ended is None or at <= call.ended)


# The words that a page makes of values and rows.

LONGEST_HINT = 200
"""Characters beside the name of a row."""
PHONE_LETTERS, PHONE_LINES = 30, 13
"""Of a box with code: letters of a line, and the lines that it shows."""


def pretty(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str)


def is_long(text: str) -> bool:
    """Whether it scrolls within its box on a phone, so that the keyboard has to reach it."""
    return text.count("\n") + len(text) / PHONE_LETTERS > PHONE_LINES


def number(value: object) -> str:
    """A number of the usage as text; a plugin may have sent any other value in its place."""
    return f"{value:,}" if isinstance(value, int | float) else "–"


def written_values(span: Span) -> object:
    """What the model wrote as the arguments of this tool call; None if the log does not say that it is one."""
    if span.written is not None:
        return span.written.values
    return span.data.get("arguments", {}) if "tool_call_id" in span.data else None


def hint(span: Span) -> str:
    """A few words beside the name: what a tool was given, what a model call cost, or what a group holds."""
    for call in span.calls:
        if call.kind == "llm":
            tokens = [number(call.usage.get(name)) for name in ("prompt_tokens", "completion_tokens")]
            return f"{' → '.join(tokens)} tokens" if call.usage else ""
        return in_a_line(given_to(call))[:LONGEST_HINT]
    return _counts(span) if span.children else in_a_line(written_values(span) or "")[:LONGEST_HINT]


def _counts(group: Span) -> str:
    """Such as "2 model calls, 3 tool calls, 1 failed, 1 refused"."""
    inner = list(every(group.children))
    kinds = [call.kind for span in inner for call in span.calls]
    refused = sum(span.data.get("status") == REFUSED for span in inner)
    failed = sum(span.status == "error" for span in inner) - refused
    named = ((kinds.count("llm"), "model call"), (kinds.count("tool") + refused, "tool call"))
    calls = [counted(count, name) for count, name in named if count]
    return ", ".join(
        [*calls, *(f"{count} {word}" for count, word in ((failed, "failed"), (refused, "refused")) if count)]
    )
