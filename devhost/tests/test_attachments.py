"""The files of a run on its page."""

import base64
import json
from pathlib import Path

import pytest
import yaml

from devhost.cli.commands import main
from devhost.page import contents as attachments
from devhost.page.contents import Attachments, ShownFile
from support.page_reading import harmless
from support.plugins import PUPPET

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def blob(data: bytes, mime_type: str, name: str) -> dict[str, object]:
    message = {"blob": base64.b64encode(data).decode()}
    return {"emit": {"type": "blob", "message": message, "meta": {"mime_type": mime_type, "filename": name}}}


def shown(path: Path, size: int | None = None, folder: Path | None = None) -> ShownFile:
    file = {"filename": "f", "mime_type": "image/png", "size": path.stat().st_size if size is None else size}
    (found,) = Attachments(folder).shown([{**file, "path": str(path)}])
    return found


@pytest.mark.usefixtures("lent_plugins")
def test_pictures_are_embedded_others_linked_and_nothing_can_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [
        blob(PNG, "image/png", "chart one"),
        blob(b"a,b", "text/csv", "sales.csv"),
        blob(SVG, "image/svg+xml", "logo.svg"),
        blob(SVG, "image/png", "fake.png"),
        blob(b"<script>alert(1)</script>", "text/html", "<b>page.html"),
    ]
    script = tmp_path / "script.yaml"
    (tmp_path / "letter.txt").write_text("Dear all")
    script.write_text(
        yaml.safe_dump({"query": json.dumps(steps), "files": ["letter.txt"], "turns": [{"text": "unused"}]})
    )
    trace = tmp_path / "run.jsonl"
    assert main(["run", "--plugin", str(PUPPET), "--script", str(script), "--trace", str(trace)]) == 0
    assert main(["report", str(trace)]) == 0
    capsys.readouterr()

    page = harmless((tmp_path / "run.html").read_text(), pictures=1)

    assert base64.b64encode(PNG).decode() in page.fetched[1]
    assert page.links == ["run.files/chart%20one.png", "run.files/sales.csv", "run.files/fake.png"]
    for words in (
        "letter.txt",
        "chart one.png",
        "image/svg+xml · 71 bytes",
        "<b>page.html",
        str(tmp_path / "run.files"),
    ):
        assert words in page.text, words


def test_a_path_in_a_trace_is_not_trusted(tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(PNG)
    assert shown(picture).picture.startswith("data:image/png;base64,")
    assert shown(picture, size=len(PNG) + 1).picture == "", "another file than the run's"
    picture.write_bytes(b"-----BEGIN PRIVATE KEY")
    assert shown(picture).picture == ""
    for path in ("gone.png", "a\0b", ".", 7):
        (found,) = Attachments(tmp_path).shown([{"filename": "f", "size": 1, "path": path}])
        assert (found.path, found.link, found.picture) == ("", "", "")


def test_pictures_of_a_page_have_a_limit_together_and_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(PNG)
    file = {"filename": "f", "size": len(PNG), "path": str(picture)}
    monkeypatch.setattr(attachments, "ALL_TOGETHER", 2 * len(PNG))
    assert [bool(each.picture) for each in Attachments().shown([file] * 3)] == [True, True, False]
    monkeypatch.setattr(attachments, "LARGEST", len(PNG) - 1)
    assert not shown(picture).picture


def test_a_link_is_relative_to_the_page_where_it_can_be(tmp_path: Path) -> None:
    table = tmp_path / "run.files" / "100% a#b.CSV"
    table.parent.mkdir()
    table.write_text("a")
    assert shown(table, folder=tmp_path).link == "run.files/100%25%20a%23b.CSV"
    assert shown(table, folder=tmp_path / "elsewhere").link == table.as_uri()
    assert shown(table).link == table.as_uri()
