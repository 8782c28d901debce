"""Answers a plugin's backwards calls: checks permissions, keeps storage, and formats errors as the daemon does."""

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ValidationError

from devhost.errors import (
    HostError,
    InvocationError,
    NodeParameterError,
    ParameterError,
    PluginLostError,
    PriceLimitError,
    RefusedCallError,
    about,
    naming,
)
from devhost.files import FileServer
from devhost.golang import remarshalled
from devhost.limits import HostLimits
from devhost.models.backend import ModelBackend, ModelCallError, OpaqueBodyPolicy, model_answer, summary
from devhost.models.spending import SpentError
from devhost.node.messages import FileMessages
from devhost.node.outputs.outputs import Finding, spent
from devhost.node.outputs.run import CallsMade, SentToolCall, error_line
from devhost.plugin.declaration import Manifest, Permission
from devhost.process.session import QueuePlaces, Session, awaited
from devhost.protocol import failures, structs
from devhost.protocol.wire import Invoked, JsonObject
from devhost.text import describe, read_file, write_file
from devhost.tools.tool import PluginTool, Tool, call_tool

ACCESS: Mapping[str, str] = {
    **{kind: kind for kind in ("llm", "text_embedding", "rerank", "tts", "speech2text", "moderation")},
    **{kind: kind for kind in ("tool", "app", "storage")},
    "llm_structured_output": "llm",
    "system_summary": "llm",
    "fetch_app": "app",
    "upload_file": "",
}
"""What the manifest must permit for each kind of call (see `Permission.allows`)."""
RECORDED_WORDS = {"llm": ("invoke llm model", "read llm model"), "tool": ("invoke tool", "read tool response")}
"""The daemon's words for a call that does not begin, and for one that breaks off."""
PLACES_OF_AN_ANSWER = 8
"""The length of an answer's queue, as a multiple of the length of a run's queue."""


def worded(kind: str, error: failures.ApiCallError) -> str:
    """Formats an error as the daemon does. Kinds of calls that were not recorded get similar messages."""
    name = kind.replace("_", " ")
    path = kind.replace("_", "-")
    starting, reading = RECORDED_WORDS.get(kind, (f"invoke {name}", f"read {name}"))
    match error.stage:
        case "unanswered":
            return f'{starting} failed: Post "{failures.API}/{path}": {error.words}'
        case "refused":
            return f"{starting} failed: {error.words}"
        case "broken":
            return f"{reading} failed: {error.words}"


def check_access(kind: str, permission: Permission) -> None:
    """Raises RefusedCallError for a kind of call that does not exist or that the manifest does not permit."""
    access = ACCESS.get(kind)
    if access is None:
        raise RefusedCallError(f"unsupported invoke type: {kind}")
    if not permission.allows(access):
        named = access.replace("_", "-")
        raise RefusedCallError(f"permission denied, you need to enable {named} access in plugin manifest")


# The storage of plugins contains values by plugin and key. If the storage has a file, the values are kept after the
# command ends. The file is JSON, with the values in hexadecimal as on the wire.

LONGEST_KEY = 256
MOST_BYTES = 1024 * 1024 * 1024
"""The maximum size of the file in bytes: enough for five plugins, with two hexadecimal digits for each byte."""
STORAGE_BEGINS = b'{\n  "storage": "devhost"'


class _Stored(BaseModel):
    storage: Literal["devhost"]
    plugins: dict[str, dict[str, str]]


class PluginStorage:
    """The thread-safe storage of all plugins."""

    def __init__(self, file: Path | None = None) -> None:
        """Raises ParameterError if the file cannot be used or is not a storage of devhost."""
        self._file = file
        self._using = threading.Lock()
        with about("storage"):
            if file is None:
                self._stored = _Stored(storage="devhost", plugins={})
            else:
                self._stored = _read(file)

    def answer(self, manifest: Manifest, request: JsonObject, limits: HostLimits) -> JsonObject:
        """Handles a request to get, set, delete or find a value. Raises RefusedCallError with the daemon's message."""
        asked = structs.to_the_api(structs.STORAGE, request)
        plugin = f"{manifest.author}/{manifest.name}"
        key = str(asked["key"])
        with self._using:
            kept = self._stored.plugins.setdefault(plugin, {})
            match asked["opt"]:
                case "get":
                    if key not in kept:
                        path = f"/app/storage/persistence/devhost/{plugin}/{key}"  # where the daemon keeps a value
                        raise RefusedCallError(f"load data failed: open {path}: no such file or directory")
                    return {"data": kept[key]}
                case "exist":
                    return {"data": key in kept}
                case "del":
                    kept.pop(key, None)
                case _:
                    declared = manifest.permission.storage.size
                    if declared is None:
                        most = limits.storage_bytes
                    else:
                        most = min(declared, limits.storage_bytes)
                    _check(kept, key, str(asked["value"]), most)
                    kept[key] = str(asked["value"])
            self._write()
        return {"data": "ok"}

    def _write(self) -> None:
        if self._file is not None:
            try:
                write_file(self._file, self._stored.model_dump_json(indent=2).encode())
            except OSError as error:
                raise RefusedCallError(f"save data failed: {error}") from error


