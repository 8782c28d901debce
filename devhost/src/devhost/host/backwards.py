"""Answers a plugin's backwards calls: permissions, the daemon's words, storage, the reply's order."""

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
"""By kind of call, what the manifest must permit (see `Permission.allows`)."""
RECORDED_WORDS = {"llm": ("invoke llm model", "read llm model"), "tool": ("invoke tool", "read tool response")}
"""For a call that does not begin, and for one that breaks off."""
PLACES_OF_AN_ANSWER = 8
"""For each place of a run."""


def worded(kind: str, error: failures.ApiCallError) -> str:
    """In the daemon's words; for kinds that were not recorded, in words like these."""
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
    """RefusedCallError for a kind that does not exist, and for one that the manifest does not permit."""
    access = ACCESS.get(kind)
    if access is None:
        raise RefusedCallError(f"unsupported invoke type: {kind}")
    if not permission.allows(access):
        named = access.replace("_", "-")
        raise RefusedCallError(f"permission denied, you need to enable {named} access in plugin manifest")


# What plugins keep in storage, by plugin and key. With a file, what is kept outlives the command; the file is JSON,
# with the values in hexadecimal as they cross the wire.

LONGEST_KEY = 256
MOST_BYTES = 1024 * 1024 * 1024
"""The most bytes of the file: what five plugins may keep, with two digits a byte."""
STORAGE_BEGINS = b'{\n  "storage": "devhost"'


class _Stored(BaseModel):
    storage: Literal["devhost"]
    plugins: dict[str, dict[str, str]]


class PluginStorage:
    """Thread-safe."""

    def __init__(self, file: Path | None = None) -> None:
        """ParameterError if the file exists and is not devhost's own."""
        self._file = file
        self._using = threading.Lock()
        with about("storage"):
            if file is None:
                self._stored = _Stored(storage="devhost", plugins={})
            else:
                self._stored = _read(file)

    def answer(self, manifest: Manifest, request: JsonObject, limits: HostLimits) -> JsonObject:
        asked = structs.to_the_api(structs.STORAGE, request)
        plugin = f"{manifest.author}/{manifest.name}"
        key = str(asked["key"])
        with self._using:
            kept = self._stored.plugins.setdefault(plugin, {})
            match asked["opt"]:
                case "get":
                    if key not in kept:
                        path = f"/app/storage/persistence/devhost/{plugin}/{key}"  # where the daemon would keep it
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
    """RefusedCallError for a value that the daemon does not keep."""
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


# The answer to one backwards call: responses, an error if it fails, and an end, each written once and in order. The
# host's time limit ends it, and a run that is over gets nothing more.


class Reply:
    def __init__(  # noqa: PLR0913, PLR0917 - what an answer needs to know
        self,
        session: Session,
        request_id: str,
        seconds: float,
        cut_words: str,
        places: QueuePlaces,
        before_the_cut: Callable[[], None] = lambda: None,
    ) -> None:
        """`cut_words`: the error that the plugin reads when the time is up. `places`: for parts that wait."""
        self._session = session
        self._request_id = request_id
        self._ended = False
        # Re-entrant: an answer is ended alone, and as the last step of other methods.
        self._sending = threading.RLock()
        self._cut_words = cut_words
        self._before_the_cut = before_the_cut
        self._was_cut = threading.Event()
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True
        # With a limit, what waits is written by a thread of its own.
        self._places = places
        self._writer = ThreadPoolExecutor(1) if places.count else None
        self.error = ""
        """What the plugin reads in place of the rest of the answer."""

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self.finish()
        if self._writer is not None:
            self._writer.shutdown(wait=False)

    def respond(self, data: JsonObject) -> bool:
        """False if the answer or the session has ended: nothing more is sent."""
        with self._sending:
            self._ended = self._ended or self._session.is_left
            if not self._ended and self._places.take_place("a part of an answer"):
                self._say("response", "stream", data)
            return not self._ended

    def wait_for_the_cut(self) -> None:
        self._was_cut.wait()

    def finish(self, error: str | None = None) -> None:
        """With an error, or after the last response; later calls change nothing."""
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
        """The daemon closes the response body when the time is up, even in the middle of a stream."""
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


# Answers a plugin's backwards calls, each in a thread of its own. A call goes through the daemon's decoding to what
# stands for Dify's API here, and its answer comes back through it.


@dataclass(eq=False)
class BackwardsCalls:
    """The calls of one run."""

    model: ModelBackend
    tools: Sequence[Tool]
    server: FileServer = field(kw_only=True)
    """Keeps the files of tools."""
    storage: PluginStorage = field(kw_only=True)
    limits: HostLimits = field(kw_only=True)
    opaque_body: OpaqueBodyPolicy = field(default="drop", kw_only=True)
    api_fails: Mapping[str, failures.ApiFault] = field(default_factory=dict, kw_only=True)
    """By tool, what Dify's API does when it is called."""
    failed: Callable[[str, InvocationError], None] | None = field(default=None, kw_only=True)
    """Is told of each error that a tool raised."""
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
        """The calls so far."""
        called = dict(self._tools_called)
        tools = {id_: replace(call, error=error_line(self._replies[id_].error)) for id_, call in called.items()}
        return CallsMade(dict(self._counts), spent(self._usages.values()), tools)

    def answer(self, session: Session, invoked: Invoked) -> None:
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
        """Tells the person who watches. The plugin reads the daemon's words, which say nothing of it."""
        sentence = f"the limit call-seconds has passed, {self.limits.call_seconds:g} s, for {awaited(invoked)}"
        tool = self._tools.get((str(invoked.request.get("provider")), str(invoked.request.get("tool"))))
        if isinstance(tool, PluginTool) and (where := tool.where(invoked.request_id)):
            sentence = f"{sentence}: {where}"
        session.tell(sentence)

    def _serve(self, session: Session, invoked: Invoked, reply: Reply) -> None:
        # A plugin that has gone needs no answer, and its run already knows.
        with contextlib.suppress(PluginLostError), reply:
            try:
                check_access(invoked.kind, session.declaration.manifest.permission)
                self._pass_on(session, invoked, reply)
            except HostError as error:  # the daemon's own refusal
                reply.finish(str(error))
            except Exception as error:  # noqa: BLE001 - kept for the host to raise; the plugin must not wait for ever
                self.fault = error
                reply.finish(f"devhost failed: {type(error).__name__}")

    def _pass_on(self, session: Session, invoked: Invoked, reply: Reply) -> None:
        try:
            for said in self._responses(session, invoked):
                passed = self._decoded(said, invoked.kind)
                if invoked.kind == "llm" and passed is not None and (usage := passed["delta"].get("usage")):
                    self._usages[invoked.request_id] = usage  # of a call, the last one counts
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
        """One item of the answer as the daemon passes it on; None if the daemon drops it."""
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
