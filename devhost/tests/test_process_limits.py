"""What happens to a plugin, and to the runs on it, at the host's limits."""

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from devhost import Host, HostLimits, PluginStartError
from devhost.cli.commands import main
from devhost.plugin.declaration import PluginDeclaration
from devhost.process import plugin_process, session
from devhost.process.plugin_process import PluginProcess
from devhost.process.program import Listener, Transport, TransportName
from devhost.process.session import Watcher
from devhost.protocol.wire import JsonObject
from support.plugins import PUPPET, TOOLBOX
from support.puppet_runs import failure, perform, plugin_with_main
from support.waiting import PATIENCE, MovableClock, PausingModel

pytestmark = pytest.mark.processes


def test_a_line_that_is_too_long_ends_every_session_of_the_plugin() -> None:
    asked = threading.Event()
    over = threading.Event()

    def wait() -> None:
        asked.set()
        over.wait(PATIENCE)

    with Host.start(PUPPET, limits=HostLimits(line_bytes=100_000)) as host, ThreadPoolExecutor() as pool:
        assert perform(host, {"print": 99_999}, {"say": "still here"}).outputs.text == "still here"
        waiting = pool.submit(host.run, "puppet", {"query": '[{"ask": "Hi"}]'}, model=PausingModel.that(wait))
        assert asked.wait(PATIENCE)
        too_long = perform(host, {"print": 100_000})
        for run in (too_long, waiting.result(PATIENCE), perform(host, {"say": "too late"})):
            assert "PluginLostError: the plugin wrote a line of more than 100,000 bytes" in failure(run)
        over.set()


class HeldLine(Transport):
    """Without a process: the test plays the plugin."""

    awaited = "no heartbeat came"

    def start(self, listener: Listener, /) -> None:
        listener.noted("warming up")

    def send(self, envelope: JsonObject, /) -> None:
        """The test does not read it."""


def on_a_line(limits: HostLimits | None = None) -> tuple[PluginProcess, HeldLine]:
    line = HeldLine(PluginDeclaration.read(PUPPET), "python", limits or HostLimits())
    return PluginProcess(line, Watcher()), line


def test_a_silent_plugin_is_killed_and_any_output_counts_after_the_first_heartbeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = MovableClock(monkeypatch, plugin_process)
    plugin, line = on_a_line()
    killed: list[str] = []
    monkeypatch.setattr(line, "kill", killed.append)
    plugin.noted("printed")
    now.move(1_000)
    plugin._look_for_life()
    plugin.received({"event": "heartbeat", "data": {}})
    now.move(59)
    plugin.noted("printed")
    now.move(59)
    plugin._look_for_life()
    assert killed == []
    now.move(2)
    plugin._look_for_life()
    assert killed == ["no sign of life for 60 seconds: the daemon kills the plugin for that"]


