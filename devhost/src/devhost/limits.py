"""The host's limits, with the values of a self-hosted Dify (dify-plugin-daemon and dify-api, August 2026)."""

import threading
from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

type Count = Annotated[int, Field(gt=0, le=2**40, strict=True)]
type PositivePrice = Annotated[Decimal, Field(gt=0, allow_inf_nan=False)]
type Seconds = Annotated[float, Field(gt=0, le=threading.TIMEOUT_MAX, strict=True)]


class HostLimits(BaseModel):
    """The limits at which Dify stops a plugin: times in seconds and sizes in bytes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    line_bytes: Count = 5 * 1024 * 1024
    """The maximum length of a line. A longer line kills a local plugin and fails a serverless run. TCP has no limit."""
    launch_seconds: Seconds = 120
    """The time within which a plugin must send its first heartbeat or, over TCP, its declaration."""
    heartbeat_seconds: Seconds = 60
    """The interval at which the daemon checks for a sign of life.

    It ends a plugin after one to two silent intervals.
    """
    run_seconds: Seconds = 600
    """The time for one strategy invocation in total, in each of the three runtimes. The plugin is not notified."""
    call_seconds: Seconds = 240
    """The wall clock time for one backwards call, including streaming."""
    blob_bytes: Count = 15 * 1024 * 1024
    """The maximum size of a file that is sent in chunks."""
    serverless_request_bytes: Count = 5 * 1024 * 1024
    """The maximum size of the request that invokes a serverless plugin."""
    transaction_bytes: Count = 6 * 1024 * 1024
    """The maximum size of a serverless plugin's request for a backwards call."""
    burst_messages: Annotated[int, Field(ge=0, le=2**40, strict=True)] = 0
    """How many messages of a run may wait in the daemon: 128 in Dify. With 0, no message is lost.

    For the answer to a backwards call, it is eight times as many. Messages that arrive at a full queue are lost.
    """
    storage_bytes: Count = 100 * 1024 * 1024
    """The maximum storage of one plugin, unless its manifest sets a lower limit."""
    stop_seconds: Seconds = 5
    """The time that a plugin has to end after SIGTERM, before it is killed."""
    document_bytes: Count = 15 * 1024 * 1024
    """The maximum size of a user's file whose type has no limit of its own: UPLOAD_FILE_SIZE_LIMIT."""
    image_bytes: Count = 10 * 1024 * 1024
    """The maximum size of a user's image: UPLOAD_IMAGE_FILE_SIZE_LIMIT."""
    audio_bytes: Count = 50 * 1024 * 1024
    """The maximum size of a user's audio file: UPLOAD_AUDIO_FILE_SIZE_LIMIT."""
    video_bytes: Count = 100 * 1024 * 1024
    """The maximum size of a user's video: UPLOAD_VIDEO_FILE_SIZE_LIMIT."""
    message_files: Count = 10
    """The maximum number of files that a user sends with one message: WORKFLOW_FILE_UPLOAD_LIMIT."""
    code_seconds: Seconds = 15
    """The time for one run of a flow's code node or template: SANDBOX_WORKER_TIMEOUT."""
    code_bytes: Count = 512 * 1024 * 1024
    """The memory for one run of a code node or template. Dify limits only the container of its sandbox."""
    price: PositivePrice | None = None
    """The price limit for the model calls of one run, in the currency of its model. Dify has no such limit.

    Once the limit is reached, no further model call of the run begins, and the run fails.
    """
