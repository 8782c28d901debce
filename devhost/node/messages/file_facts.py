"""What Dify says of a file: its type, its MIME type and its extension.

In: a name, a MIME type. Out: Dify's words, by the rules of its `standardize_file_type`, `get_file_type_by_mime_type`
and `guess_extension`.
"""

import mimetypes
from collections.abc import Mapping
from functools import cache

IMAGE, VIDEO, AUDIO, DOCUMENT, CUSTOM = "image", "video", "audio", "document", "custom"
UNKNOWN_MIME_TYPE, UNKNOWN_EXTENSION = "application/octet-stream", ".bin"
_EXTENSIONS: Mapping[str, frozenset[str]] = {
    IMAGE: frozenset({"jpg", "jpeg", "png", "webp", "gif", "svg"}),
    VIDEO: frozenset({"mp4", "mov", "mpeg", "webm"}),
    AUDIO: frozenset({"mp3", "m4a", "wav", "amr", "mpga"}),
    DOCUMENT: frozenset(
        {
            *("txt", "markdown", "md", "mdx", "pdf", "html", "htm", "xlsx", "xls", "vtt", "properties"),
            *("doc", "docx", "csv", "eml", "msg", "ppt", "pptx", "xml", "epub"),
        }
    ),
}
_IN_MIME_TYPES = (("image", IMAGE), ("video", VIDEO), ("audio", AUDIO), ("text", DOCUMENT), ("pdf", DOCUMENT))
_OFFICE = "application/vnd.openxmlformats-officedocument."
_LACKING = {
    ".docx": f"{_OFFICE}wordprocessingml.document",
    ".xlsx": f"{_OFFICE}spreadsheetml.sheet",
    ".pptx": f"{_OFFICE}presentationml.presentation",
    ".epub": "application/epub+zip",
    ".md": "text/markdown",
    ".webp": "image/webp",
    ".m4a": "audio/mp4",
    ".amr": "audio/amr",
    ".wav": "audio/wav",
}
"""What Python's own table lacks or calls differently; a browser and Dify's machine know it."""


def file_type(extension: str, mime_type: str) -> str:
    """By the extension, else by the MIME type."""
    bare = extension.removeprefix(".").lower()
    for kind, extensions in _EXTENSIONS.items():
        if bare in extensions:
            return kind
    return _by_mime_type(mime_type)


def tool_file_type(extension: str, mime_type: str) -> str:
    """By the MIME type, which Dify looks at first for a tool file, else by the extension."""
    kind = _by_mime_type(mime_type)
    return file_type(extension, mime_type) if kind == CUSTOM else kind


def mime_type_of(filename: str) -> str:
    return _table().guess_type(filename)[0] or UNKNOWN_MIME_TYPE


def extension_of(mime_type: str) -> str:
    return _table().guess_extension(mime_type) or UNKNOWN_EXTENSION


def _by_mime_type(mime_type: str) -> str:
    return next((kind for word, kind in _IN_MIME_TYPES if word in mime_type), CUSTOM)


@cache
def _table() -> mimetypes.MimeTypes:
    """Python's own, since those of a machine would give one file two types."""
    table = mimetypes.MimeTypes()
    for extension, mime_type in _LACKING.items():
        table.add_type(mime_type, extension)
    return table
