"""An MCP server with a tool for every kind of result.

Over standard input and output, or with `mcp` at an address, of which it prints the port.
"""

import base64
import os
import socket
import sys
from typing import Any, Literal

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel

server = MCPServer("everything")
PIXEL = base64.b64encode(b"a picture").decode()


class Weather(BaseModel):
    degrees: int
    sky: str


@server.tool(structured_output=False)
def repeat(text: str, times: int = 1, unit: Literal["line", "word"] = "line") -> str:
    """Repeats a text."""
    return (" " if unit == "word" else "\n").join([text] * times)


@server.tool()
def sort_all(items: list[dict[str, Any]] | None, by: str) -> list[TextContent]:
    """Sorts objects, each with a number."""
    return [TextContent(text=str(sorted(items or [], key=lambda item: str(item.get(by)))))]


@server.tool()
def weather(city: str) -> Weather:
    """The weather of a city."""
    return Weather(degrees=len(city), sky="clear")


@server.tool()
def say(texts: list[str]) -> list[TextContent]:
    """Answers with these texts, a block each."""
    return [TextContent(text=text) for text in texts]


@server.tool()
def show() -> list[ContentBlock]:
    """A block of every other kind."""
    return [
        ImageContent(data=PIXEL, mime_type="image/png"),
        AudioContent(data=PIXEL, mime_type="audio/wav"),
        EmbeddedResource(resource=TextResourceContents(uri="note://1", text="a note")),
        EmbeddedResource(resource=BlobResourceContents(uri="file://1", blob=PIXEL)),
        ResourceLink(name="elsewhere", uri="https://example.com/elsewhere"),
    ]


@server.tool()
def complain(*, is_error: bool) -> CallToolResult:
    """Says that it failed, or breaks."""
    if not is_error:
        raise ToolError(f"no such key: {os.environ.get('SERVER_KEY')}, {os.environ.get('NODE_EXTRA_CA_CERTS')}")
    return CallToolResult(content=[TextContent(text="it failed")], is_error=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        app = server.streamable_http_app()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            print(listening.getsockname()[1], flush=True)
            uvicorn.Server(uvicorn.Config(app, log_level="error")).run([listening])
    else:
        server.run()
