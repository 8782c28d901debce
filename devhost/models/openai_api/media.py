"""Content parts of a prompt as OpenAI's APIs take them: addresses and data URLs."""

from devhost.models.request import MediaPart


def address(part: MediaPart) -> str:
    """Its URL, or a data URL with its bytes."""
    return part.url or data_url(part)


def data_url(part: MediaPart) -> str:
    return f"data:{part.mime_type};base64,{part.base64_data}"


def filename(part: MediaPart) -> str:
    return part.filename or f"file.{part.format}"
