"""Keeps a run's messages from coming faster than the host can take them.

The daemon passes a run's messages on through a queue of 128 places, and drops messages without an error when it is
full. With a pause of 10 ms after every 100 messages none was lost (docs/host-facts.md, "Bursts of messages"). In: the
messages of a run, all its loops and logs among them. Out: the same, with pauses.
"""

from collections import deque
from collections.abc import Iterable, Iterator

from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.invoke_message import InvokeMessage

from internal.host.clock import Clock

MAX_AT_ONCE = 100
"""Messages."""
AT_ONCE_SECONDS = 0.020
PAUSE_SECONDS = 0.010


def paced(messages: Iterable[AgentInvokeMessage], clock: Clock) -> Iterator[AgentInvokeMessage]:
    """Pause before the next message when the last MAX_AT_ONCE took less than AT_ONCE_SECONDS.

    Blob chunks do not count: the daemon puts them together before the queue.
    """
    written: deque[float] = deque(maxlen=MAX_AT_ONCE)
    for message in messages:
        if message.type is InvokeMessage.MessageType.BLOB_CHUNK:
            yield message
            continue
        if len(written) == MAX_AT_ONCE and clock.now() - written[0] < AT_ONCE_SECONDS:
            clock.sleep(PAUSE_SECONDS)
            written.clear()
        yield message
        written.append(clock.now())
