"""What Dify says of a file: its type, its MIME type and its extension.

In: a name, a MIME type. Out: Dify's words, by the rules of its `standardize_file_type`.
"""

import mimetypes
from collections.abc import Mapping

IMAGE, VIDEO, AUDIO, DOCUMENT, CUSTOM = "image", "video", "audio", "document", "custom"
UNKNOWN_MIME_TYPE = "application/octet-stream"
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


def file_type(extension: str, mime_type: str) -> str:
    """By the extension, else by the MIME type."""
    bare = extension.removeprefix(".").lower()
    for kind, extensions in _EXTENSIONS.items():
        if bare in extensions:
            return kind
    return next((kind for word, kind in _IN_MIME_TYPES if word in mime_type), CUSTOM)


def mime_type_of(filename: str) -> str:
    return mimetypes.guess_type(filename)[0] or UNKNOWN_MIME_TYPE
