"""`--package`: devhost runs a package, and refuses what is none or is not safe."""

import io
import json
import os
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from devhost.cli.commands import main
from devhost.errors import PackageError
from devhost.package import opened_package, packed, unpack
from devhost.plugin.contents import MAX_BYTES, Contents
from support.breaches import complete
from support.waiting import PATIENCE
from tests.devhost import ROOT

MEGABYTE = 1024 * 1024
MANIFEST = {"manifest.yaml": b"name: x\n"}


def zipped(files: Mapping[str, bytes], *, link: str = "") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as package:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o120777 if name == link else 0o100644) << 16
            package.writestr(entry, content)
    return file.getvalue()


def bomb(megabytes: int) -> bytes:
    """A file of zeros, of which the directory says that it has 10 bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("manifest.yaml", "name: x\n")
        package.writestr("zeros", b"\0" * (megabytes * MEGABYTE))
    size = (megabytes * MEGABYTE).to_bytes(4, "little")
    assert file.getvalue().count(size) == 2  # before the file, and in the directory
    return file.getvalue().replace(size, (10).to_bytes(4, "little"))


def damaged() -> bytes:
    whole = zipped({**MANIFEST, "main.py": b"a text that is stored as it is"})
    return whole.replace(b"stored as", b"altered a")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"PK, but no more", "is not a package, or is damaged: File is not a zip file. Make it again"),
        (damaged(), "is damaged: Bad CRC-32 for file 'main.py'"),
        (zipped({"main.py": b""}), "is not a plugin's package: it has no manifest.yaml at its top"),
        (zipped({"plugin/manifest.yaml": b""}), "it has no manifest.yaml at its top"),
        (zipped({**MANIFEST, "../evil.py": b""}), "not safe to unpack: its file '../evil.py' is outside"),
        (zipped({**MANIFEST, "a/../../evil.py": b""}), "its file 'a/../../evil.py' is outside"),
        (zipped({**MANIFEST, "/tmp/evil.py": b""}), "its file '/tmp/evil.py' is outside"),
        (zipped({**MANIFEST, "..\\evil.py": b""}), r"its file '..\\evil.py' is outside"),
        (zipped({**MANIFEST, "C:/evil.py": b""}), "its file 'C:/evil.py' is outside"),
        (zipped({**MANIFEST, **{f"{n}.py": b"" for n in range(5000)}}), "holds 5,001 files with 8 bytes; Dify takes"),
    ],
)
def test_a_file_that_is_no_safe_package_is_refused_in_one_sentence(
    content: bytes, sentence: str, tmp_path: Path
) -> None:
    file = tmp_path / "bad.difypkg"
    file.write_bytes(content)

    with pytest.raises(PackageError) as refused:
        unpack(file, tmp_path / "inner" / "unpacked")
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
    assert list(tmp_path.rglob("*evil*")) == []


def test_a_forged_size_costs_neither_memory_nor_disk(tmp_path: Path) -> None:
    file = tmp_path / "bomb.difypkg"
    file.write_bytes(bomb(200))
    tracemalloc.start()
    try:
        with pytest.raises(PackageError, match="Bad CRC-32 for file 'zeros'"):
            unpack(file, tmp_path / "unpacked")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 5 * MEGABYTE
    assert (tmp_path / "unpacked" / "zeros").stat().st_size <= 10


def test_files_are_counted_before_anything_else(tmp_path: Path) -> None:
    """The names of the others are not looked at, and a file larger than Dify takes is not opened."""
    many, large = tmp_path / "many.difypkg", tmp_path / "large.difypkg"
    many.write_bytes(zipped({"../evil.py": b"", **{f"{n}.py": b"" for n in range(40_000)}}))
    with large.open("wb") as file:
        file.truncate(MAX_BYTES + 1)

    with pytest.raises(PackageError, match="holds 40,001 files"):
        unpack(many, tmp_path / "unpacked")
    with pytest.raises(PackageError, match="has 52,428,801 bytes; Dify takes packages of 52,428,800"):
        unpack(large, tmp_path / "unpacked")


def test_a_link_in_a_package_becomes_a_file(tmp_path: Path) -> None:
    (tmp_path / "linked.difypkg").write_bytes(zipped({**MANIFEST, "link": b"/etc"}, link="link"))
    unpack(tmp_path / "linked.difypkg", tmp_path / "unpacked")
    assert not (tmp_path / "unpacked" / "link").is_symlink()


def test_an_opened_package_has_the_packed_files_and_leaves_nothing(tmp_path: Path) -> None:
    contents = Contents.of(complete(tmp_path))
    file = tmp_path / "charts.difypkg"
    file.write_bytes(packed(contents))

    with opened_package(file) as folder:
        assert folder.name == "charts"
        assert Contents.of(folder).paths == contents.paths
        assert (folder / "main.py").read_bytes() == contents.read("main.py")
    assert not folder.parent.exists()


@pytest.mark.processes
def test_run_takes_a_package_and_devhosts_examples(tmp_path: Path) -> None:
    file, temporary = tmp_path / "agent.difypkg", tmp_path / "temporary"
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

    assert main(["run", "--package", file, "--query", "Hi"]) == 2
    assert main(["run", "--package", file, "--plugin", str(ROOT), "--query", "Hi"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"Error: {file} cannot be opened: No such file or directory"
    assert said[1] == "Error: --plugin and --package each name the strategy plugin: leave out one of them"
