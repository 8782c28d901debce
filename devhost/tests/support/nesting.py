"""A trace in which tools ask tools. Imports no SDK, so that tests which drive a browser can use it, too."""

import json


def nested(whole: bytes, levels: int) -> bytes:
    """The same trace, in which the tool asks a tool, which asks a tool, and so on."""
    lines = whole.splitlines()
    at = next(number for number, line in enumerate(lines) if b'"type": "invoke", "data": {"type": "tool"' in line)
    asked = json.loads(lines[at])
    made = []
    for level in range(levels):
        request = asked["message"]["data"]["data"]["backwards_request_id"]
        made.append({"at": asked["at"], "event": "serving", "session_id": f"s{level}", "request_id": request})
        asked = json.loads(lines[at])
        asked["message"]["session_id"] = f"s{level}"
        asked["message"]["data"]["data"]["backwards_request_id"] = f"c{level}"
        made.append(asked)
    return b"".join(
        line + b"\n" for line in [*lines[: at + 1], *(json.dumps(each).encode() for each in made), *lines[at + 1 :]]
    )
