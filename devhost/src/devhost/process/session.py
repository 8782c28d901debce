"""One invocation of a plugin, the ways to stop it from outside, and the watchers of its messages."""

import contextlib
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Self

from devhost.errors import InvocationError, PluginLostError, RunFailure, RunStoppedError, RunTimeoutError
from devhost.golang import remarshalled
from devhost.models.backend import ModelDescription
from devhost.node.outputs.run import Run, RunError
from devhost.plugin.declaration import PluginDeclaration
from devhost.protocol.wire import Ended, Failed, Invoked, JsonObject, Lost, SessionEvent, Streamed, answer_envelope


class QueuePlaces:
    """The places in the daemon's queue between a plugin and Dify's API. A message that finds no free place is lost.

    The class is thread-safe.
    """

    def __init__(self, count: int = 0, lost: Callable[[str], None] = lambda _: None) -> None:
        """Creates a queue with `count` places; 0 means no limit. `lost` is called with a sentence about each loss."""
        self.count = count
        self._lost = lost
        self._free = threading.Semaphore(count)

    def take_place(self, what: str) -> bool:
        """Takes a place for a message and returns whether there was one. Otherwise `what` is reported as lost."""
        if not self.count or self._free.acquire(blocking=False):
            return True
        self._lost(f"{what} was lost: {self.count:,} waited before it")
        return False

    def leave(self) -> None:
        self._free.release()


SILENCE_SECONDS = 10
"""Seconds without a message after which a line says what the run is waiting for."""


def _waiting(data: object) -> str:
    """Returns the type of a message that takes a place in the queue.

    The type is empty for a chunk of a file, because the daemon joins these chunks before the queue.
    """
    kind = "?"
    if isinstance(data, dict):
        kind = str(data.get("type"))
    if kind == "blob_chunk":
        return ""
    return kind


