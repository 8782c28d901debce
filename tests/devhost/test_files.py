"""Files of this machine in, files of a run out."""

import base64
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from devhost.cli.commands import main
from devhost.errors import ParameterError
from devhost.files import FileServer, LocalFile, local_files
from devhost.limits import HostLimits
from devhost.node.messages import ToolFileStore
from devhost.script import Script
from devhost.trace.lines import read_trace
from devhost.trace.runs import traced_runs
from support.plugins import ODDMENTS, PUPPET
from tests.devhost import ROOT

pytestmark = pytest.mark.usefixtures("lent_plugins")

SHOW = '[{"show_parameters": null}]'


@pytest.fixture
def letter(tmp_path: Path) -> Path:
    file = tmp_path / "letter.TXT"
    file.write_text("Dear all")
    return file


def script(folder: Path, **content: object) -> str:
    file = folder / "script.yaml"
    file.write_text(yaml.safe_dump({"turns": [{"text": "unused"}], **content}))
    return str(file)


def reported(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[dict[str, Any], str]:
    """The object of --json, and what people read."""
    code = main(["run", "--json", "--no-color", *arguments])
    said = capsys.readouterr()
    assert code == 0, said.err
    return json.loads(said.out), said.err


def described(size: int, url: str, name: str = "letter.TXT") -> dict[str, object]:
    return {
        "dify_model_identity": "__dify__file__",
        "filename": name,
        "extension": ".txt",
        "mime_type": "text/plain",
        "type": "document",
        "size": size,
        "url": url,
    }


# --- in --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "transport", ["stdio", *(pytest.param(name, marks=pytest.mark.processes) for name in ("tcp", "http"))]
)
def test_a_file_goes_in_a_tool_reads_it_and_a_file_comes_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, letter: Path, transport: str
) -> None:
    turns = [
        {"tool_calls": [{"name": "stamp", "id": "1", "arguments": {"paper": "letter.TXT"}}]},
        {"text": "Stamped: {{tool_results}}"},
    ]
    given = ["--script", script(tmp_path, query="Stamp it.", turns=turns), "--tools", str(ODDMENTS)]
    trace = tmp_path / "run.jsonl"
    where = ["--plugin", str(ROOT), "--transport", transport, "--trace", str(trace)]

    report, read = reported(capsys, *given, *where, "--file", str(letter))

    (file,) = report["files"]
    assert "Stamped letter.TXT, document, 8 bytes." in report["text"]
    assert (file["filename"], file["type"], file["transfer_method"]) == ("stamped/paper.txt", "document", "tool_file")
    saved = tmp_path / "run.files" / "stamped_paper.txt"
    assert file["path"] == str(saved)
    assert saved.read_text() == "Dear all\nstamped"
    assert "letter.TXT (document, text/plain, 8 bytes)" in read
    assert str(saved) in read
    assert main(["replay", str(trace), "--no-color"]) == 0
    replayed = capsys.readouterr().out
    assert "letter.TXT (document, text/plain, 8 bytes)" in replayed
    assert str(saved) in replayed


def test_each_question_of_a_script_brings_its_own_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, letter: Path
) -> None:
    """The next run's memory has their bytes, as by Dify's default."""
    (tmp_path / "second.txt").write_text("2")
    then = [
        {"query": f"{SHOW} ", "files": ["second.txt", str(letter)], "turns": [{"text": "unused"}]},
        {"query": SHOW, "turns": [{"text": "unused"}]},
    ]
    asked = script(tmp_path, query=SHOW, files=["letter.TXT"], then=then)
    report, _ = reported(capsys, "--plugin", str(PUPPET), "--script", asked)

    first, second, third = [turn["variables"]["parameters"] for turn in [*report["earlier_turns"], report]]
    (file,) = first["files"]
    assert file == described(8, file["url"])
    assert file["url"].startswith("http://127.0.0.1:")
    assert [file["filename"] for file in second["files"]] == ["second.txt", "letter.TXT"]
    assert third["files"] is None
    remembered = [
        message["content"] for message in third["model"]["history_prompt_messages"] if message["role"] == "user"
    ]
    assert [part.get("filename") for part in remembered[1]] == ["second.txt", "letter.TXT", None]
    assert (remembered[0][0]["url"], base64.b64decode(remembered[0][0]["base64_data"])) == ("", b"Dear all")


