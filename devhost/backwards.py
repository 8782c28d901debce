"""Answers what a plugin asks of its host while it works: model calls and tool calls, each in a thread of its own.

In: an `Invoked` of a session. Out: response events and an end, or one error event, on that session. What the manifest
does not permit, what does not decode and what devhost has not got is refused in the daemon's or Dify's manner.
"""

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator, Sequence

from devhost.declaration import Permission
from devhost.errors import HostError, InvocationError, PluginLostError, RefusedCallError
from devhost.limits import HostLimits
from devhost.model_backend import ModelBackend, ModelCallError
from devhost.model_request import OpaqueBodyPolicy, decode_model_request
from devhost.reply import Reply
from devhost.session import Session
from devhost.tool_files import ToolFileStore
from devhost.tool_request import decode_tool_request
from devhost.tools import Tool, call_tool
from devhost.wire import Invoked, JsonObject


class BackwardsCalls:
    """The calls of one run. `fault` is a mistake of devhost's or a backend's own, for the host to raise."""

    def __init__(
        self,
        model: ModelBackend,
        tools: Sequence[Tool],
        files: ToolFileStore,
        limits: HostLimits,
        opaque_body: OpaqueBodyPolicy,
    ) -> None:
        self.fault: Exception | None = None
        self.asked: Counter[str] = Counter()
        self._model = model
        self._tools = {(tool.provider, tool.name): tool for tool in tools}
        self._files = files
        self._limits = limits
        self._opaque_body = opaque_body

    def answer(self, session: Session, invoked: Invoked) -> None:
        self.asked[invoked.kind] += 1
        reply = Reply(session, invoked.request_id, self._limits.call_seconds)
        permission = session.declaration.manifest.resource.permission
        threading.Thread(target=self._serve, args=(invoked, permission, reply), daemon=True).start()

    def _serve(self, invoked: Invoked, permission: Permission, reply: Reply) -> None:
        # A plugin that has gone needs no answer, and its run already knows.
        with contextlib.suppress(PluginLostError), reply:
            try:
                for data in self._responses(invoked, permission):
                    if not reply.respond(data):
                        break
            except ModelCallError as error:
                reply.fail(error.as_dify_words_it())
            except InvocationError as error:
                worded = ModelCallError(error.error_type, error.message)
                reply.fail(worded.as_dify_words_it())
            except HostError as error:
                reply.fail(str(error))
            except Exception as error:  # noqa: BLE001 - kept for the host to raise; the plugin must not wait for ever
                self.fault = error
                reply.fail(f"devhost failed: {type(error).__name__}")

    def _responses(self, invoked: Invoked, permission: Permission) -> Iterator[JsonObject]:
        match invoked.kind:
            case "llm":
                _require(permission.allows_models, "llm")
                return self._call_model(invoked.request)
            case "tool":
                _require(permission.allows_tools, "tool")
                return self._call_tool(invoked.request)
            case kind:
                raise RefusedCallError(
                    f"devhost does not answer backwards calls of type {kind!r}; it answers llm and tool"
                )

    def _call_model(self, request: JsonObject) -> Iterator[JsonObject]:
        for chunk in self._model.invoke(decode_model_request(request, self._opaque_body)):
            if self._opaque_body == "drop":
                chunk["delta"]["message"]["opaque_body"] = None
            yield chunk

    def _call_tool(self, request: JsonObject) -> Iterator[JsonObject]:
        call = decode_tool_request(request)
        tool = self._tools.get((call.provider, call.tool))
        if tool is None:
            there_are = ", ".join(sorted(f"{provider}/{name}" for provider, name in self._tools)) or "none"
            raise RefusedCallError(f"tool {call.tool} of provider {call.provider} not found; there are: {there_are}")
        return call_tool(tool, call.tool_parameters, self.answer, self._files, self._limits)


def _require(allowed: bool, access: str) -> None:  # noqa: FBT001 - reads as "require permission, for access"
    if not allowed:
        raise RefusedCallError(f"permission denied, you need to enable {access} access in plugin manifest")
