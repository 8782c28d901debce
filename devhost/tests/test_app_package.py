"""App packages, as Dify has exported them since 1.18.0: read like the DSL file inside, refused where Dify refuses."""

import hashlib
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from devhost.cli.commands import main
from devhost.console.found import kind_of
from devhost.errors import FlowFileError
from devhost.flow.checks import check_flow
from devhost.flow.document import FlowFile
from devhost.protocol.wire import JsonObject
from support.flow_documents import START, answer, chain, chatflow

SKILL = b"the bytes of a skill"


def entry(path: str, content: bytes) -> JsonObject:
    return {"path": path, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def app(folder: Path) -> bytes:
    secret = {"name": "key", "value_type": "secret", "value": "s3cret-of-the-app"}
    nodes = [START, answer("Hello", "hello")]
    return chatflow(folder, nodes, chain("start", "hello"), environment_variables=[secret]).read_bytes()


def package(folder: Path, members: Mapping[str, bytes], manifest: JsonObject | None = None) -> Path:
    """A package of these files; `manifest`: what it says beside what the format needs."""
    listed = {"format": "dify.app", "format_version": 1, "apps": [entry("app.yaml", members["app.yaml"])]}
    file = folder / "shop.ifpkg"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.yaml", yaml.safe_dump({**listed, **(manifest or {})}))
        for name, content in members.items():
            archive.writestr(name, content)
    return file


def test_a_package_is_the_app_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = app(tmp_path)
    resources = {"shop": {"skills": [{**entry("s_000001.zip", SKILL), "id": "s_000001", "name": "refunds"}]}}
    file = package(tmp_path, {"app.yaml": content, "s_000001.zip": SKILL}, {"agent_resources": resources})
    read = FlowFile.read(file)
    assert list(read.nodes) == ["start", "hello"]
    assert read.secrets == ["s3cret-of-the-app"]
    assert read.unused == ("1 skill",)
    assert main(["check", str(file), "--no-color"]) == 0
    said = capsys.readouterr().out
    assert "not used by devhost: 1 skill of the package" in said
    assert "chatflow with 2 nodes" in said
    assert kind_of(file) == "flow"
    assert [each for each in check_flow(read, {}, ()) if "1 skill" in each] == [
        "not used by devhost: 1 skill of the package"
    ]


@pytest.mark.parametrize(
    ("members", "manifest", "said"),
    [
        ({"more.txt": b"x"}, {}, "more.txt is only in the package or only in its manifest.yaml"),
        ({}, {"icons": [entry("i_000001.png", b"x")]}, "i_000001.png is only in the package or only in its"),
        ({}, {"apps": [entry("app.yaml", b"another")]}, "app.yaml is not the file that manifest.yaml describes"),
        ({}, {"format": "dify.roster-agent"}, "is an agent of Dify's own .* not an app"),
        ({}, {"format_version": 2}, "format_version.* Dify exports the app as YAML, too"),
        ({}, {"apps": []}, "manifest.yaml is not one that devhost knows: apps"),
        ({"more/x.txt": b"x"}, {}, "'more/x.txt' is in a folder"),
    ],
    ids=["not listed", "missing", "changed", "agent", "newer", "no app", "folder"],
)
def test_what_dify_would_not_import_is_refused(
    tmp_path: Path, members: Mapping[str, bytes], manifest: JsonObject, said: str
) -> None:
    file = package(tmp_path, {"app.yaml": app(tmp_path), **members}, manifest)
    with pytest.raises(FlowFileError, match=said):
        FlowFile.read(file)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"more: [&x 1, *x]\n", r"app\.yaml: an anchor is used again by an alias"),
        (b"name: {a: 1, a: 2}\n", r"app\.yaml: the key 'a' appears twice"),
        (b"list: [{b: 1, b: 2}]\n", r"app\.yaml: the key 'b' appears twice"),
    ],
)
def test_yaml_that_dify_takes_in_no_package_is_refused_with_its_place(tmp_path: Path, line: bytes, said: str) -> None:
    content = app(tmp_path)
    first, rest = content.split(b"\n", 1)
    file = package(tmp_path, {"app.yaml": first + b"\n" + line + rest})
    with pytest.raises(FlowFileError, match=said):
        FlowFile.read(file)


def test_what_is_no_package_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "shop.ifpkg"
    file.write_bytes(b"kind: app")
    with pytest.raises(FlowFileError, match="is not an app package, or is damaged"):
        FlowFile.read(file)
    file.unlink()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("app.yaml", app(tmp_path))
    with pytest.raises(FlowFileError, match=r"has no manifest\.yaml"):
        FlowFile.read(file)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(FlowFileError, match="it is not a regular file"):
        FlowFile.read(file)


def test_a_package_that_unpacks_to_more_than_the_limit_is_refused(tmp_path: Path) -> None:
    file = package(tmp_path, {"app.yaml": app(tmp_path), "f_000001.bin": bytes(50 * 1024 * 1024 + 1)})
    with pytest.raises(FlowFileError, match=r"holds .* bytes; at most 52,428,800 are taken"):
        FlowFile.read(file)


def test_a_package_that_lists_too_many_files_is_refused_before_they_are_read(tmp_path: Path) -> None:
    file = tmp_path / "shop.ifpkg"
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(70_000):
            archive.writestr(f"{number}", b"")
    with pytest.raises(FlowFileError, match="lists more files than the 5,000 that are taken"):
        FlowFile.read(file)