def test_a_question_has_its_files_however_a_person_types_it(letter: Path) -> None:
    turns = [{"text": "hi"}]
    then = [{"query": "And this?", "files": [letter.name], "turns": turns}]
    script = Script.of({"query": "Hello.", "turns": turns, "then": then}, folder=letter.parent)
    asked = [script.turn_for(said).files for said in ("hello", " and THIS", "And that?")]
    assert asked == [(), (letter,), ()]


@pytest.mark.usefixtures("letter")
def test_files_of_the_command_line_take_the_place_of_the_scripts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = tmp_path / "other.txt"
    other.write_text("")
    asked = script(tmp_path, query=SHOW, files=["letter.TXT"])
    report, _ = reported(capsys, "--plugin", str(PUPPET), "--script", asked, "--file", str(other))
    (file,) = report["variables"]["parameters"]["files"]
    assert file == described(0, file["url"], "other.txt")


def test_in_a_chat_files_go_with_the_first_question_and_with_the_next_after_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, letter: Path
) -> None:
    (tmp_path / "my photo.png").write_text("x")
    lines = ["[]", "/file", f"/file {tmp_path}", f"/file '{tmp_path}/my photo.png'", "[]", "[]"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))
    trace = tmp_path / "chat.jsonl"
    given = ["--plugin", str(PUPPET), "--script", script(tmp_path, query="?"), "--trace", str(trace), "--no-color"]
    assert main(["chat", *given, "--file", str(letter)]) == 0
    first, bare, folder, attached, second, _ = capsys.readouterr().out.split("you> ")[1:]
    assert "file  letter.TXT (document, text/plain, 8 bytes)" in first
    assert "the file '.' cannot be read: Is a directory" in bare
    assert f"the file '{tmp_path}' cannot be read: Is a directory" in folder
    assert "my photo.png goes with the next message." in attached
    assert "letter.TXT" not in second
    assert "file  my photo.png (image, image/png, 1 byte)" in second
    sent = [run.parameters["files"] for run in traced_runs(read_trace(trace))]
    assert [[file["filename"] for file in files or ()] for files in sent] == [["letter.TXT"], ["my photo.png"], []]


def test_a_file_is_served_as_long_as_it_is_there(tmp_path: Path, letter: Path) -> None:
    with FileServer(ToolFileStore(tmp_path)) as server:
        offered = server.offer(LocalFile.read(letter, HostLimits()))
        answered = httpx.get(offered["url"])
        assert (answered.text, answered.headers["content-type"]) == ("Dear all", "text/plain")
        letter.unlink()
        assert httpx.get(offered["url"]).status_code == 404
        assert server.with_bytes(offered) == offered


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gone.txt", "the file '{}' cannot be read: No such file or directory"),
        ("folder", "the file '{}' cannot be read: Is a directory"),
        ("pipe", "the file '{}' cannot be read: it is not a regular file"),
        ("x" * 300, "'{}' cannot be read: File name too long"),
        ("a\0b", "embedded null "),  # "byte" in 3.12, "character in path" in 3.13
        ("big.png", "{} has 11 bytes; Dify takes at most 10 for this type of file"),
        ("big.zip", "{} has 11 bytes; Dify takes at most 10 for this type of file"),
    ],
)
def test_a_file_that_dify_would_not_take_is_one_sentence(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for big in ("big.png", "big.zip", "big.mp4"):
        (tmp_path / big).write_bytes(b"x" * 11)
    limits = HostLimits(image_bytes=10, document_bytes=10)
    with pytest.raises(ParameterError) as refusal:
        LocalFile.read(tmp_path / name, limits)
    assert words.format(tmp_path / name) in str(refusal.value)
    assert LocalFile.read(tmp_path / "big.mp4", limits).size == 11


def test_a_message_takes_ten_files(letter: Path) -> None:
    assert len(local_files([letter] * 10, HostLimits())) == 10
    with pytest.raises(ParameterError, match="11 files were given; Dify takes at most 10 with a message"):
        local_files([letter] * 11, HostLimits())


# --- out -------------------------------------------------------------------------------------------------------------
