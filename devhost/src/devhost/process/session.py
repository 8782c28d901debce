"""One invocation of a plugin, how it is stopped from outside, and who may watch its messages."""

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
    """Places in the daemon's queue between a plugin and Dify's API. While all are taken, messages are lost.

    Thread-safe.
    """

    def __init__(self, count: int = 0, lost: Callable[[str], None] = lambda _: None) -> None:
        """With 0 nothing is lost. `lost` is told of each loss."""
        self.count = count
        self._lost = lost
        self._free = threading.Semaphore(count)

    def take_place(self, what: str) -> bool:
        """False if `what` is lost."""
        if not self.count or self._free.acquire(blocking=False):
            return True
        self._lost(f"{what} was lost: {self.count:,} waited before it")
        return False

    def leave(self) -> None:
        self._free.release()


SILENCE_SECONDS = 10
"""After so long without a message, a line says what is awaited."""


def _waiting(data: object) -> str:
    """The type of a message that waits; empty of a file's chunks, which the daemon puts together before."""
    kind = "?"
    if isinstance(data, dict):
        kind = str(data.get("type"))
    if kind == "blob_chunk":
        return ""
    return kind


@dataclass(eq=False)
class Session:
    """A context manager: once it is left, later messages for it are dropped, as the daemon drops them."""

    id: str
    declaration: PluginDeclaration
    _send: Callable[[JsonObject], None]
    _forget: Callable[[str], None]
    _places: QueuePlaces = field(default_factory=QueuePlaces)
    """For messages that wait to be read; without them none is lost."""
    tell: Callable[[str], None] = lambda _: None
    """Takes a sentence of devhost's own about the session, for the person who watches."""
    where: Callable[[], str] = lambda: "it answers nothing"
    """Says where the plugin's code is, as a clause."""
    is_left: bool = field(default=False, init=False)
    _stopped: bool = field(default=False, init=False)
    _failure: RunFailure | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        # Looked up now: an SDK that the host's process loads later turns threads into greenlets, and queues with them.
        self._events = queue.SimpleQueue[SessionEvent | None]()
        self._awaited: dict[str, str] = {}
        """What the plugin's backwards calls wait for, by their ids."""
        self._silent_until = 0.0
        """When the silence is told; infinite once it was."""

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
        """End `messages` at once, even if messages are waiting in it; safe in a signal handler."""
        self._stopped = True
        self._events.put(None)  # wakes `_next`

    def fail(self, failure: RunFailure) -> None:
        """End `messages` at once, with this error."""
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
        """The streamed messages, as the daemon passes them on.

        Backwards calls go to `answer`, which must not wait for them to be done. A message that does not decode ends
        the session with the daemon's error. `limit` is the name of the limit that `seconds` is.
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
        """The next event; None at the deadline, which also holds for a plugin that never pauses."""
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
        """What the plugin waits for, or where it is."""
        names = [*dict.fromkeys(tuple(self._awaited.values()))]
        if names:
            return f"it waits for {' and '.join(names)}"
        return self.where()


type Answer = Callable[[Session, Invoked], None]


def awaited(invoked: Invoked) -> str:
    """What answers a backwards call."""
    match invoked.kind:
        case "tool":
            return f"the tool {invoked.request.get('tool')}"
        case "llm" | "llm_structured_output" | "system_summary":
            return "the model"
        case kind:
            return f"the answer to its call for {kind}"


class Stop:
    """Ends what it was given, from outside: sessions of one turn, as Dify's Stop does, or starting plugins.

    `request` may be called from a signal handler: it takes no lock.
    """

    def __init__(self) -> None:
        self.requested = False
        self._ends: list[Callable[[], None]] = []

    def request(self) -> None:
        self.requested = True
        for end in tuple(self._ends):
            end()

    def ends(self, end: Callable[[], None]) -> None:
        """By calling it, which may be twice, and must take no lock: at the request; at once if it came before."""
        self._ends.append(end)
        if self.requested:
            end()


type Side = Literal["host", "plugin"]


class Watcher:
    """Is told of what happens between the host and its plugins, from many threads; this one does nothing."""

    def crossed(self, side: Side, plugin: str, message: JsonObject) -> None:
        """A message that `side` sent; `plugin` is the plugin that sent or gets it."""

    def starting(self, plugins: Sequence[str]) -> None:
        """The plugins that are starting; told again each time one is done."""

    def printed(self, plugin: str, text: str) -> None:
        """A line that the plugin printed, without secrets."""

    def failed(self, tool: str, error: RunError) -> None:
        """A call of a tool of a tool plugin failed; its error has the traceback."""

    def serving(self, session_id: str, request_id: str) -> None:
        """A session that begins now answers the backwards call of another plugin."""

    def ended(self, session_id: str, run: Run, model: ModelDescription) -> None:
        """A session of the strategy has ended with this run."""

    def notice(self, sentence: str) -> None:
        """About the plugins before a run: a tool that is left out, or why they did not start."""

    def remark(self, sentence: str) -> None:
        """A sentence about the model after a run; often empty."""


class Watchers(Watcher):
    """Tells each of several."""

    def __init__(self, *watchers: Watcher) -> None:
        self.watchers = watchers

        def tell(name: str, /, *told: object, **by_name: object) -> None:
            for watcher in self.watchers:
                getattr(watcher, name)(*told, **by_name)

        for name in vars(Watcher).keys() - vars(object).keys():
            if not name.startswith("__"):
                setattr(self, name, partial(tell, name))
