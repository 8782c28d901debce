"""`devhost run --watch` runs again when a file of the plugin or the script changes."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.plugins import PUPPET, TOOLBOX
from support.waiting import PATIENCE, printed_until


@pytest.mark.processes
def test_a_changed_script_is_run_again_until_ctrl_c(tmp_path: Path) -> None:
    plugin = Path(shutil.copytree(PUPPET, tmp_path / "a plugin"))
    script = Path(shutil.copy(TOOLBOX / "script.yaml", tmp_path / "script.yaml"))
    command = ["run", "--plugin", str(plugin), "--script", str(script), "--query", '[{"say": "hello"}]', "--watch"]
    process = subprocess.Popen(
        [sys.executable, "-m", "devhost", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "COLUMNS": "400"},
        start_new_session=True,
    )
    try:
        first = printed_until(process, lambda said: "Ctrl-C ends\n" in said)
        (plugin / "main.pyc").touch()
        (plugin / "main.py").touch()
        second = printed_until(process, lambda said: "Ctrl-C ends\n" in said)
    finally:
        os.killpg(process.pid, signal.SIGINT)
        last, _ = process.communicate(timeout=PATIENCE)

    assert "hello" in first
    assert second.count("changed: ") == 1
    assert "main.py\n" in second
    assert "hello" in second
    assert (process.returncode, last) == (0, "")
