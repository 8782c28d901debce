"""Finds the position of a plugin's code from the stacks of its threads and greenlets.

`PROBE` runs in the plugin's process, in a separate thread that gevent does not patch, and answers over a socket.
"""

import contextlib
import json
import re
import signal
import socket
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

PROBE = """
def probe(asked):
    import _thread, faulthandler, gc, json, os, signal, sys
    def stack(frame):
        session, frames = "", []
        while frame is not None:
            frames.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
            if "session_id" in frame.f_code.co_varnames:
                session = str(frame.f_locals.get("session_id") or session)
            frame = frame.f_back
        return session, frames
    def stacks():
        mine = _thread.get_ident()
        frames = [frame for thread, frame in sys._current_frames().items() if thread != mine]
        if "greenlet" in sys.modules:
            kind = sys.modules["greenlet"].greenlet
            frames += [each.gr_frame for each in gc.get_objects() if issubclass(type(each), kind)]
        return [stack(frame) for frame in frames if frame is not None]
    def serve():
        while os.read(asked, 1):
            usual = sys.getswitchinterval()
            sys.setswitchinterval(60)
            try:
                answer = json.dumps(stacks())
            except Exception:
                answer = "[]"
            finally:
                sys.setswitchinterval(usual)
            answer = answer.encode() + b"\\n"
            while answer:
                answer = answer[os.write(asked, answer):]
    os.set_blocking(asked, True)
    faulthandler.register(signal.SIGUSR2, file=asked)
    _thread.start_new_thread(serve, ())
"""
"""Code that defines `probe`. No other thread runs while the stacks are collected.

The signal is for code that does not release the interpreter, such as a regular expression. The answer is then in the
format of Python's faulthandler.
"""
_DUMPED = re.compile(r'^  File "([^"]+)", line (\d+) in (.*)$', re.MULTILINE)
SECONDS = 2.0
"""Seconds that devhost waits for an answer, before the signal and again after it."""
PAUSE = 0.2
"""Seconds without further output after which a dump is considered complete."""
LONGEST_PIECE = 65_536
MOST_PLACES = 3


@dataclass(frozen=True)
class Stack:
    frames: Sequence[tuple[str, int, str]]
    """File, line and function of each frame, the innermost first."""
    session_id: str = ""
    """The session that the thread serves; empty for a thread that the plugin started, and in a faulthandler dump."""

    def place_in(self, directory: Path) -> str:
        """Returns the innermost line of the plugin's own code; empty if the stack has none."""
        for file, line, function in self.frames:
            path = Path(file)
            if path.is_relative_to(directory):
                inside = path.relative_to(directory)
                if not {"site-packages", ".venv"} & set(inside.parts):
                    return f"{inside}:{line}, in {function}"
        return ""


class StackProbe:
    """Queries the probe in the process of one plugin. The class is thread-safe."""

    def __init__(self) -> None:
        self._mine, self._its = socket.socketpair()
        self._asking = threading.Lock()

    @property
    def inherited(self) -> int:
        """The file descriptor of the socket that the plugin's process inherits."""
        return self._its.fileno()

    def has_started(self) -> None:
        """Closes devhost's copy of the inherited socket, because the process now has its own."""
        self._its.close()

    def close(self) -> None:
        self._its.close()
        self._mine.close()

    def where(self, process: "subprocess.Popen[bytes]", directory: Path, session_ids: Collection[str]) -> str:
        """Returns the position of the code that serves the sessions: `it is at tools/search.py:31, in _invoke`."""
        own = directory.resolve()
        with self._asking, contextlib.suppress(OSError, ValueError):
            self._mine.settimeout(0)
            with contextlib.suppress(BlockingIOError):
                while self._mine.recv(LONGEST_PIECE):  # discards an answer that came too late
                    pass
            self._mine.settimeout(SECONDS)
            self._mine.sendall(b"?")
            try:
                return _sentence(self._read_answer(), own, session_ids)
            except TimeoutError:
                process.send_signal(signal.SIGUSR2)
                if named := _places(_dumped(self._read_dump()), own):
                    return _at(named)
                # On a busy machine the code may have released the interpreter in the meantime.
                self._mine.settimeout(SECONDS)
                return _sentence(self._read_answer(), own, session_ids)
        return "its process does not say where it is"

    def _read_answer(self) -> list[Stack]:
        return [Stack(frames, session_id) for session_id, frames in json.loads(self._read_line())]

    def _read_line(self) -> bytes:
        answer = b""
        while not answer.endswith(b"\n"):
            piece = self._mine.recv(LONGEST_PIECE)
            if not piece:
                raise ConnectionError
            answer += piece
        return answer

    def _read_dump(self) -> str:
        """Reads a dump, which has no end marker."""
        dump = self._mine.recv(LONGEST_PIECE)
        self._mine.settimeout(PAUSE)
        with contextlib.suppress(TimeoutError):
            while piece := self._mine.recv(LONGEST_PIECE):
                dump += piece
        return dump.decode(errors="replace")


def _sentence(stacks: Sequence[Stack], own: Path, session_ids: Collection[str]) -> str:
    of_sessions = [stack for stack in stacks if stack.session_id in session_ids]
    if named := _places([*of_sessions, *(stack for stack in stacks if not stack.session_id)], own):
        return _at(named)
    if not of_sessions:
        return "no thread of its process serves the call"
    file, line, function = of_sessions[0].frames[0]
    return f"it is at {file}:{line}, in {function}"


def _at(places: Sequence[str]) -> str:
    return f"it is at {' and at '.join(places[:MOST_PLACES])}"


def _places(stacks: Iterable[Stack], own: Path) -> list[str]:
    """Returns the places without the module that started the plugin, which is in every stack."""
    places = dict.fromkeys(stack.place_in(own) for stack in stacks)
    return [place for place in places if place and not place.endswith(", in <module>")]


def _dumped(dump: str) -> Iterator[Stack]:
    for thread in dump.split("\n\n"):
        frames = [(file, int(line), function) for file, line, function in _DUMPED.findall(thread)]
        if frames:
            yield Stack(frames)
