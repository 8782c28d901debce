"""The .venv of a plugin: when it is used, made or not needed, and what is said. Nothing here needs a network."""

import fcntl
import json
import os
import shutil
import subprocess
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
from devhost.process.session import Stop
from support.plugins import PUPPET

pytestmark = pytest.mark.processes

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


def test_the_variables_of_a_machine_without_internet_reach_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of docs/offline.md: a folder of wheels, and no index."""
    wheel(tmp_path)
    plugin = tmp_path / "plugin"
    plugin.mkdir()
    (plugin / "requirements.txt").write_text("needed==1.0\n")
    monkeypatch.setattr("shutil.which", lambda _: None)  # pip is asked, also where there is uv
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))

    python = environment.make_environment(plugin)

    assert subprocess.run([python, "-c", "import needed"], check=False).returncode == 0


def test_a_folder_that_is_not_devhosts_stays(tmp_path: Path) -> None:
    (tmp_path / ".venv" / "Scripts").mkdir(parents=True)
    with pytest.raises(PluginStartError, match="has no Python: remove it"):
        environment.make_environment(tmp_path)
    assert (tmp_path / ".venv" / "Scripts").exists()


# Environments of packages, in the cache.


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache; the installer makes a package `needed` out of the requirements, without an index."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    installer = tmp_path / "bin" / "uv"
    installer.parent.mkdir()
    installer.write_text(INSTALLER.format(python=sys.executable, count=tmp_path / "made"), encoding="utf-8")
    installer.chmod(0o755)
    monkeypatch.setenv("PATH", f"{installer.parent}:{os.environ['PATH']}")
    return tmp_path / "cache" / "devhost" / "environments"


INSTALLER = """#!{python}
import pathlib, sys, time
if sys.argv[1] == "venv":
    made = pathlib.Path(sys.argv[-1], "bin", "python")
    made.parent.mkdir()
    made.symlink_to(sys.executable)
    with open("{count}", "a") as count:
        count.write("one\\n")
else:
    time.sleep(0.3)  # so that others come meanwhile
    packages = pathlib.Path(sys.argv[5]).parents[1] / "lib" / "python3" / "site-packages"
    info = packages / "needed-1.0.dist-info"
    info.mkdir(parents=True)
    (packages / "needed.py").write_text("here = True")
    (info / "METADATA").write_text("Metadata-Version: 2.1\\nName: needed\\nVersion: 1.0\\n")
    (info / "RECORD").write_text("needed.py,sha256=x,11\\nneeded-1.0.dist-info/RECORD,,\\n")
"""


def unpacked(folder: Path, requirements: str) -> Path:
    folder.mkdir()
    (folder / "requirements.txt").write_text(requirements, encoding="utf-8")
    return folder


def made(cache: Path) -> int:
    return (cache.parents[2] / "made").read_text().count("one")


def test_packages_with_the_same_requirements_share_an_environment(cache: Path, tmp_path: Path) -> None:
    told = list[str]()
    first = environment.package_environment(unpacked(tmp_path / "a", "needed==1.0\n"), told.append)
    second = environment.package_environment(unpacked(tmp_path / "b", "needed==1.0\n"), told.append)
    other = environment.package_environment(unpacked(tmp_path / "c", "needed\n"), told.append)

    assert first == second
    assert first.is_relative_to(cache)
    assert other != first
    assert made(cache) == 2
    assert told[0].startswith(f"made {first.parents[1]} in ")
    assert told[1] == f"uses {first.parents[1]}, which was made for the same requirements"


@pytest.mark.parametrize("damage", ["python", "module", "cut", "package", "unfinished"])
def test_an_environment_that_is_not_whole_is_made_again(damage: str, cache: Path, tmp_path: Path) -> None:
    told = list[str]()
    python = environment.package_environment(unpacked(tmp_path / "a", "needed\n"), told.append)
    packages = python.parents[1] / "lib" / "python3" / "site-packages"
    match damage:
        case "python":
            python.unlink()
        case "module":
            (packages / "needed.py").unlink()
        case "cut":
            (packages / "needed.py").write_text("here")
        case "package":
            shutil.rmtree(packages / "needed-1.0.dist-info")
        case _:
            (python.parents[1] / environment.WHOLE).unlink()

    assert environment.package_environment(unpacked(tmp_path / "b", "needed\n"), told.append) == python

    assert made(cache) == 2
    assert (packages / "needed.py").read_text() == "here = True"


def test_several_devhosts_make_one_environment(cache: Path, tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from devhost.process.environment import package_environment\n"
        "print(package_environment(Path(sys.argv[1]), print))"
    )
    folders = [unpacked(tmp_path / name, "needed\n") for name in ("a", "b", "c")]
    started = [
        subprocess.Popen([sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE, text=True)
        for folder in folders
    ]
    printed = [process.communicate()[0] for process in started]

    assert made(cache) == 1
    assert len({each.splitlines()[-1] for each in printed}) == 1
    told = [line.partition(" ")[0] for each in printed for line in each.splitlines()[:-1]]
    assert sorted(word for word in told if word != "waits") == ["made", "uses", "uses"]


def test_a_stopped_wait_ends(cache: Path, tmp_path: Path) -> None:
    folder = unpacked(tmp_path / "a", "needed\n")
    python = environment.package_environment(folder, lambda _: None)
    stop = Stop()
    with Path(f"{python.parents[1]}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(PluginStartError, match="stopped while another devhost made"):
            environment.package_environment(folder, lambda _: stop.request(), stop)
    assert made(cache) == 1


@pytest.mark.parametrize(
    ("requirements", "project"),
    [
        ("./needed-1.0-py3-none-any.whl\n", ""),
        ("needed @ https://example.com/needed-1.0-py3-none-any.whl\n", ""),
        ("", f'{PROJECT}[tool.uv.sources]\na = {{ path = "a" }}\n'),
    ],
    ids=["path", "address", "source"],
)
def test_what_may_change_under_the_same_name_is_not_shared(
    requirements: str, project: str, cache: Path, tmp_path: Path
) -> None:
    folder = unpacked(tmp_path / "a", requirements)
    if project:
        (folder / "pyproject.toml").write_text(project, encoding="utf-8")

    assert environment.package_environment(folder, lambda _: None) == folder / ".venv" / "bin" / "python"
    assert not cache.exists()


@pytest.mark.usefixtures("cache")
def test_an_environment_that_was_not_used_for_long_is_removed(tmp_path: Path) -> None:
    told = list[str]()
    old = environment.package_environment(unpacked(tmp_path / "a", "needed\n"), told.append)
    kept = environment.package_environment(unpacked(tmp_path / "b", "needed<2\n"), told.append)
    os.utime(old.parents[1] / environment.WHOLE, (0, 0))

    environment.package_environment(unpacked(tmp_path / "c", "needed<3\n"), told.append)

    assert not old.exists()
    assert kept.exists()


def test_without_a_cache_the_environment_is_in_the_package(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    folder = unpacked(tmp_path / "a", "needed\n")

    assert environment.package_environment(folder, lambda _: None) == folder / ".venv" / "bin" / "python"
    assert not cache.exists()
