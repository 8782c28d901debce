"""What a prompt can do without when it does not fit.

In: a message. Out: a shorter one, or the message itself when there is nothing of the kind in it.
"""

from collections.abc import Callable

from dify_plugin.entities.model.message import PromptMessage, TextPromptMessageContent, ToolPromptMessage

from internal.host.request import without_opaque_body
from prompt import template

type Shortening = Callable[[PromptMessage], PromptMessage]


def without_result(message: PromptMessage) -> PromptMessage:
    """A tool's result becomes a one-line note."""
    if not isinstance(message, ToolPromptMessage) or len(str(message.content)) <= len(template.ELIDED_TOOL_RESULT):
        return message
    return message.model_copy(update={"content": template.ELIDED_TOOL_RESULT})


def without_first_medium(message: PromptMessage) -> PromptMessage:
    """The first image, document, sound or video becomes a one-line note."""
    parts = message.content if isinstance(message.content, list) else []
    for position, part in enumerate(parts):
        if not isinstance(part, TextPromptMessageContent):
            note = TextPromptMessageContent(data=template.ELIDED_MEDIA.format(kind=part.type.value))
            return message.model_copy(update={"content": [*parts[:position], note, *parts[position + 1 :]]})
    return message


SHORTENINGS: dict[str, Shortening] = {
    "files": without_first_medium,
    "tool results": without_result,
    "opaque bodies": without_opaque_body,
}
"""By what the log calls the things that they leave out; in the order in which a prompt does without them."""
