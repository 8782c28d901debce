"""`--package`: devhost runs a package, and refuses what is none or is not safe."""

import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from devhost.cli.commands import main
from devhost.errors import HostError
from devhost.package import opened_package, packed, unpack
from devhost.plugin.contents import MAX_BYTES, Contents
from support.breaches import complete
from support.plugins import CHARTS
from support.waiting import PATIENCE
from tests.devhost import ROOT

DEFLATED = zipfile.ZIP_DEFLATED
MANIFEST = {"manifest.yaml": b"name: x\n"}


def zipped(files: Mapping[str, bytes], method: int = zipfile.ZIP_STORED, *, link: str = "") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as package:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o120777 if name == link else 0o100644) << 16
            package.writestr(entry, content, method)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (lambda: b"PK, but no more", "is not a package, or is damaged: File is not a zip file. Make it again"),
        (lambda: zipped({"plugin/manifest.yaml": b""}), "is not a plugin: manifest.yaml is missing"),
        (
            lambda: zipped({"zeros": b"0" * (MAX_BYTES + 1)}, DEFLATED),
            "holds 52,428,801 bytes; at most 52,428,800 are taken",
        ),
        (lambda: zipped({f"{number}/": b"" for number in range(5_001)}), "holds 5,001 files; at most 5,000 are taken"),
        (
            lambda: zipped({f"{number}/": b"" for number in range(70_000)}),
            "lists more files than the 5,000 that are taken",
        ),
        (lambda: b"0" * (MAX_BYTES + 1), "cannot be opened: it has more than 50 MiB"),
    ],
    ids=["not-a-zip", "no-manifest", "large", "many", "very-many", "large-itself"],
)
def test_what_is_not_a_package_is_refused_in_one_sentence(
    content: Callable[[], bytes], sentence: str, tmp_path: Path
) -> None:
    file = tmp_path / "bad.difypkg"
    file.write_bytes(content())

    with pytest.raises(HostError) as refused:
        unpack(file, tmp_path / "unpacked")
    assert sentence in str(refused.value)


def test_what_is_not_a_regular_file_is_not_opened(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.difypkg"
    os.mkfifo(pipe)
    for file in (pipe, Path("/dev/zero"), tmp_path):
        with pytest.raises(HostError, match="cannot be opened: "):
            unpack(file, tmp_path / "unpacked")
    assert not (tmp_path / "unpacked").exists()


def test_nothing_is_unpacked_outside_of_the_folder(tmp_path: Path) -> None:
    file = tmp_path / "a.difypkg"
    folder = tmp_path / "inner" / "unpacked"
    names = ("../evil.py", "a/../../evil.py", f"{tmp_path}/evil.py")
    file.write_bytes(zipped({**MANIFEST, **dict.fromkeys(names, b""), "link": b"/etc"}, link="link"))
    unpack(file, folder)

    assert all(path.is_relative_to(folder) for path in tmp_path.rglob("evil.py"))
    assert not (folder / "link").is_symlink()


def test_an_opened_package_has_the_packed_files_and_leaves_nothing(tmp_path: Path) -> None:
    contents = Contents.of(complete(tmp_path))
    file = tmp_path / "charts.difypkg"
    file.write_bytes(packed(contents))

    with opened_package(file) as folder:
        assert Contents.of(folder).paths == contents.paths
        assert (folder / "main.py").read_bytes() == contents.read("main.py")
    assert not folder.parent.exists()


@pytest.mark.parametrize("name", ["...difypkg", "..difypkg", ".difypkg", "devhost-package-.difypkg"])
def test_the_name_of_the_file_leads_nowhere(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "main.py").write_text("mine")
    monkeypatch.setattr(tempfile, "tempdir", str(home))
    file = tmp_path / name
    file.write_bytes(zipped({**MANIFEST, "main.py": b"theirs"}))

    with opened_package(file) as folder:
        assert folder.parent.parent == home
        assert (folder / "main.py").read_bytes() == b"theirs"
        assert (home / "main.py").read_text() == "mine"
    assert list(home.iterdir()) == [home / "main.py"]


@pytest.mark.processes
def test_run_takes_a_package_and_devhosts_examples(tmp_path: Path) -> None:
    file = tmp_path / "agent.difypkg"
    temporary = tmp_path / "temporary"
    file.write_bytes(packed(Contents.of(ROOT)))
    temporary.mkdir()
    start = "import sys; sys.path.insert(0, sys.argv.pop(1)); from devhost.__main__ import start; start()"
    asked = ["run", "--package", str(file), "--example", "helpdesk", "--scripted", "--json"]
    ran = subprocess.run(
        [sys.executable, "-P", "-c", start, str(ROOT), *asked],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )

    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["strategy"] == "gpt5_function_calling"
    assert told["variables"]["stop_reason"] == "answered"
    assert list(temporary.glob("devhost-package-*")) == []


def test_a_package_that_is_not_there_and_one_beside_a_plugin_are_mistakes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "gone.difypkg")
    of_tools = tmp_path / "charts.difypkg"
    of_tools.write_bytes(packed(Contents.of(CHARTS)))

    assert main(["run", "--package", file, "--query", "Hi"]) == 2
    assert main(["run", "--package", file, "--plugin", str(ROOT), "--query", "Hi"]) == 2
    assert main(["run", "--package", str(of_tools), "--query", "Hi"]) == 2
    assert main(["tool", "--tools", str(of_tools)]) == 2
    said = capsys.readouterr().err.splitlines()
    remedy = "a plugin with tools is given with --tools DIR, unpacked"
    assert said[2].endswith(f"charts.difypkg has no agent strategy; {remedy}")
    assert f"{of_tools} is a package: unpack it" in said[-1]
    assert said[0] == f"Error: {file} cannot be opened: No such file or directory"
    assert said[1] == "Error: --plugin and --package each name the strategy plugin: leave out one of them"