def _check(kept: Mapping[str, str], key: str, value: str, most: int) -> None:
    """Raises RefusedCallError for a value that the daemon would not store."""
    try:
        size = len(bytes.fromhex(value))
    except ValueError as error:
        raise RefusedCallError(f"decode data failed: {error}") from None
    if len(key.encode()) > LONGEST_KEY:
        raise RefusedCallError(f"save data failed: key length must be less than {LONGEST_KEY} characters")
    others = sum(len(text) // 2 for name, text in kept.items() if name != key)
    if size + others > most:
        raise RefusedCallError("save data failed: allocated size is greater than max storage size")


def _read(file: Path) -> _Stored:
    try:
        content = read_file(file, MOST_BYTES)
    except FileNotFoundError:
        if not file.parent.is_dir():
            raise ParameterError(f"the storage {file} cannot be written: there is no folder {file.parent}") from None
        return _Stored(storage="devhost", plugins={})
    except OSError as error:
        raise ParameterError(f"the storage {file} cannot be read: {error.strerror}") from error
    try:
        return _Stored.model_validate_json(content)
    except ValidationError as error:
        if content.startswith(STORAGE_BEGINS):
            sentence = f"the storage {file} is damaged: {describe(error)}"
            raise ParameterError(f"{sentence}. Delete it, or name another file with --storage") from error
        raise ParameterError(
            f"{file} exists and is not a storage of devhost: name another file with --storage"
        ) from error


# The answer to one backwards call consists of responses, an error if the call fails, and an end. Each part is written
# once and in order. The host's time limit ends the answer, and nothing more is sent after the run is over.


class Reply:
    """The answer to one backwards call."""

    def __init__(  # noqa: PLR0913, PLR0917 - an answer needs all of these
        self,
        session: Session,
        request_id: str,
        seconds: float,
        cut_words: str,
        places: QueuePlaces,
        before_the_cut: Callable[[], None] = lambda: None,
    ) -> None:
        """`cut_words` is the error that the plugin gets when the time is up. `places` limits the waiting parts."""
        self._session = session
        self._request_id = request_id
        self._ended = False
        # The lock is re-entrant, because an answer is ended by itself or as the last step of another method.
        self._sending = threading.RLock()
        self._cut_words = cut_words
        self._before_the_cut = before_the_cut
        self._was_cut = threading.Event()
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True
        # If the number of waiting parts is limited, a separate thread writes them.
        self._places = places
        self._writer = ThreadPoolExecutor(1) if places.count else None
        self.error = ""
        """The error that the plugin gets in place of the rest of the answer."""

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self.finish()
        if self._writer is not None:
            self._writer.shutdown(wait=False)

    def respond(self, data: JsonObject) -> bool:
        """Sends a part of the answer. Returns False and sends nothing if the answer or the session has ended."""
        with self._sending:
            self._ended = self._ended or self._session.is_left
            if not self._ended and self._places.take_place("a part of an answer"):
                self._say("response", "stream", data)
            return not self._ended

    def wait_for_the_cut(self) -> None:
        self._was_cut.wait()

    def finish(self, error: str | None = None) -> None:
        """Ends the answer, with an error or after the last response. Later calls have no effect."""
        with self._sending:
            if self._ended:
                return
            self._ended = True
            if not self._session.is_left:
                if error is not None:
                    self.error = error
                    self._say("error", error)
                self._say("end")

    def _cut(self) -> None:
        """Ends the answer when the time is up. Like the daemon, this closes the response even in mid-stream."""
        self._before_the_cut()
        with contextlib.suppress(PluginLostError):
            self.finish(self._cut_words)
        self._was_cut.set()

    def _say(self, event: str, message: str = "", data: JsonObject | None = None) -> None:
        if self._writer is None:
            self._session.answer(self._request_id, event, message=message, data=data)
        else:
            self._writer.submit(self._write, event, message, data)

    def _write(self, event: str, message: str, data: JsonObject | None) -> None:
        if event == "response":
            self._places.leave()
        if not self._session.is_left:
            self._session.answer(self._request_id, event, message=message, data=data)


# Answers a plugin's backwards calls, each in its own thread. Each call is decoded as in the daemon before devhost's
# replacement for Dify's API handles the call, and so is each answer on the way back.


@dataclass(eq=False)
class BackwardsCalls:
    """Answers the backwards calls of one run."""

    model: ModelBackend
    tools: Sequence[Tool]
    server: FileServer = field(kw_only=True)
    """The server that keeps the files of tools."""
    storage: PluginStorage = field(kw_only=True)
    limits: HostLimits = field(kw_only=True)
    opaque_body: OpaqueBodyPolicy = field(default="drop", kw_only=True)
    api_fails: Mapping[str, failures.ApiFault] = field(default_factory=dict, kw_only=True)
    """The simulated failures of Dify's API, by the name of the tool that is called."""
    failed: Callable[[str, InvocationError], None] | None = field(default=None, kw_only=True)
    """A callback for each error that a tool raises."""
    findings: list[Finding] = field(default_factory=list, init=False)
    fault: Exception | None = field(default=None, init=False)
    """A programming error in devhost or in a backend, which the host raises."""

    def __post_init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._tools_called: dict[str, SentToolCall] = {}
        self._usages: dict[str, JsonObject] = {}
        self._replies: dict[str, Reply] = {}
        self._tools = {(tool.provider, tool.name): tool for tool in self.tools}

    @property
    def made(self) -> CallsMade:
        """The calls that have been made so far."""
        called = dict(self._tools_called)
        tools = {id_: replace(call, error=error_line(self._replies[id_].error)) for id_, call in called.items()}
        return CallsMade(dict(self._counts), spent(self._usages.values()), tools)

    def answer(self, session: Session, invoked: Invoked) -> None:
        """Starts a thread that answers a call."""
        self._counts[invoked.kind] += 1
        cut_words = worded(invoked.kind, failures.ApiCallError("broken", failures.CLOSED))
        places = QueuePlaces(self.limits.burst_messages * PLACES_OF_AN_ANSWER, partial(self.found, "answer-lost"))
        tell = partial(self._tell_of_the_cut, session, invoked)
        reply = Reply(session, invoked.request_id, self.limits.call_seconds, cut_words, places, tell)
        if invoked.kind == "tool":
            self._replies[invoked.request_id] = reply
            self._tools_called[invoked.request_id] = SentToolCall(str(invoked.request.get("tool")), {})
        threading.Thread(target=self._serve, args=(session, invoked, reply), daemon=True).start()

    def _tell_of_the_cut(self, session: Session, invoked: Invoked) -> None:
        """Tells the user which limit was reached. The plugin gets the daemon's message, which does not mention it."""
        sentence = f"the limit call-seconds has passed, {self.limits.call_seconds:g} s, for {awaited(invoked)}"
        tool = self._tools.get((str(invoked.request.get("provider")), str(invoked.request.get("tool"))))
        if isinstance(tool, PluginTool) and (where := tool.where(invoked.request_id)):
            sentence = f"{sentence}: {where}"
        session.tell(sentence)

    def _serve(self, session: Session, invoked: Invoked, reply: Reply) -> None:
        # A plugin that has ended needs no answer, and its run already knows.
        with contextlib.suppress(PluginLostError), reply:
            try:
                check_access(invoked.kind, session.declaration.manifest.permission)
                self._pass_on(session, invoked, reply)
            except HostError as error:  # the daemon's own refusal
                reply.finish(str(error))
            except Exception as error:  # noqa: BLE001 - kept for the host to raise; the plugin must not wait forever
                self.fault = error
                reply.finish(f"devhost failed: {type(error).__name__}")

    def _pass_on(self, session: Session, invoked: Invoked, reply: Reply) -> None:
        try:
            for said in self._responses(session, invoked):
                passed = self._decoded(said, invoked.kind)
                if invoked.kind == "llm" and passed is not None and (usage := passed["delta"].get("usage")):
                    self._usages[invoked.request_id] = usage  # only the last usage of a call counts
                if passed is not None and not reply.respond(passed):
                    return
        except (RefusedCallError, PluginLostError):
            raise
        except failures.ApiStalledError:
            reply.wait_for_the_cut()
        except (HostError, ModelCallError) as error:
            if isinstance(error, SpentError):
                session.fail(PriceLimitError(error.message))
            reply.finish(worded(invoked.kind, _as_the_api_tells(error)))

    def _decoded(self, said: JsonObject, kind: str) -> JsonObject | None:
        """Returns a part of an answer as the daemon passes it on, or None if the daemon drops it."""
        size = len(json.dumps({"data": said, "error": ""}, separators=(",", ":")))
        if size > failures.LONGEST_CHUNK:
            raise failures.ApiCallError("broken", f"data length is too long: {size}")
        try:
            return _DECODED.get(kind, remarshalled)(said)
        except structs.GoDecodeError as error:
            self.found("answer-dropped", f"the daemon drops a part of an answer for {kind}: {error}")
            return None

    def _responses(self, session: Session, invoked: Invoked) -> Iterator[JsonObject]:
        request = invoked.request
        match invoked.kind:
            case "llm":
                return model_answer(self.model, structs.LLM, request, self.opaque_body)
            case "llm_structured_output":
                return model_answer(self.model, structs.STRUCTURED, request, self.opaque_body)
            case "tool":
                return self._call_tool(request, invoked.request_id)
            case "system_summary":
                asked = structs.to_the_api(structs.SUMMARY, request)
                return iter([{"summary": summary(self.model, asked["text"], asked["instruction"])}])
            case "storage":
                return iter([self.storage.answer(session.declaration.manifest, request, self.limits)])
            case "upload_file":
                asked = structs.to_the_api(structs.UPLOAD, request)
                return iter([{"url": self.server.upload_url(asked["filename"], asked["mimetype"])}])
            case kind:
                raise failures.ApiCallError.invalid(f"devhost does not answer calls for {kind}")

    def _call_tool(self, request: JsonObject, request_id: str) -> Iterator[JsonObject]:
        asked = structs.to_the_api(structs.TOOL, request)
        if asked["tool_parameters"] is None:
            raise failures.ApiCallError.invalid_payload("tool_parameters: Input should be keys with values")
        self._tools_called[request_id] = SentToolCall(asked["tool"], asked["tool_parameters"])
        fault = self.api_fails.get(asked["tool"])
        answer = self._asked_tool(asked, request_id)
        if fault is None:
            return answer
        return fault.through(answer)

    def _asked_tool(self, asked: JsonObject, request_id: str) -> Iterator[JsonObject]:
        provider = asked["provider"]
        name = asked["tool"]
        tool = self._tools.get((provider, name))
        if tool is None:
            there_are = naming(sorted(map("/".join, self._tools)))
            raise failures.ApiCallError.invalid(f"tool {name} of provider {provider} not found; {there_are}")

        def found(rule: str, sentence: str) -> None:
            self.found(rule, f"tool {name}: {sentence}")

        files = FileMessages(self.server.store, self.limits, found)
        try:
            yield from call_tool(tool, asked["tool_parameters"], files, self.answer, request_id)
        except InvocationError as error:
            if self.failed is not None:
                self.failed(name, error)
            raise

    def found(self, rule: str, sentence: str) -> None:
        self.findings.append(Finding(rule, sentence))


_DECODED: Mapping[str, Callable[[JsonObject], JsonObject]] = {
    "llm": partial(structs.from_json, structs.LLM_CHUNK),
    "llm_structured_output": partial(structs.from_json, structs.STRUCTURED_CHUNK),
    "tool": partial(structs.from_json, structs.TOOL_MESSAGE),
}


def _as_the_api_tells(error: HostError | ModelCallError) -> failures.ApiCallError:
    match error:
        case failures.ApiCallError():
            return error
        case ModelCallError():
            return failures.ApiCallError.stream_error(error.as_dify_words_it())
        case InvocationError():
            return failures.ApiCallError.stream_error(failures.plugin_failure(error))
        case NodeParameterError():
            return failures.ApiCallError.stream_error(error.words)
        case _:
            return failures.ApiCallError.stream_error(str(error))
