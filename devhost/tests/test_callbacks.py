"""What a tool asks its host for while it works: summaries, storage, uploads, apps, models."""

import json
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from devhost import Host, ScriptedModel
from devhost.cli.commands import main
from devhost.errors import ParameterError, RefusedCallError
from devhost.files import FileServer
from devhost.host.backwards import PluginStorage
from devhost.limits import HostLimits
from devhost.models.backend import ModelDescription, ModelRequest, chunk, summary
from devhost.node.messages import ToolFileStore
from devhost.page.page import render_page
from devhost.plugin.declaration import PluginDeclaration
from devhost.protocol.wire import JsonObject
from devhost.trace.lines import read_trace
from devhost.trace.runs import traced_runs
from support.plugins import ODDMENTS, PUPPET
from support.tracing import tracing

pytestmark = pytest.mark.usefixtures("lent_plugins")

PROVIDER = "devhost-tests/oddments/oddments"
MANIFEST = PluginDeclaration.read(ODDMENTS).manifest
LONG = "A line of thirty-two characters.\n" * 400


def answers(capsys: pytest.CaptureFixture[str], *pairs: tuple[str, object], options: tuple[str, ...] = ()) -> list[Any]:
    """What each callback of the tool brought it."""
    given = ["--tools", str(ODDMENTS), "perform", "--arg", f"steps={json.dumps(pairs)}", *options]
    assert main(["tool", "--json", *given]) == 0
    report = json.loads(capsys.readouterr().out)
    for file in report["files"]:
        Path(file["path"]).unlink()
        Path(file["path"]).parent.rmdir()
    return [*(message["message"]["json_object"]["got"] for message in report["messages"]), *report["files"]]


# --- storage ---------------------------------------------------------------------------------------------------------


def test_a_plugin_keeps_values_from_call_to_call(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = ("--storage", str(tmp_path / "kept.json"))
    assert answers(capsys, ("set", ["a", "größe"]), ("exist", "a"), options=options) == [None, True]
    assert answers(capsys, ("get", "a"), ("delete", "a"), ("exist", "a"), options=options) == ["größe", None, False]


def test_without_a_file_the_storage_ends_with_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert answers(capsys, ("set", ["a", "1"]), ("get", "a")) == [None, "1"]
    (refusal,) = answers(capsys, ("get", "a"))
    assert "load data failed: open " in refusal
    assert "/devhost-tests/oddments/a: no such file or directory" in refusal


def test_the_manifest_limits_what_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    kept, refused, smaller = answers(capsys, ("set", ["a", "x" * 1000]), ("set", ["b", "x" * 25]), ("set", ["a", ""]))
    assert (kept, smaller) == (None, None)
    assert "save data failed: allocated size is greater than max storage size" in refused


def test_a_file_that_cannot_be_kept_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=f"there is no folder {tmp_path}/nowhere"):
        PluginStorage(tmp_path / "nowhere" / "kept.json")
    file = tmp_path / "kept.json"
    file.write_text('{"mine": 1}')
    with pytest.raises(ParameterError, match="exists and is not a storage of devhost"):
        PluginStorage(file)
    assert file.read_text() == '{"mine": 1}'


def stored(storage: PluginStorage, value: bytes) -> JsonObject:
    manifest = PluginDeclaration.read(PUPPET).manifest  # without a size of its own
    return storage.answer(manifest, {"opt": "set", "key": "a", "value": value.hex()}, HostLimits())


