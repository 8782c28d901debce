"""The opening messages of a conversation: system, history, and the user's message with its files."""

import base64
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from dify_plugin.entities.model.message import (
    AudioPromptMessageContent,
    DocumentPromptMessageContent,
    ImagePromptMessageContent,
    MultiModalPromptMessageContent,
    PromptMessage,
    PromptMessageContentUnionTypes,
    PromptMessageRole,
    SystemPromptMessage,
    TextPromptMessageContent,
    UserPromptMessage,
    VideoPromptMessageContent,
)
from dify_plugin.file.entities import FileType
from dify_plugin.file.file import File
from gevent import Timeout
from gevent.pool import Pool

from internal.errors import Quoting
from internal.flow import build_round_prompt_messages
from internal.host.files import FileUnavailable, fetch_file, sniff_mime_type
from internal.node.model import ModelSelection
from internal.text.thoughts import without_thoughts
from prompt import template

MAX_FILE_PART_BYTES = 3 * 1024 * 1024
"""Bytes of one file in a request, written as base64."""
_MAX_FILE_BYTES = MAX_FILE_PART_BYTES // 4 * 3
_FETCH_SECONDS = 10
"""Seconds for one file, from the first byte to the last."""
_FETCHED_AT_ONCE = 8
_ADDRESSES = "an upload's address begins with Dify's INTERNAL_FILES_URL, else with FILES_URL"

type Part = PromptMessageContentUnionTypes

_PARTS: dict[str, tuple[str, type[MultiModalPromptMessageContent]]] = {
    FileType.IMAGE: ("vision", ImagePromptMessageContent),
    FileType.DOCUMENT: ("document", DocumentPromptMessageContent),
    FileType.AUDIO: ("audio", AudioPromptMessageContent),
    FileType.VIDEO: ("video", VideoPromptMessageContent),
}


def opening_messages(
    history: Iterable[PromptMessage], system_instruction: str, question: UserPromptMessage | None = None
) -> list[PromptMessage]:
    """System prompt, history, and a user's message, except where a conversation continues with calls that waited."""
    system = SystemPromptMessage(content=system_instruction) if system_instruction else None
    if question is None:
        return [*([system] if system else []), *history]
    return build_round_prompt_messages(history_prompt_messages=history, system_message=system, user_message=question)


def user_message(text: str, parts: Sequence[Part]) -> UserPromptMessage:
    """A user's message of a text and the files of this turn."""
    return UserPromptMessage(content=[TextPromptMessageContent(data=text), *parts] if parts else text)


def visible_history(model: ModelSelection) -> tuple[PromptMessage, ...]:
    """The history without thoughts, which Dify stores in the answers, and without media that the model cannot take."""
    return tuple(_prepare(message, model) for message in model.history)


def file_parts(
    files: Sequence[File], model: ModelSelection, seconds: float
) -> tuple[tuple[Part, ...], tuple[Quoting, ...]]:
    """This turn's files as the model can take them, fetched side by side and within the seconds given.

    Also a sentence for the log for each that was not fetched.
    """
    notes = list[Quoting]()
    read = partial(_file_part, model=model, seconds=min(seconds, _FETCH_SECONDS), note=notes.append)
    return tuple(Pool(_FETCHED_AT_ONCE).map(read, files)), tuple(notes)


def _file_part(file: File, model: ModelSelection, seconds: float, note: Callable[[Quoting], None]) -> Part:
    name = " ".join((file.filename or "unnamed").split())
    if not _can_take(model, file.type):
        return _hidden(file.type, name)
    try:
        with Timeout(seconds, FileUnavailable("could not be fetched in time", is_of_the_network=True)):
            data = fetch_file(file.url, file.size or 0, _MAX_FILE_BYTES)
    except FileUnavailable as reason:
        if reason.is_of_the_network:
            server = "/".join(file.url.split("/")[:3]).rpartition("@")[2]  # what follows is signed
            note(Quoting(f"{server} did not deliver the file {name}: {reason}; {_ADDRESSES}"))
        return TextPromptMessageContent(data=f"[{file.type.value} {name}: {reason}]")
    mime_type = file.mime_type or sniff_mime_type(data)
    part = _PARTS[file.type][1](
        format=(file.extension or "").removeprefix(".") or mime_type.rsplit("/", 1)[-1],
        base64_data=base64.b64encode(data).decode(),
        mime_type=mime_type,
        filename=name,
    )
    if isinstance(part, ImagePromptMessageContent):
        part.detail = ImagePromptMessageContent.DETAIL.HIGH  # as Dify sends the images of the history
    return part  # type: ignore[return-value] # the table holds members of the union only


def _can_take(model: ModelSelection, kind: str) -> bool:
    """Without a description of the model, only images, which all GPT-5 models take."""
    feature, _ = _PARTS.get(kind, (None, None))
    return feature in model.features if model.features is not None else feature == "vision"


def _hidden(kind: str, name: str | None) -> Part:
    return TextPromptMessageContent(data=template.HIDDEN_MEDIA.format(kind=kind, name=f" {name}" if name else ""))


def _prepare(message: PromptMessage, model: ModelSelection) -> PromptMessage:
    without = without_thoughts if message.role is PromptMessageRole.ASSISTANT else str

    def visible(part: Part) -> Part:
        if isinstance(part, TextPromptMessageContent):
            return part.model_copy(update={"data": without(part.data)})
        return part if _can_take(model, part.type.value) else _hidden(part.type.value, part.filename)

    content = message.content or ""
    shown = without(content) if isinstance(content, str) else [visible(part) for part in content]
    return message if shown == message.content else message.model_copy(update={"content": shown})
