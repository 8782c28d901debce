"""Text that survives the wire and can be stored.

A lone surrogate (half of a UTF-16 pair, as a cut JSON escape leaves it) cannot be written as UTF-8, and one of them in
a message ends the whole invocation: a question mark stands for it. NUL (U+0000) is taken out: PostgreSQL, where Dify
keeps messages, variables and logs, refuses it (docs/host-facts.md, "NUL characters").

Text is made well-formed where it comes in and where it goes out; between, it stays so:

- in: ``node.params`` (the node's parameters), ``approval.decision`` (what JSON in one of them escapes) and ``host``
  (``wire``: model chunks and tool messages; ``read_ahead``: failures; ``host_message``: what their JSON escapes;
  ``local_files``: a file's name); ``state.form`` (a state);
- out: ``render.messages`` (the text that streams), ``state.form`` (a state) and ``render.outgoing`` (everything else).

The arguments of a tool call are the exception: they pass as the model wrote them, because half a surrogate pair in them
is an error that the model should read (``tooling``).
"""

import contextlib
import json

from pydantic_core import to_json

_BACKSLASH, _NUL = r"\\", r"\u0000"
"""As JSON writes them."""


def wellformed(text: str) -> str:
    """The text itself where it is well-formed."""
    if has_lone_surrogate(text):
        text = text.encode(errors="replace").decode()
    return text.replace("\0", "")


def wellformed_json[T](value: T) -> T:
    """A JSON value with well-formed texts and names: the value itself where they are, else a copy."""
    with contextlib.suppress(ValueError):  # raised for a lone surrogate
        if _NUL.encode() not in to_json(value):
            return value
    copy: T = json.loads(without_escaped_nul(wellformed(json.dumps(value, ensure_ascii=False))))
    return copy


def without_escaped_nul(text: str) -> str:
    """The text of a JSON value, or of what should be one, without the escapes of NUL.

    Nothing else changes: what is not JSON does not become JSON by it.
    """
    if _NUL not in text or "\0" in text:
        return text
    # A backslash that is escaped itself begins no escape: a character that is not there stands for it meanwhile.
    return text.replace(_BACKSLASH, "\0").replace(_NUL, "").replace("\0", _BACKSLASH)


def has_lone_surrogate(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
