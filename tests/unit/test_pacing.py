"""A run never sends more messages at once than the daemon can hold."""

from dify_plugin.entities.agent import AgentInvokeMessage
from dify_plugin.entities.invoke_message import InvokeMessage

from internal.render.messages import MAX_AT_ONCE, PAUSE_SECONDS, paced
from tests.support.clock import FakeTime

TEXT = AgentInvokeMessage(type=InvokeMessage.MessageType.TEXT, message=InvokeMessage.TextMessage(text="a"))
BLOB = AgentInvokeMessage(
    type=InvokeMessage.MessageType.BLOB_CHUNK,
    message=InvokeMessage.BlobChunkMessage(id="b", sequence=0, total_length=1, blob=b"x", end=False),
)


def pauses(messages: list[AgentInvokeMessage], seconds_between: float = 0.0, slow: int | None = None) -> list[int]:
    """After how many messages there was a pause; time passes after the first ``slow`` ones, or after each."""
    time, written, found = FakeTime(), 0, []
    for _ in paced(messages, time.clock):
        if time.slept:
            assert time.slept == [PAUSE_SECONDS]
            found.append(written)
            time.slept.clear()
        written += 1
        time.advance(seconds_between if slow is None or written <= slow else 0.0)
    assert written == len(messages)
    return found


def test_after_every_hundred_messages_at_once_there_is_a_pause() -> None:
    assert (MAX_AT_ONCE, PAUSE_SECONDS) == (100, 0.010)
    assert pauses([TEXT] * 100) == []
    assert pauses([TEXT] * 350) == [100, 200, 300]
    assert pauses([TEXT] * 300, seconds_between=1.0, slow=150) == [249]
    assert pauses([TEXT] * 350, seconds_between=0.0003) == []


def test_blob_chunks_do_not_count() -> None:
    assert pauses([BLOB] * 1_000) == []
    assert pauses([*[TEXT] * 100, *[BLOB] * 1_000, TEXT]) == [1_100]
