"""`devhost ui` as a process."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self
from urllib.parse import urljoin

import httpx

from support.waiting import PATIENCE, printed_until

ROOT = Path(__file__).parents[2]


class Served:
    """A context manager; the console ends as a person ends it, with Ctrl-C."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "devhost", "ui", "--runs", str(self.runs), "--port", "0", "--no-open"]
        self._errors = self.runs.with_name(f"{self.runs.name}-errors.txt").open("w+", encoding="utf-8")
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=self._errors, text=True)
        said = printed_until(self.process, lambda said: "console  " in said)
        self.address = said.partition("console  ")[2].split()[0]
        """With the token."""
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=PATIENCE)
        self._errors.seek(0)
        errors = self._errors.read()
        self._errors.close()
        assert "Traceback" not in errors, errors

    def clear(self) -> None:
        """Ends what tests have started here, and removes all runs."""
        with httpx.Client(base_url=self.url("/"), headers={"origin": self.url("/").rstrip("/")}) as client:
            client.get(self.address)
            for setup in self.runs.glob("*.setup.json"):
                client.post(f"/runs/{setup.name.removesuffix('.setup.json')}/steer", data={"do": "end"})
            for suite in self.runs.glob("*.yaml"):
                client.post("/suite", data={"do": "stop", "file": str(suite)})
        for entry in self.runs.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink(missing_ok=True)

    def url(self, path: str) -> str:
        return urljoin(self.address, path)
