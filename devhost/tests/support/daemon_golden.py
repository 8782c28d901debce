"""The recorded decisions of Dify's plugin daemon (source of 2026-08-21), one a line, and a session that hears answers.

Every line has a `kind`; the tests name the kinds that they run, and one test holds that no kind is left out.
"""

import json
import queue
from collections.abc import Iterator, Mapping
from typing import Any

from devhost.files import FileServer
from devhost.host.backwards import BackwardsCalls, PluginStorage
from devhost.limits import HostLimits
from devhost.models.backend import ModelBackend, OpaqueBodyPolicy
from devhost.models.scripted.model import ScriptedModel
from devhost.node.messages import ToolFileStore
from devhost.plugin.declaration import PluginDeclaration
from devhost.process.session import Session
from devhost.protocol.wire import Invoked, JsonObject
from devhost.tools.tool import Tool
from support.plugins import PUPPET
from support.recordings import DAEMON
from support.waiting import PATIENCE

LINES: list[dict[str, Any]] = [json.loads(line) for line in DAEMON.read_text(encoding="utf-8").splitlines()]


def lines(kind: str) -> list[Any]:
    return [line for line in LINES if line["kind"] == kind]


def same(got: object, recorded: object) -> bool:
    """With the order of the keys, and 1 told from 1.0."""
    return json.dumps(got) == json.dumps(recorded)


class Caller:
    """A session without a plugin, which asks and keeps what it is answered."""

    def __init__(self) -> None:
        self.heard: queue.SimpleQueue[JsonObject] = queue.SimpleQueue()
        declaration = PluginDeclaration.read(PUPPET)
        self.session = Session("s", declaration, lambda envelope: self.heard.put(envelope["data"]), lambda _: None)

    def ask(self, calls: BackwardsCalls, kind: str, request: JsonObject) -> Iterator[JsonObject]:
        """The events of the answer, to its end."""
        calls.answer(self.session, Invoked("r", kind, request))
        while True:
            heard = self.heard.get(timeout=PATIENCE)
            yield {key: heard[key] for key in ("event", "message", "data")}
            if heard["event"] == "end":
                return


def backwards_calls(
    model: ModelBackend | None = None,
    *,
    tools: tuple[Tool, ...] = (),
    limits: HostLimits | None = None,
    opaque_body: OpaqueBodyPolicy = "refuse",
    api_fails: Mapping[str, Any] | None = None,
    storage: PluginStorage | None = None,
) -> BackwardsCalls:
    return BackwardsCalls(
        model or ScriptedModel.of([{"text": "x"}]),
        tools,
        server=FileServer(ToolFileStore(DAEMON.parent)),  # nothing is saved, and nothing is served
        storage=storage or PluginStorage(),
        limits=limits or HostLimits(),
        opaque_body=opaque_body,
        api_fails=api_fails or {},
    )