def test_a_file_that_is_not_written_to_its_end_keeps_what_it_had(tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    stored(PluginStorage(file), b"1")
    file.chmod(0o600)
    before = file.read_bytes()
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, usual[1]))  # the disk is full after so many bytes
    try:
        with pytest.raises(RefusedCallError, match="save data failed"):
            stored(PluginStorage(file), b"2" * 2_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)

    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]
    stored(PluginStorage(file), b"2" * 2_000_000)
    assert len(file.read_bytes()) > 4_000_000
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_damaged_storage_is_not_called_the_file_of_another_program(tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    stored(PluginStorage(file), b"1")
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(ParameterError, match=r"is damaged: .*Delete it, or name another file with --storage"):
        PluginStorage(file)


def test_a_run_keeps_its_storage_beside_its_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = called(("set", ["a", "1"]))
    turns = tmp_path / "script.yaml"
    turns.write_text(json.dumps({"query": json.dumps([{"call": call}]), "turns": [{"text": "unused"}]}))
    where = ["--plugin", str(PUPPET), "--tools", str(ODDMENTS), "--script", str(turns)]
    assert main(["run", *where, "--json", "--trace", str(tmp_path / "t.jsonl")]) == 0
    capsys.readouterr()
    kept = json.loads((tmp_path / "devhost-storage.json").read_text())
    assert kept["plugins"] == {"devhost-tests/oddments": {"a": "31"}}


# --- uploads and apps ------------------------------------------------------------------------------------------------


def test_an_upload_becomes_a_tool_file(capsys: pytest.CaptureFixture[str]) -> None:
    uploaded, file = answers(capsys, ("upload", ["table.csv", "a,b"]))
    assert (uploaded["name"], uploaded["size"], uploaded["extension"]) == ("table.csv", 3, ".csv")
    assert (uploaded["mime_type"], uploaded["type"]) == ("text/csv", "document")
    assert (file["id"], Path(file["path"]).name) == (uploaded["id"], "table.csv")


def test_only_an_announced_file_is_taken(tmp_path: Path) -> None:
    with FileServer(ToolFileStore(tmp_path)) as server:
        url = server.upload_url("table.csv", "text/csv")
        other = {"file": ("other.csv", b"a", "text/csv")}
        assert httpx.post(url, files=other).status_code == 403
        assert httpx.post(f"{url}x", files={"file": ("table.csv", b"a", "text/csv")}).status_code == 403
        assert httpx.post(url, content=b"nothing").status_code == 403
        assert httpx.get(f"{server.url}/files/none/file-preview").status_code == 404
        assert httpx.post(url, files={"file": ("table.csv", b"a", "text/csv")}).status_code == 201
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"a"]


def test_a_call_that_devhost_does_not_answer(capsys: pytest.CaptureFixture[str]) -> None:
    (refusal,) = answers(capsys, ("fetch_app", "x"))
    assert "devhost does not answer calls for fetch_app" in refusal


# --- summaries -------------------------------------------------------------------------------------------------------


def test_a_text_of_less_than_60_percent_of_the_context_is_its_own_summary_and_a_longer_one_is_cut(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cut, short = answers(capsys, ("summary", LONG), ("summary", "Short."))
    assert short == "Short."
    assert cut == f"{LONG[:4915]}… (cut by devhost: {len(LONG) - 4915:,} more characters)"


class Summarizer:
    """Says the first characters of what it reads."""

    description = ModelDescription("p", "m", "", scripted=False, context_size=2_500)

    def __init__(self, length: int) -> None:
        self.asked: list[tuple[str, ...]] = []
        self._length = length

    def invoke(self, request: ModelRequest, /) -> Iterator[JsonObject]:
        self.asked.append(tuple(message.text for message in request.prompt_messages))
        yield chunk("m", text="short ")
        yield chunk("m", text=self.asked[-1][1][: self._length])


def test_a_model_summarizes_a_longer_text_in_parts_and_what_is_still_too_long_is_cut() -> None:
    model = Summarizer(length=6)
    assert summary(model, LONG[:6_000], "Keep numbers.") == LONG[:6_000]
    assert model.asked == []

    said = summary(model, LONG, "Keep numbers.")
    parts = [text for _, text in model.asked]
    assert said == "\n".join(f"short {part[:6]}" for part in parts)
    assert "".join(parts) == LONG
    assert max(map(len, parts)) == 6_000
    assert all("Keep numbers." in asked for asked, _ in model.asked)

    assert summary(Summarizer(length=6_000), LONG, "").endswith("… (cut by devhost: 7,220 more characters)")


# --- under the tool's call -------------------------------------------------------------------------------------------


def called(*pairs: tuple[str, object]) -> JsonObject:
    return {"provider": PROVIDER, "tool_name": "perform", "parameters": {"steps": json.dumps(pairs)}}


def test_the_page_shows_what_a_tool_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    calls = [{"call": called(("say", "nothing"))}, {"call": called(("llm", "Think."), ("summary", LONG))}]
    with tracing(file) as writer, Host.start(PUPPET, tools=[ODDMENTS], watcher=writer) as host:
        model = ScriptedModel.of([{"text": "thought by the tool"}])
        assert host.run("puppet", {"query": json.dumps(calls)}, model=model).error is None
    trace = read_trace(file)
    _, second, *inside = traced_runs(trace)[0].calls
    assert [(call.kind, call.parent) for call in inside] == [("llm", second.id), ("system_summary", second.id)]
    page = render_page(trace)
    assert "thought by the tool" in page
    assert "system_summary" in page
