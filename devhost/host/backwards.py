"""Answers a plugin's backwards calls, each in a thread of its own.

In: an `Invoked` of a session. Out: response events, an error event if the call fails, and an end, on that session. A
call goes through the daemon's decoding to what stands for Dify's API here, and its answer comes back through it.
"""

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from devhost.errors import HostError, InvocationError, PluginLostError, RefusedCallError
from devhost.files.server import FileServer
from devhost.host.invocations import Invocation, find_invocation
from devhost.host.reply import Reply
from devhost.host.storage import PluginStorage
from devhost.limits import HostLimits
from devhost.models.answers import model_answer, structured_answer
from devhost.models.backend import ModelBackend, ModelCallError
from devhost.models.request import OpaqueBodyPolicy
from devhost.models.summary import summary
from devhost.node.outputs.outputs import Finding
from devhost.node.outputs.run import CallsMade
from devhost.node.outputs.usage import spent
from devhost.process.session import Session
from devhost.protocol import answers, requests
from devhost.protocol.failures import LONGEST_CHUNK, ApiCallError, ApiFault, ApiStalledError
from devhost.protocol.golang.decode import GoDecodeError
from devhost.protocol.golang.values import remarshalled
from devhost.protocol.wire import Invoked, JsonObject
from devhost.tools.request import ToolRequest, decode_tool_request
from devhost.tools.tool import Surroundings, Tool, call_tool


