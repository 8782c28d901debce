"""The Agent node's outputs, rule for rule."""

import base64
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from devhost.errors import NodeFailedError
from devhost.limits import HostLimits
from devhost.node.messages import ToolFileStore, save_new
from devhost.node.outputs.outputs import OutputsFold
from devhost.protocol.wire import JsonObject

LIMITS = HostLimits(blob_bytes=20_000)


class Node:
    """A fold, with the messages in short."""

    def __init__(self, directory: Path) -> None:
        self.files = ToolFileStore(directory)
        self.fold = OutputsFold(self.files, LIMITS, frozenset({"v", "s", "declared"}))

    def add(self, kind: str, body: JsonObject | None, meta: JsonObject | None = None) -> list[str]:
        return [shown.type for shown in self.fold.add({"type": kind, "message": body, "meta": meta})]

    def chunk(self, data: bytes, *, end: bool = False) -> list[str]:
        body = {"id": "b", "sequence": 0, "total_length": 0, "blob": base64.b64encode(data).decode(), "end": end}
        return self.add("blob_chunk", body, {"mime_type": "image/png", "filename": "p.png"})

    @property
    def rules(self) -> list[str]:
        return [finding.rule for finding in self.fold.findings()]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.mark.parametrize(
    ("meta", "filename", "kind", "extension"),
    [
        ({"mime_type": "text/csv", "filename": "table"}, "table.csv", "document", ".csv"),
        ({"mime_type": "image/webp", "filename": "v1.2"}, "v1.2", "image", ".webp"),
        ({"mime_type": "application/zip"}, r"[0-9a-f]{32}\.zip", "custom", ".zip"),
        ({}, r"[0-9a-f]{32}\.bin", "custom", ".bin"),
    ],
)
def test_names_and_types_of_files_are_as_dify_makes_them(
    node: Node, meta: dict[str, object], filename: str, kind: str, extension: str
) -> None:
    """The link keeps the tool's own meta, so a file without a name has none there."""
    (link,) = node.fold.add({"type": "blob", "message": {"blob": "YWJj"}, "meta": meta})
    (file,) = node.fold.outputs().files
    assert link.meta == {**meta, "tool_file_id": file["id"]}
    assert link.text == f"/files/tools/{file['id']}{extension}"
    assert re.fullmatch(filename, file["filename"])
    assert (file["type"], file["extension"], file["related_id"]) == (kind, extension, file["id"])


def test_files_are_saved_under_their_names_and_overwrite_nothing(node: Node) -> None:
    kept = node.files.directory / "Sales.png"
    kept.write_bytes(b"the user's own")
    saved = [node.files.save(b"x", "image/png", "Sales.png").path.name for _ in range(2)]
    assert saved == ["Sales-2.png", "Sales-3.png"]
    assert kept.read_bytes() == b"the user's own"


@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("../../.ssh/authorized_keys", "_.._.ssh_authorized_keys"),
        ("a\\b:c*.txt", "a_b_c_.txt"),
        (".bashrc", "bashrc"),
        ("evil\u202egnp.exe\n\x1b[2J\ud800", "evil_gnp.exe__[2J_"),
        ("..", "file"),
        ("Übersicht 売上.pdf", "Übersicht 売上.pdf"),
        ("売" * 300 + ".csv", "売" * 40 + ".csv"),
    ],
)
def test_a_file_is_saved_under_a_name_that_does_no_harm(tmp_path: Path, name: str, saved: str) -> None:
    path = save_new(tmp_path / "made", name, b"x")
    assert path == tmp_path / "made" / saved
    assert path.read_bytes() == b"x"


def test_chunks_are_put_together_up_to_a_limit(node: Node) -> None:
    assert [node.chunk(b"a" * 8192), node.chunk(b"b"), node.chunk(b"", end=True)] == [[], [], ["image_link"]]
    (file,) = node.fold.outputs().files
    assert Path(file["path"]).read_bytes() == b"a" * 8192 + b"b"
    assert (file["type"], file["filename"]) == ("image", "p.png")
    for _ in range(2):
        node.chunk(b"a" * 8192)
    with pytest.raises(NodeFailedError, match="grew beyond 20,000"):
        node.chunk(b"a" * 8192)


class Picture(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "image/png; charset=binary")
        self.end_headers()
        self.wfile.write(b"picture")

    def log_message(self, *_: object) -> None:
        """Quietly."""


def test_an_image_elsewhere_is_downloaded(node: Node) -> None:
    with HTTPServer(("127.0.0.1", 0), Picture) as server:
        serving = threading.Thread(target=server.handle_request)
        serving.start()
        shown = node.add("image", {"text": f"http://127.0.0.1:{server.server_port}/cat"}, {"filename": "cat.png"})
        serving.join()
    assert shown == ["image_link"]
    (file,) = node.fold.outputs().files
    assert (file["mime_type"], file["size"]) == ("image/png", 7)
    assert re.fullmatch(r"[0-9a-f]{32}\.png", file["filename"]), "Dify does not look at the meta of an image"


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/cat.png", "http://a..b/", "http://[::1", "\ud800", ""])
def test_an_image_that_cannot_be_downloaded_becomes_text(node: Node, address: str) -> None:
    assert set(node.add("image", {"text": address})) == {"text"}
    assert node.fold.outputs().text.startswith("Failed to download image: ")
    assert node.rules == ["image-not-downloaded"]
