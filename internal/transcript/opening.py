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

_PARTS: dict[FileType, tuple[str, type[MultiModalPromptMessageContent]]] = {
    FileType.IMAGE: ("vision", ImagePromptMessageContent),
    FileType.DOCUMENT: ("document", DocumentPromptMessageContent),
    FileType.AUDIO: ("audio", AudioPromptMessageContent),
    FileType.VIDEO: ("video", VideoPromptMessageContent),
}
_FEATURES = {content: feature for feature, content in _PARTS.values()}


def opening_messages(
    history: Iterable[PromptMessage], system_instruction: str, question: UserPromptMessage | None = None
) -> list[PromptMessage]:
    """System prompt, history, and a user's message; a conversation that goes on where calls waited has no new one."""
    system = SystemPromptMessage(content=system_instruction) if system_instruction else None
    if question is None:
        return [*([system] if system else []), *history]
    return build_round_prompt_messages(history_prompt_messages=history, system_message=system, user_message=question)


def user_message(text: str, parts: Sequence[PromptMessageContentUnionTypes]) -> UserPromptMessage:
    """A user's message of a text and the files of this turn."""
    return UserPromptMessage(content=[TextPromptMessageContent(data=text), *parts] if parts else text)


def visible_history(model: ModelSelection) -> tuple[PromptMessage, ...]:
    """The history without thoughts, which Dify stores in the answers, and without media that the model cannot take."""
    return tuple(_prepare(message, model) for message in model.history)


def file_parts(
    files: Sequence[File], model: ModelSelection, seconds: float
) -> tuple[tuple[PromptMessageContentUnionTypes, ...], tuple[Quoting, ...]]:
    """This turn's files as the model can take them, fetched side by side and within the seconds given.

    Beside them a sentence for the log for each that was not fetched.
    """
    if not files:
        return (), ()
    notes = list[Quoting]()
    read = partial(_file_part, model=model, seconds=min(seconds, _FETCH_SECONDS), note=notes.append)
    return tuple(Pool(_FETCHED_AT_ONCE).map(read, files)), tuple(notes)


def _file_part(
    file: File, model: ModelSelection, seconds: float, note: Callable[[Quoting], None]
) -> PromptMessageContentUnionTypes:
    feature, content = _PARTS.get(file.type, ("", None))
    name = " ".join((file.filename or "unnamed").split())
    if content is None or not _can_take(model, feature):
        return TextPromptMessageContent(data=template.HIDDEN_MEDIA.format(kind=file.type.value, name=f" {name}"))
    try:
        with Timeout(seconds, FileUnavailable("could not be fetched in time", is_of_the_network=True)):
            data = fetch_file(file.url, file.size or 0, _MAX_FILE_BYTES)
    except FileUnavailable as reason:
        if reason.is_of_the_network:
            note(Quoting(f"{_server_of(file.url)} did not deliver the file {name}: {reason}; {_ADDRESSES}"))
        return TextPromptMessageContent(data=f"[{file.type.value} {name}: {reason}]")
    mime_type = file.mime_type or sniff_mime_type(data)
    part = content(
        format=(file.extension or "").removeprefix(".") or mime_type.rsplit("/", 1)[-1],
        base64_data=base64.b64encode(data).decode(),
        mime_type=mime_type,
        filename=name,
    )
    if isinstance(part, ImagePromptMessageContent):
        part.detail = ImagePromptMessageContent.DETAIL.HIGH  # as Dify sends the images of the history
    return part  # type: ignore[return-value] # the table holds members of the union only


def _server_of(address: str) -> str:
    """Scheme, host and port; what follows is signed."""
    return "/".join(address.split("/")[:3]).rpartition("@")[2]


def _can_take(model: ModelSelection, feature: str) -> bool:
    """Without a description of the model, only images, which all GPT-5 models take."""
    return feature in model.features if model.features is not None else feature == "vision"


def _prepare(message: PromptMessage, model: ModelSelection) -> PromptMessage:
    is_answer = message.role is PromptMessageRole.ASSISTANT
    if isinstance(message.content, list):
        parts = [_visible_part(part, model, is_answer=is_answer) for part in message.content]
        return message.model_copy(update={"content": parts})
    text = message.content or ""
    visible = without_thoughts(text) if is_answer else text
    return message if visible == message.content else message.model_copy(update={"content": visible})


def _visible_part(
    part: PromptMessageContentUnionTypes, model: ModelSelection, *, is_answer: bool
) -> PromptMessageContentUnionTypes:
    if isinstance(part, TextPromptMessageContent):
        return part.model_copy(update={"data": without_thoughts(part.data)}) if is_answer else part
    if _can_take(model, _FEATURES[type(part)]):
        return part
    name = f" {part.filename}" if part.filename else ""
    return TextPromptMessageContent(data=template.HIDDEN_MEDIA.format(kind=part.type.value, name=name))
