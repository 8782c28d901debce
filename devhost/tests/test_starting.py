"""Plugins start side by side, and when one fails nothing is left running."""

import gc
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from devhost import PluginStartError
from devhost.errors import SetupError
from devhost.host.host import started_side_by_side
from devhost.process.plugin_process import PluginProcess
from devhost.process.program import STARTER
from devhost.process.session import Stop, Watcher
from support.plugins import FIXTURES, PROJECT, PUPPET, TOOLBOX
from support.waiting import PATIENCE, printed_until


class StartRecorder(Watcher):
    def __init__(self) -> None:
        self.told: list[Sequence[str]] = []

    def starting(self, plugins: Sequence[str]) -> None:
        self.told.append(list(plugins))


class Fake:
    """In place of a plugin's process."""

    def __init__(self) -> None:
        self.stopped = threading.Event()

    def stop(self) -> None:
        self.stopped.set()


def begin(plugin: Fake, serve: Callable[[Fake], None], stop: Stop) -> Callable[[], PluginProcess]:
    def start() -> PluginProcess:
        stop.ends(plugin.stop)
        serve(plugin)
        return plugin  # type: ignore[return-value] # stands for one

    return start


def fails(error: Exception) -> Callable[[Fake], None]:
    def fail(_: Fake) -> None:
        raise error

    return fail


def until_stopped(plugin: Fake) -> None:
    assert plugin.stopped.wait(PATIENCE)
    raise PluginStartError("the plugin was stopped")


def test_all_start_at_the_same_time_and_come_in_order() -> None:
    """Each waits for the other."""
    both = threading.Barrier(2)
    plugins = [Fake(), Fake()]
    stop = Stop()
    heard = StartRecorder()
    starts = [
        (name, begin(plugin, lambda _: (both.wait(PATIENCE), None)[1], stop))
        for name, plugin in zip("ab", plugins, strict=True)
    ]
    started = started_side_by_side(starts, heard, stop)
    assert [id(plugin) for plugin in started] == [id(plugin) for plugin in plugins]
    assert heard.told[0] == ["a", "b"]
    assert heard.told[-1] == []
    assert not any(plugin.stopped.is_set() for plugin in plugins)


def test_one_that_fails_ends_all_others() -> None:
    plugins = [Fake(), Fake(), Fake()]
    stop = Stop()
    how = (until_stopped, lambda _: None, fails(SetupError("c refuses")))
    starts = [(name, begin(plugin, serve, stop)) for name, plugin, serve in zip("abc", plugins, how, strict=True)]
    with pytest.raises(SetupError, match=r"^c refuses$"):
        started_side_by_side(starts, Watcher(), stop)
    assert all(plugin.stopped.is_set() for plugin in plugins)


def broken(source: Path, folder: Path, main: str) -> Path:
    plugin = folder / source.name
    shutil.copytree(source, plugin)
    (plugin / "main.py").write_text(main, encoding="utf-8")
    return plugin


HANGS = "import os, time\nopen('started', 'w').write(str(os.getpid()))\ntime.sleep(600)\n"


@pytest.mark.processes
def test_ctrl_c_while_plugins_start_ends_them(tmp_path: Path) -> None:
    hanging = broken(TOOLBOX, tmp_path, f"print('warming up', flush=True)\n{HANGS}")
    where = ["--example", "toolbox", "--plugin", str(PUPPET), "--examples", str(FIXTURES), "--tools", str(hanging)]
    command = [sys.executable, "-m", "devhost", "run", *where, "--query", "[]"]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        said = printed_until(process, lambda said: "warming up" in said)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "starting puppet, toolbox, toolbox …" in said
    assert "toolbox | warming up" in said
    if (hanging / "started").exists() and (pid := (hanging / "started").read_text()):
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


def test_what_a_plugin_throws_away_is_collected_as_usual_once_it_has_started(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import gc\nkept = [[] for _ in range(300_000)]\nprint(gc.get_threshold())")
    printed = subprocess.check_output([sys.executable, "-c", STARTER, "main"], cwd=tmp_path, text=True)
    assert printed.strip() == str(gc.get_threshold())


SDK_AFTER_DEVHOST = f"""
from pathlib import Path
from devhost import Host, ScriptedModel
import dify_plugin
with Host.start(Path({str(PUPPET)!r})) as host:
    run = host.run("puppet", {{"query": '[{{"say": "hello"}}]'}}, model=ScriptedModel.of([{{"text": "x"}}]))
print(run.outputs.text)
"""


@pytest.mark.processes
def test_a_process_that_loads_the_sdk_after_devhost_runs_plugins() -> None:
    """The SDK turns threads into greenlets; a queue from before that would wait for them for ever."""
    command = [sys.executable, "-c", SDK_AFTER_DEVHOST]
    assert subprocess.check_output(command, text=True, timeout=PATIENCE).strip() == "hello"
