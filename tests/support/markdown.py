"""What a reader of Markdown sees of a question for approval: its code, and what stands around it."""

import re

from markdown_it import MarkdownIt

MARKDOWN = MarkdownIt("commonmark").enable("table")


STRUCTURE = {"text", "softbreak", "strong_open", "strong_close", "code_inline"}


BLOCKS = {"inline", "fence"} | {
    f"{name}_{end}" for name in ("paragraph", "bullet_list", "list_item") for end in ("open", "close")
}


def codes(markdown: str) -> list[str]:
    """The code in a text, in order; fails if Markdown finds anything but paragraphs, lists, code and bold print."""
    found = []
    for token in MARKDOWN.parse(markdown):
        assert token.type in BLOCKS
        if token.type == "fence":
            found.append(token.content.removesuffix("\n"))
        for part in token.children or ():
            assert part.type in STRUCTURE
            if part.type == "code_inline":
                found.append(part.content)
    return found


def around(markdown: str) -> list[str]:
    """What stands around the code."""
    parts = [part for token in MARKDOWN.parse(markdown) for part in token.children or ()]
    return [part.content.strip() for part in parts if part.type == "text" and part.content]


def unescaped(shown: str) -> str:
    for escape, character in (("\\t", "\t"), ("\\r", "\r"), ("\\n", "\n")):
        shown = shown.replace(escape, character)
    return re.sub(r"\\u([0-9a-f]{4})|\\U([0-9a-f]{8})", lambda found: chr(int(found[1] or found[2], 16)), shown)