class BackwardsCalls:
    """The calls of one run. `fault` is a programming error in devhost or in a backend, which the host raises."""

    def __init__(  # noqa: PLR0913 - what a run's calls can reach
        self,
        model: ModelBackend,
        tools: Sequence[Tool],
        *,
        server: FileServer,
        storage: PluginStorage,
        limits: HostLimits,
        opaque_body: OpaqueBodyPolicy,
        api_fails: Mapping[str, ApiFault] | None = None,
        failed: Callable[[str, InvocationError], None] | None = None,
    ) -> None:
        """`server` keeps the files of tools. `api_fails`: by tool, what Dify's API does when it is called.

        `failed` is told of each error that a tool raised.
        """
        self.fault: Exception | None = None
        self._counts: Counter[str] = Counter()
        self._sent: dict[str, JsonObject] = {}
        self._tools_called: dict[str, str] = {}
        self._usages: dict[str, JsonObject] = {}
        self.findings: list[Finding] = []
        self._model = model
        self._tools = {(tool.provider, tool.name): tool for tool in tools}
        self._server = server
        self._storage = storage
        self._limits = limits
        self._opaque_body: OpaqueBodyPolicy = opaque_body
        self._api_fails = api_fails or {}
        self._failed = failed

    @property
    def made(self) -> CallsMade:
        """The calls so far."""
        return CallsMade(dict(self._counts), dict(self._sent), spent(self._usages.values()), dict(self._tools_called))

    def answer(self, session: Session, invoked: Invoked) -> None:
        self._counts[invoked.kind] += 1
        if invoked.kind == "tool":
            self._tools_called[invoked.request_id] = str(invoked.request.get("tool"))
        threading.Thread(target=self._serve, args=(session, invoked), daemon=True).start()

    def _serve(self, session: Session, invoked: Invoked) -> None:
        permission = session.declaration.manifest.resource.permission
        reply = Reply(session, invoked.request_id, self._limits)
        # A plugin that has gone needs no answer, and its run already knows.
        with contextlib.suppress(PluginLostError), reply:
            try:
                invocation = find_invocation(invoked.kind, permission)
                reply.cut_with(invocation.stalled)
                self._pass_on(session, invoked, invocation, reply)
            except HostError as error:  # the daemon's own refusal
                reply.fail(str(error))
            except Exception as error:  # noqa: BLE001 - kept for the host to raise; the plugin must not wait for ever
                self.fault = error
                reply.fail(f"devhost failed: {type(error).__name__}")
        self.findings += [Finding("answer-lost", f"of a call for {invoked.kind}, {lost}") for lost in reply.losses]

    def _pass_on(self, session: Session, invoked: Invoked, invocation: Invocation, reply: Reply) -> None:
        try:
            for said in self._responses(session, invoked, invocation):
                passed = self._decoded(said, invoked.kind)
                self._note_usage(invoked, passed)
                if passed is not None and not reply.respond(passed):
                    return
        except (RefusedCallError, PluginLostError):
            raise
        except ApiStalledError:
            reply.wait_for_the_cut()
        except (HostError, ModelCallError) as error:
            reply.fail(invocation.failed(_as_the_api_tells(error)))

    def _note_usage(self, invoked: Invoked, passed: JsonObject | None) -> None:
        """Of a call, the last usage counts."""
        if invoked.kind == "llm" and passed is not None and (usage := passed["delta"].get("usage")):
            self._usages[invoked.request_id] = usage

    def _decoded(self, said: JsonObject, kind: str) -> JsonObject | None:
        """One item of the answer as the daemon passes it on; None if the daemon drops it."""
        size = len(json.dumps({"data": said, "error": ""}, separators=(",", ":")))
        if size > LONGEST_CHUNK:
            raise ApiCallError("broken", f"data length is too long: {size}")
        try:
            return _DECODED.get(kind, remarshalled)(said)
        except GoDecodeError as error:
            self.findings.append(Finding("answer-dropped", f"the daemon drops a part of an answer for {kind}: {error}"))
            return None

    def _responses(self, session: Session, invoked: Invoked, invocation: Invocation) -> Iterator[JsonObject]:
        request = invoked.request
        match invoked.kind:
            case "llm":
                return model_answer(self._model, requests.LLM, request, self._opaque_body)
            case "llm_structured_output":
                return structured_answer(self._model, request, self._opaque_body)
            case "tool":
                return self._call_tool(request, invoked.request_id)
            case "system_summary":
                asked = requests.to_the_api(requests.SUMMARY, request)
                return iter([{"summary": summary(self._model, asked["text"], asked["instruction"])}])
            case "storage":
                return iter([self._storage.answer(session.declaration.manifest, request, self._limits)])
            case "upload_file":
                asked = requests.to_the_api(requests.UPLOAD, request)
                return iter([{"url": self._server.upload_url(asked["filename"], asked["mimetype"])}])
            case "app" | "fetch_app":
                raise ApiCallError.invalid("app not found")
            case kind:
                what = kind.replace("_", " ")
                raise RefusedCallError(invocation.failed(ApiCallError.http(501, f"devhost does not offer {what}")))

    def _call_tool(self, request: JsonObject, request_id: str) -> Iterator[JsonObject]:
        call = decode_tool_request(request)
        self._sent[request_id] = call.tool_parameters
        fault = self._api_fails.get(call.tool)
        answer = self._asked_tool(call, request_id)
        return answer if fault is None else fault.through(answer)

    def _asked_tool(self, call: ToolRequest, request_id: str) -> Iterator[JsonObject]:
        tool = self._tools.get((call.provider, call.tool))
        if tool is None:
            there_are = ", ".join(sorted(f"{provider}/{name}" for provider, name in self._tools)) or "none"
            said = f"tool {call.tool} of provider {call.provider} not found; there are: {there_are}"
            raise ApiCallError.invalid(said)
        surroundings = Surroundings(self.answer, self._server.store, self._limits, partial(self._found, call.tool))
        try:
            yield from call_tool(tool, call.tool_parameters, surroundings, request_id)
        except InvocationError as error:
            if self._failed is not None:
                self._failed(call.tool, error)
            raise

    def _found(self, tool: str, rule: str, sentence: str) -> None:
        self.findings.append(Finding(rule, f"tool {tool}: {sentence}"))


_DECODED: Mapping[str, Callable[[JsonObject], JsonObject]] = {
    "llm": answers.llm_chunk,
    "llm_structured_output": answers.structured_chunk,
    "tool": answers.tool_message,
}


def _tool_error(error: InvocationError) -> str:
    """With the traceback, as Dify passes on an exception of a plugin."""
    said = {"args": error.details or {}, "error_type": error.error_type, "message": error.message}
    return f"req_id: 0123456789 PluginInvokeError: {json.dumps(said)}"


def _as_the_api_tells(error: HostError | ModelCallError) -> ApiCallError:
    match error:
        case ApiCallError():
            return error
        case ModelCallError():
            return ApiCallError.stream_error(error.as_dify_words_it())
        case InvocationError():
            return ApiCallError.stream_error(_tool_error(error))
        case _:
            return ApiCallError.stream_error(str(error))
