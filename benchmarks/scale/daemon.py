"""A client of Dify's plugin daemon: it installs packages and runs a strategy, as Dify's API does."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gevent
import httpx
from pydantic_core import from_json

from benchmarks.answers import Json

TENANT = "00000000-0000-4000-8000-000000000001"
TIMEOUT = 660.0
"""Maximum seconds of a request. A daemon ends a run after 600 seconds."""
BEGINS = "data: "


class DaemonError(Exception):
    """Raised if the daemon ends a run or refuses a request. Dify would show the message."""


@dataclass(frozen=True)
class Strategy:
    """A strategy of an installed plugin."""

    plugin_id: str
    provider: str
    name: str


OURS = Strategy("gpt5-agents/gpt5_agent", "gpt5_agent", "gpt5_function_calling")
OFFICIAL = Strategy("langgenius/agent", "agent", "function_calling")
STRATEGIES = {"ours": OURS, "official": OFFICIAL}


class Daemon:
    """A running daemon."""

    def __init__(self, url: str, key: str) -> None:
        self._tenant = f"{url}/plugin/{TENANT}"
        limits = httpx.Limits(max_connections=None)
        self._client = httpx.Client(headers={"X-Api-Key": key}, timeout=TIMEOUT, limits=limits)

    def run(self, strategy: Strategy, parameters: Json) -> Iterator[Json]:
        """Yield the messages of a run.

        Raises:
            DaemonError: the run fails, or the daemon's response is incomplete.
        """
        data = {
            "agent_strategy_provider": strategy.provider,
            "agent_strategy": strategy.name,
            "agent_strategy_params": parameters,
        }
        body = {"user_id": "user", "conversation_id": None, "app_id": None, "message_id": None, "data": data}
        url = f"{self._tenant}/dispatch/agent_strategy/invoke"
        try:
            with self._client.stream("POST", url, json=body, headers={"X-Plugin-ID": strategy.plugin_id}) as response:
                yield from messages_in(response.iter_lines())
        except httpx.TransportError as lost:
            raise DaemonError(f"{type(lost).__name__}: {lost}") from lost

    def install(self, packages: list[Path]) -> None:
        """Upload and install the packages, and wait until they are installed.

        Raises:
            DaemonError: a package is refused or does not install.
        """
        identifiers = [self._upload(package) for package in packages]
        metas: list[Json] = [{} for _ in identifiers]
        body = {"plugin_unique_identifiers": identifiers, "source": "package", "metas": metas}
        self._wait(self._post("install/identifiers", json=body))

    def upgrade(self, package: Path) -> None:
        """Replace an installed plugin with a newer version, and wait until it is installed.

        Raises:
            DaemonError: the package is refused or does not install.
        """
        new = self._upload(package)
        plugin_id = new.partition(":")[0]
        listed = self._get("list?page=1&page_size=100")
        [old] = [entry["plugin_unique_identifier"] for entry in listed["list"] if entry["plugin_id"] == plugin_id]
        body = {
            "original_plugin_unique_identifier": old,
            "new_plugin_unique_identifier": new,
            "source": "package",
            "meta": {},
        }
        self._wait(self._post("install/upgrade", json=body))

    def _upload(self, package: Path) -> str:
        uploaded = self._post("install/upload/package", files={"dify_pkg": package.read_bytes()})
        return str(uploaded["unique_identifier"])

    def _wait(self, started: Json) -> None:
        if started["all_installed"]:
            return
        while (task := self._get(f"install/tasks/{started['task_id']}"))["status"] in {"pending", "running"}:
            gevent.sleep(1)
        if task["status"] != "success":
            raise DaemonError("; ".join(plugin["message"] for plugin in task["plugins"]))

    def _post(self, path: str, **body: Any) -> Json:  # noqa: ANN401 - httpx defines the types of the body
        return succeeded(self._client.post(f"{self._tenant}/management/{path}", **body).text)

    def _get(self, path: str) -> Json:
        return succeeded(self._client.get(f"{self._tenant}/management/{path}").text)


def messages_in(lines: Iterable[str]) -> Iterator[Json]:
    """Parse the messages of a run from the lines of the daemon's event stream.

    Raises:
        DaemonError: the run failed.
    """
    for line in lines:
        if line:
            yield succeeded(line.removeprefix(BEGINS))


def succeeded(answer: str) -> Json:
    """Return the data of a daemon's response.

    Raises:
        DaemonError: the response is an error, or does not come from a daemon.
    """
    try:
        read: Json = from_json(answer)
    except ValueError as invalid:
        raise DaemonError(f"not an answer of a plugin daemon: {answer[:200]!r}") from invalid
    if read.get("code") != 0:
        raise DaemonError(str(read.get("message")))
    data: Json = read["data"]
    return data
