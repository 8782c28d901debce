"""`devhost package`: which bytes it writes, and when it writes none."""

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from devhost.cli.commands import main
from devhost.errors import PluginStartError
from devhost.package import packed, try_install, unknown_files
from devhost.plugin.contents import Contents
from devhost.process.session import Watcher
from support.breaches import complete

SERVES = """
import http.server, importlib.util, os

if importlib.util.find_spec("click"):
    raise SystemExit("click was found")

class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"OK")

http.server.HTTPServer((os.environ["SERVERLESS_HOST"], int(os.environ["SERVERLESS_PORT"])), Health).serve_forever()
"""
"""A main.py that answers as the SDK's does, and needs no SDK."""


def test_the_bytes_depend_on_the_files_alone(tmp_path: Path) -> None:
    first = complete(tmp_path / "first")
    second = complete(tmp_path / "second")
    os.utime(second / "main.py", (0, 10**9))
    (second / "main.py").chmod(0o700)

    package = packed(Contents.of(first))

    assert package == packed(Contents.of(second))
    (second / "main.py").write_text("# other\n", encoding="utf-8")
    assert package != packed(Contents.of(second))


def test_the_entries_are_the_contents_in_order_with_one_time_and_mode(tmp_path: Path) -> None:
    plugin = complete(tmp_path)
    (tmp_path / "plugin.difypkg").write_bytes(packed(Contents.of(plugin)))

    with zipfile.ZipFile(tmp_path / "plugin.difypkg") as package:
        entries = package.infolist()
        assert package.read("manifest.yaml") == (plugin / "manifest.yaml").read_bytes()
    assert [entry.filename for entry in entries] == sorted(Contents.of(plugin).paths)
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert {entry.external_attr >> 16 for entry in entries} == {0o100644}


def test_the_command_writes_the_package_under_its_name_and_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = complete(tmp_path)
    monkeypatch.chdir(tmp_path)

    assert main(["package", str(plugin), "--no-install", "--no-color", "--marketplace"]) == 0

    file = tmp_path / "dist" / "charts-0.0.3.difypkg"
    assert list(file.parent.iterdir()) == [file]
    assert f"dist/{file.name}: 15 files, {file.stat().st_size:,} bytes, sha256 " in capsys.readouterr().out


def test_a_package_holds_only_what_git_knows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = complete(tmp_path)
    (plugin / ".difyignore").write_text(".difyignore\n.env.example\n.git\n*.log\n", encoding="utf-8")
    assert unknown_files(Contents.of(plugin)) == ()  # a folder without git
    git(plugin, "init", "-q")
    assert unknown_files(Contents.of(plugin)) == ()  # nothing was added to git yet
    git(plugin, "add", ".")
    (plugin / "run.log").touch()
    (plugin / "tools" / "more.py").touch()
    package = ["package", str(plugin), "-o", str(tmp_path / "p.difypkg"), "--no-install", "--no-color"]

    assert main(package) == 1
    assert "not packed: git does not know tools/more.py; git add what belongs to it, " in capsys.readouterr().out
    assert not (tmp_path / "p.difypkg").exists()

    git(plugin, "add", "tools/more.py")
    assert main(package) == 0


def git(directory: Path, *arguments: str) -> None:
    subprocess.run(["/usr/bin/env", "git", *arguments], cwd=directory, check=True)


def package_of(plugin: Path, main_py: str, requirements: str) -> bytes:
    (plugin / "main.py").write_text(main_py, encoding="utf-8")
    (plugin / "requirements.txt").write_text(requirements, encoding="utf-8")
    return packed(Contents.of(plugin))


class SentenceRecorder(Watcher):
    def __init__(self) -> None:
        self.sentences = list[str]()

    def printed(self, plugin: str, text: str) -> None:
        assert plugin == "charts"
        self.sentences.append(text)


@pytest.mark.processes
def test_a_package_is_installed_without_what_is_installed_beside_devhost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the environment that devhost runs in nor PYTHONPATH leads to it."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "click.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "elsewhere"))

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    package = package_of(complete(tmp_path / "charts"), SERVES, "")
    told = SentenceRecorder()

    assert try_install(package, watcher=told) > 0
    assert try_install(package, watcher=told) > 0
    assert [sentence.partition(" ")[0] for sentence in told.sentences] == ["made", "uses"]


@pytest.mark.processes
def test_dependencies_that_cannot_be_installed_are_told_in_pips_words(tmp_path: Path) -> None:
    with pytest.raises(PluginStartError, match=r"cannot be made(?s:.*)nowhere"):
        try_install(package_of(complete(tmp_path), SERVES, f"b @ file://{tmp_path}/nowhere-1.0-py3-none-any.whl\n"))
