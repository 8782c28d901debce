"""A model's text as safe HTML: without HTML tags from the text, remote pictures and scripts in links.

In: Markdown, as it was streamed. Out: thoughts and speech, in their order, as safe markup.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup

from devhost.node.messages.thought_spans import ThoughtSpans

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