@dataclass(eq=False)
class Session:
    """One invocation of a plugin, as a context manager.

    Messages that arrive after the context has ended are dropped, as the daemon drops them.
    """

    id: str
    declaration: PluginDeclaration
    _send: Callable[[JsonObject], None]
    _forget: Callable[[str], None]
    _places: QueuePlaces = field(default_factory=QueuePlaces)
    """The places for messages that wait to be read. By default there is no limit."""
    tell: Callable[[str], None] = lambda _: None
    """Receives sentences of devhost about the session, for the person who watches the run."""
    where: Callable[[], str] = lambda: "it answers nothing"
    """Returns the position of the plugin's code, as a clause."""
    is_left: bool = field(default=False, init=False)
    _stopped: bool = field(default=False, init=False)
    _failure: RunFailure | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        # The queue class is looked up here, because an SDK that the host's process imports later patches it for
        # greenlets.
        self._events = queue.SimpleQueue[SessionEvent | None]()
        self._awaited: dict[str, str] = {}
        """What each open backwards call is waiting for, by the id of the call."""
        self._silent_until = 0.0
        """The time at which silence is reported; infinite once it was reported."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.is_left = True
        self._forget(self.id)

    def deliver(self, event: SessionEvent) -> None:
        waiting = ""
        if isinstance(event, Streamed):
            waiting = _waiting(event.data)
        if not waiting or self._places.take_place(f"a message ({waiting})"):
            self._events.put(event)

    def stop(self) -> None:
        """Ends `messages` at once, even if messages are waiting, and may be called in a signal handler."""
        self._stopped = True
        self._events.put(None)  # wakes `_next`

    def fail(self, failure: RunFailure) -> None:
        """Ends `messages` at once with this error."""
        self._failure = failure
        self._events.put(None)

    def answer(self, request_id: str, event: str, *, message: str = "", data: JsonObject | None = None) -> None:
        self._send(answer_envelope(self.id, request_id, event, message, data))
        self._silent_until = time.monotonic() + SILENCE_SECONDS
        if event == "end":
            self._awaited.pop(request_id, None)

    def messages(
        self,
        answer: "Answer",
        seconds: float,
        decoded: Callable[[Any], JsonObject] = remarshalled,
        *,
        limit: str = "run-seconds",
    ) -> Iterator[JsonObject]:
        """Yields the streamed messages as the daemon passes them on.

        Backwards calls are passed to `answer`, which must not block until they are done. A message that cannot be
        decoded ends the session with the daemon's error. `seconds` is the time limit and `limit` its name.
        """
        deadline = time.monotonic() + seconds
        while True:
            match self._next(deadline):
                case Streamed(data):
                    if _waiting(data):
                        self._places.leave()
                    yield decoded(data)
                case Invoked() as invoked:
                    self._awaited[invoked.request_id] = awaited(invoked)
                    answer(self, invoked)
                case Failed(error_type, message, args):
                    raise InvocationError(error_type, message, args)
                case Lost(reason):
                    raise PluginLostError(reason)
                case Ended():
                    return
                case None:
                    self.tell(f"the limit {limit} has passed, {seconds:g} s: {self._state()}")
                    raise RunTimeoutError(f"killed by timeout: the invocation took longer than {seconds:g} seconds")

    def _next(self, deadline: float) -> SessionEvent | None:
        """Returns the next event; `None` after the deadline, even if a plugin sends events without a pause."""
        self._silent_until = time.monotonic() + SILENCE_SECONDS
        while (now := time.monotonic()) < deadline:
            if now >= self._silent_until:
                self._silent_until = math.inf
                self.tell(f"no message for {SILENCE_SECONDS} s: {self._state()}")
                continue
            with contextlib.suppress(queue.Empty):
                event = self._events.get(timeout=min(deadline, self._silent_until) - now)
                if self._failure is not None:
                    raise self._failure
                if self._stopped or event is None:
                    raise RunStoppedError("the run was stopped")
                return event
        return None

    def _state(self) -> str:
        """Describes what the plugin is waiting for, or else the position of its code."""
        names = [*dict.fromkeys(tuple(self._awaited.values()))]
        if names:
            return f"it waits for {' and '.join(names)}"
        return self.where()


type Answer = Callable[[Session, Invoked], None]


def awaited(invoked: Invoked) -> str:
    """Returns a noun phrase for the answer that a backwards call is waiting for."""
    match invoked.kind:
        case "tool":
            return f"the tool {invoked.request.get('tool')}"
        case "llm" | "llm_structured_output" | "system_summary":
            return "the model"
        case kind:
            return f"the answer to its call for {kind}"


class Stop:
    """Ends the sessions of one turn from outside, as Dify's Stop does. It can also end plugins that are still starting.

    `request` takes no lock and may be called from a signal handler.
    """

    def __init__(self) -> None:
        self.requested = False
        self._ends: list[Callable[[], None]] = []

    def request(self) -> None:
        self.requested = True
        for end in tuple(self._ends):
            end()

    def ends(self, end: Callable[[], None]) -> None:
        """Registers a function to call when a stop is requested, or calls it at once after an earlier request.

        The function may be called twice and must not take a lock.
        """
        self._ends.append(end)
        if self.requested:
            end()


type Side = Literal["host", "plugin"]


class Watcher:
    """Receives events between the host and its plugins, from many threads. This base class ignores all events."""

    def crossed(self, side: Side, plugin: str, message: JsonObject) -> None:
        """Called for each message. `side` sent it; `plugin` is the plugin that sent or receives it."""

    def starting(self, plugins: Sequence[str]) -> None:
        """Called with the plugins that are still starting, again each time one has started."""

    def printed(self, plugin: str, text: str) -> None:
        """Called for each line that the plugin printed, with secrets masked."""

    def failed(self, tool: str, error: RunError) -> None:
        """Called when a tool call of a tool plugin has failed. The error has the traceback."""

    def serving(self, session_id: str, request_id: str) -> None:
        """Called when a session starts that answers another plugin's backwards call."""

    def ended(self, session_id: str, run: Run, model: ModelDescription) -> None:
        """Called when a session of the strategy has ended, with its run."""

    def notice(self, sentence: str) -> None:
        """Called before a run for notices about plugins, such as an omitted tool or a failed start."""

    def remark(self, sentence: str) -> None:
        """Called after a run with a sentence about the model. The sentence may be empty."""


class Watchers(Watcher):
    """Forwards every event to several watchers."""

    def __init__(self, *watchers: Watcher) -> None:
        self.watchers = watchers

        def tell(name: str, /, *told: object, **by_name: object) -> None:
            for watcher in self.watchers:
                getattr(watcher, name)(*told, **by_name)

        for name in vars(Watcher).keys() - vars(object).keys():
            if not name.startswith("__"):
                setattr(self, name, partial(tell, name))
