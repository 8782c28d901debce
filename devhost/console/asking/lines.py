"""What a person says on the page, as a line for `devhost chat --json-lines`. Each is a turn: no commands are sent."""

import json

from devhost.chat.chat import NO, YES


def approved() -> str:
    return json.dumps(YES)


def rejected(reason: str) -> str:
    """The reason alone could be an approval, such as "ok"."""
    return json.dumps(f"{NO}: {reason}" if reason else NO)


def said(words: str) -> str:
    """A space makes a text of what would be a command."""
    return json.dumps(f" {words}" if words.startswith("/") else words)
