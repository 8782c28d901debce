"""Pictures that tools make, and what a prompt shows of them."""

import base64

from prompt import template
from tests.support.host import Json
from tests.support.run import Outcome

PNG = b"\x89PNG\r\n\x1a\n"


def blob(name: str = "chart.png", data: bytes = PNG, mime_type: str = "image/png") -> Json:
    meta = {"filename": name, "mime_type": mime_type}
    return {"type": "blob", "message": {"blob": base64.b64encode(data).decode()}, "meta": meta}


def hosted(name: str, mime_type: str) -> Json:
    meta = {"tool_file_id": "7", "filename": name, "mime_type": mime_type}
    return {"type": "image_link", "message": {"text": "/files/tools/7.png"}, "meta": meta}


def parts_of(message: Json) -> list[str]:
    """What a user's message says; of a picture its name."""
    content = (
        [{"type": "text", "data": message["content"]}] if isinstance(message["content"], str) else message["content"]
    )
    return [part["data"] if part["type"] == "text" else f"<{part['filename']}>" for part in content]


def seen(outcome: Outcome, request: int = -1) -> list[list[str]]:
    """The messages with pictures of a prompt, without their header."""
    messages = [parts_of(each) for each in outcome.model.prompts[request] if each["role"] == "user"]
    return [parts[1:] for parts in messages if parts[0] == template.PICTURES_HEADER]