def test_what_a_plugin_printed_is_in_the_error_when_it_does_not_serve() -> None:
    plugin, _ = on_a_line(HostLimits(launch_seconds=0.01))
    with pytest.raises(PluginStartError, match=r"no heartbeat came within 0\.01 seconds\nwarming up$"):
        plugin.launch()


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_run_has_a_deadline_and_the_plugin_goes_on(transport: TransportName, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = MovableClock(monkeypatch, session)
    with Host.start(PUPPET, transport=transport) as host:
        late = PausingModel.that(lambda: clock.move(601))
        assert failure(host.run("puppet", {"query": '[{"ask": "Hi"}]'}, model=late)) == (
            "RunTimeoutError: killed by timeout: the invocation took longer than 600 seconds"
        )
        assert perform(host, {"say": "next"}).outputs.text == "next"


def test_a_call_has_a_deadline_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[threading.Timer] = []

    def keep(timer: threading.Timer) -> None:
        timers.append(timer)

    def time_is_up() -> None:
        timers[0].function()

    monkeypatch.setattr(threading.Timer, "start", keep)
    with Host.start(PUPPET) as host:
        model = PausingModel.that(time_is_up)
        run = host.run("puppet", {"query": '[{"ask": "Hi"}]'}, model=model)
    assert timers[0].interval == 240
    assert "read llm model failed: read tcp" in failure(run)
    assert "use of closed network connection" in failure(run)
    assert run.outputs.text == "a"


def test_the_environment_of_a_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """UTF-8 whatever the locale, the way it is run, and nothing that leads to devhost's own model."""
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("INSTALL_METHOD", "remote")
    monkeypatch.setenv("PYTHONUTF8", "0")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://user:pass@models.example/v1")
    main = (
        "import os, sys\n"
        "openai = [name for name in os.environ if 'OPENAI' in name]\n"
        "sys.exit(f'{open(os.devnull).encoding} {os.environ[\"INSTALL_METHOD\"]} {openai}')\n"
    )
    with pytest.raises(PluginStartError, match=r"code 1\nutf-8 local \[\]$"):
        PluginProcess.start(plugin_with_main(tmp_path, main))


def test_the_error_of_a_crash_names_its_line_and_not_the_traceback_that_was_printed(tmp_path: Path) -> None:
    printed = "Traceback (most recent call last):\n  File \"/x/strategies/odd.py\", line 7, in f\nKeyError: 'cheese'\n"
    limits = HostLimits(stop_seconds=PATIENCE)
    with Host.start(PUPPET, limits=limits) as host:
        said = failure(perform(host, {"crash": printed}))
    assert said == "PluginLostError: the plugin exited with code 3: KeyError: 'cheese', strategies/odd.py:7"
    with pytest.raises(PluginStartError, match=r"SIGSEGV: Fatal Python error: Segmentation fault, plugin/main.py:3\n"):
        PluginProcess.start(plugin_with_main(tmp_path, "import ctypes\n\nctypes.string_at(0)\n"), limits=limits)


def test_a_plugin_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    serve = (PUPPET / "main.py").read_text(encoding="utf-8")
    deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    with PluginProcess.start(plugin_with_main(tmp_path, deaf + serve), limits=HostLimits(stop_seconds=0.3)) as plugin:
        assert plugin.declaration.manifest.name == "puppet"


@pytest.mark.parametrize("transport", ["stdio", "tcp", "http"])
def test_nothing_is_left_behind(transport: TransportName) -> None:
    with Host.start(PUPPET, transport=transport) as host:
        directory = host.files.directory
        ended = host.plugin._transport
        assert directory.is_dir()
    assert not directory.exists()
    assert ended.process.returncode is not None
    assert not any(reader.is_alive() for reader in ended._readers)


# A tool without end: which limit passed, and where the tool was.

CALL_REPEAT: JsonObject = {
    "call": {"provider": "devhost-tests/toolbox/toolbox", "tool_name": "repeat", "parameters": {"word": "a"}}
}


class Printed(Watcher):
    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def printed(self, plugin: str, text: str) -> None:
        self.lines.append((plugin, text))


def endless_tool(folder: Path, body: str) -> Path:
    """A copy of the toolbox, whose tool runs the body; its first line is the 8th of tools/repeat.py."""
    plugin = Path(shutil.copytree(TOOLBOX, folder / "toolbox"))
    lines = [
        "import threading",
        "import time",
        "",
        "from dify_plugin.interfaces.tool import Tool",
        "",
        "class RepeatTool(Tool):",
        "    def _invoke(self, tool_parameters):",
        *(f"        {line}" for line in body.splitlines()),
        "        yield self.create_text_message('done')",
    ]
    (plugin / "tools" / "repeat.py").write_text("\n".join(lines), encoding="utf-8")
    return plugin


ENDLESS = {
    "it sleeps": "time.sleep(1000)",
    "it computes": "while True: pass",
    "it waits for a thread": "thread = threading.Thread(target=time.sleep, args=[1000])\nthread.start()\nthread.join()",
    "it keeps the interpreter": "sum(range(10**13))",
}


@pytest.mark.parametrize("body", ENDLESS.values(), ids=ENDLESS)
def test_a_tool_that_is_called_directly_ends_at_a_given_limit_and_the_line_where_it_was_is_told(
    body: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = endless_tool(tmp_path, body)
    asked = ["repeat", "--arg", "word=a", "--limit", "call-seconds=1", "--limit", "stop-seconds=1"]
    assert main(["tool", "--tools", str(plugin), "--no-color", "--no-install", *asked]) == 1
    printed = capsys.readouterr().out
    line = 8 + body.count("\n")
    told = f"devhost: the limit call-seconds has passed, 1 s: it is at tools/repeat.py:{line}, in _invoke"
    assert told in printed
    assert "killed by timeout: the invocation took longer than 1 seconds" in printed


def test_an_agent_reads_the_daemons_words_and_the_person_where_the_tool_was(tmp_path: Path) -> None:
    heard = Printed()
    limits = HostLimits(call_seconds=1)
    with Host.start(PUPPET, tools=[endless_tool(tmp_path, "time.sleep(1000)")], limits=limits, watcher=heard) as host:
        run = perform(host, CALL_REPEAT)
    assert "use of closed network connection" in str(run.outputs.variables["tool_error"])
    where = "it is at tools/repeat.py:8, in _invoke"
    assert heard.lines == [("puppet", f"devhost: the limit call-seconds has passed, 1 s, for the tool repeat: {where}")]


def test_after_a_silence_a_line_says_what_is_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "SILENCE_SECONDS", 1)
    heard = Printed()
    with Host.start(PUPPET, tools=[endless_tool(tmp_path, "time.sleep(3)")], watcher=heard) as host:
        perform(host, CALL_REPEAT)
    assert {
        ("puppet", "devhost: no message for 1 s: it waits for the tool repeat"),
        ("toolbox", "devhost: no message for 1 s: it is at tools/repeat.py:8, in _invoke"),
    } <= set(heard.lines)
