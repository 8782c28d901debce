"""Python environments with other versions of the SDK, made once by pip and kept in the user's cache.

In: a version of `dify_plugin`. Out: the path of an environment whose Python has it. `pip`'s own error ends the tests
when a version cannot be installed, for instance without a network.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

INSTALL = ("-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-input")


def environment_with(sdk: str) -> Path:
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "devhost-compat"
    kept = caches / f"python{sys.version_info.major}.{sys.version_info.minor}-dify_plugin-{sdk}"
    if version_in(kept) != sdk:
        caches.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(kept, ignore_errors=True)
        _make(sdk, kept)
    return kept


def version_in(environment: Path) -> str:
    """Of its SDK; empty if there is none, or if the Python beneath it has gone."""
    ask = "import importlib.metadata; print(importlib.metadata.version('dify_plugin'))"
    try:
        asked = subprocess.run([python_of(environment), "-c", ask], check=False, capture_output=True, text=True)
    except OSError:
        return ""
    if asked.returncode == 0:
        return asked.stdout.strip()
    return ""


def python_of(environment: Path) -> Path:
    return environment / "bin" / "python"


def _make(sdk: str, kept: Path) -> None:
    """Beside its place and then moved there, so that an interrupted or a second set-up leaves nothing half done."""
    with tempfile.TemporaryDirectory(dir=kept.parent, ignore_cleanup_errors=True) as scratch:
        made = Path(scratch) / "environment"
        subprocess.run([sys.executable, "-m", "venv", made], check=True)
        subprocess.run([python_of(made), *INSTALL, f"dify_plugin=={sdk}"], check=True)
        try:
            made.rename(kept)
        except OSError:  # another run of the tests was faster
            if version_in(kept) != sdk:
                raise
