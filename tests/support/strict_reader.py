"""Reads every request for a model call that a test sends, and fails the test when a provider would refuse one.

In: the requests of scripted runs in this process (`tests.support.host`) and those that devhost answers. Out: an
AssertionError with the provider, the rule, the place in the request and the value there.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from devhost.evaluation import runs
from devhost.host import backwards
from devhost.models.backend import ModelBackend, OpaqueBodyPolicy, model_answer
from devhost.protocol import structs
from tests.support.provider_rules import BrokenRule, broken_rules

type Json = dict[str, Any]
type Model = Callable[[Json], Iterable[Json]]

MOST_SHOWN = 20
"""Broken rules in one message."""


class StrictReader:
    """Keeps the broken rules of the requests that it has read, and the call ids that each model gave. Thread-safe."""

    def __init__(self) -> None:
        self._broken: list[BrokenRule] = []
        self._given_ids = defaultdict[tuple[str, str], set[str]](set)
        """By provider and model."""

    def reads(self, model: Model) -> Model:
        """A model that answers in the same way, and whose requests are read."""

        def answer(request: Json) -> Iterator[Json]:
            return self.answers(request, model(request))

        return answer

    def answers(self, request: Json, chunks: Iterable[Json]) -> Iterator[Json]:
        """The chunks of the answer to a request, which is read before."""
        given = self._given_ids[request["provider"], request["model"]]
        self._broken += broken_rules(request, given)
        for chunk in chunks:
            given.update(_call_ids(chunk))
            yield chunk

    @contextmanager
    def reads_devhost(self) -> Iterator[None]:
        """Reads what devhost answers in this process: all calls that a plugin, a judge of answers or a flow makes."""

        def answer(
            model: ModelBackend, struct: structs.Struct, request: Json, opaque_body: OpaqueBodyPolicy
        ) -> Iterator[Json]:
            return self.answers(request, model_answer(model, struct, request, opaque_body))

        with ExitStack() as patched:
            for module in (backwards, runs):
                patched.enter_context(patch.object(module, "model_answer", answer))
            yield

    def taken(self) -> list[BrokenRule]:
        """The rules that were broken since the last time, each place once."""
        broken = list(dict.fromkeys(self._broken))
        self._broken.clear()
        return broken

    def check(self) -> None:
        """Fail if a request broke a rule since the last time."""
        broken = self.taken()
        lines = [str(each) for each in broken[:MOST_SHOWN]]
        if len(broken) > MOST_SHOWN:
            lines.append(f"and {len(broken) - MOST_SHOWN} more")
        assert not broken, "\n".join(("requests that a provider refuses:", *lines))

    def gave(self, provider: str, model: str, ids: Iterable[str]) -> None:
        """Know of ids that this model gave in an earlier conversation, of which a test has the state alone."""
        self._given_ids[provider, model].update(ids)

    def forget(self) -> None:
        """A new conversation begins: no model has given an id yet."""
        self._given_ids.clear()


def _call_ids(chunk: Json) -> list[str]:
    """The ids that a chunk of an answer gives; a provider may send none, or an empty one."""
    match chunk:
        case {"delta": {"message": {"tool_calls": list(calls)}}}:
            return [_wellformed(call["id"]) for call in calls if call.get("id")]
        case _:
            return []


def _wellformed(given: str) -> str:
    """Half a surrogate pair cannot be sent back: it is a question mark then."""
    return given.encode("utf-8", "replace").decode()


READER = StrictReader()
"""The one of this process: requests of one test come from several threads and transports."""
