"""The .venv of a plugin: when it is used, made or not needed, and what is said. Nothing here needs a network."""

import json
import shutil
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import click
import pytest

from devhost.cli.commands import main
from devhost.errors import PluginStartError
from devhost.plugin.dependencies import missing
from devhost.process import environment
from support.plugins import PUPPET

PROJECT = '[project]\nname = "x"\nversion = "1"\ndependencies = ["a==1", "b"]\n'
WHEEL = "needed-1.0-py3-none-any.whl"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("# a comment\nclick>=8  # for the command\n--index-url https://example.com", None),
        ("click<1", f"click<1 ({version('click')} is installed)"),
        ("no-such-package==1.0", "no-such-package==1.0"),
        ('no-such-package==1.0; python_version < "3"', None),
        ("./local.whl", "./local.whl"),
    ],
)
def test_what_is_installed_beside_devhost_is_not_missing(tmp_path: Path, line: str, sentence: str | None) -> None:
    (tmp_path / "requirements.txt").write_text(line)
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\n")
    assert list(missing(tmp_path)) == ([] if sentence is None else [sentence])


def test_uv_installs_what_its_lock_says_and_pip_the_same_versions(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    assert environment.by_hand(tmp_path) == f"cd {tmp_path} && {environment.OF_REQUIREMENTS}"
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    assert environment.by_hand(tmp_path) == f"cd {tmp_path} && {environment.OF_PROJECT}"
    assert [command[-2:] for command in environment.commands(tmp_path, "uv")][1:] == [["a==1", "b"]]

    registry = 'source = { registry = "https://example.com/simple" }\n'
    locked = (("a", "1", registry), ("b", "2", registry), ("x", "1", 'source = { virtual = "." }\n'))
    several = (("c", "1", registry), ("c", "2", registry))
    (tmp_path / "uv.lock").write_text(
        "".join(f'[[package]]\nname = "{name}"\nversion = "{number}"\n{of}' for name, number, of in (*locked, *several))
    )
    assert list(environment.commands(tmp_path, "uv"))[1][:2] == ["uv", "sync"]
    make, install = environment.commands(tmp_path, None)
    assert make[0] == sys.executable
    assert install[-4:] == ["-c", ".venv/pins.txt", "a==1", "b"]
    assert (tmp_path / ".venv" / "pins.txt").read_text() == "a==1\nb==2\n"


def wheel(folder: Path) -> None:
    """With a module `needed`; it also leads to what is installed beside devhost, because the plugin needs the SDK."""
    info = "needed-1.0.dist-info"
    with zipfile.ZipFile(folder / WHEEL, "w") as file:
        file.writestr("needed.py", "")
        file.writestr("needed.pth", f"{Path(click.__file__).parents[1]}\n")
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: needed\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")


@pytest.mark.processes
def test_a_plugin_gets_an_environment_when_it_needs_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = tmp_path / "puppet"
    shutil.copytree(PUPPET, plugin)
    main_py = plugin / "main.py"
    main_py.write_text(f"import needed\n{main_py.read_text()}")
    (plugin / "requirements.txt").write_text(f"./{WHEEL}\n")
    script = tmp_path / "script.yaml"
    script.write_text(json.dumps({"query": json.dumps([{"say": "it runs"}]), "turns": [{"text": "unused"}]}))
    run = ["run", "--plugin", str(plugin), "--script", str(script)]

    assert main([*run, "--no-install"]) == 1
    printed = capsys.readouterr()
    how = f"cd {plugin} && {environment.OF_REQUIREMENTS}"
    assert f"puppet | runs in devhost's Python, which lacks ./{WHEEL}. To make its own .venv: {how}" in printed.out
    assert f"It ran in devhost's Python. To install what it needs: {how}" in printed.err
    assert not (plugin / ".venv").exists()

    assert main(run) == 1, "there is no wheel yet"
    said = capsys.readouterr().err
    assert f"{plugin / '.venv'} cannot be made" in said
    assert WHEEL in said.partition("failed\n")[2], "in the installer's own words"
    assert f"To make it by hand: {how}\nTo run the plugin without it: --no-install" in said
    assert not (plugin / ".venv").exists()

    wheel(plugin)
    assert main(run) == 0
    printed = capsys.readouterr()
    assert f"puppet | needs ./{WHEEL}: making {plugin / '.venv'} with" in printed.out
    assert f"puppet | made {plugin / '.venv'} in " in printed.out
    assert "it runs" in printed.out

    assert environment.own_python(plugin) == plugin / ".venv" / "bin" / "python"
    assert main(run) == 0
    assert "making" not in capsys.readouterr().out


def test_a_folder_that_is_not_devhosts_stays(tmp_path: Path) -> None:
    (tmp_path / ".venv" / "Scripts").mkdir(parents=True)
    with pytest.raises(PluginStartError, match="has no Python: remove it"):
        environment.make_environment(tmp_path)
    assert (tmp_path / ".venv" / "Scripts").exists()
