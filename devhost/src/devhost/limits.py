"""The host's limits, with the values of a self-hosted Dify (dify-plugin-daemon and dify-api, August 2026)."""

import threading
from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

type Count = Annotated[int, Field(gt=0, le=2**40, strict=True)]
type PositivePrice = Annotated[Decimal, Field(gt=0, allow_inf_nan=False)]
type Seconds = Annotated[float, Field(gt=0, le=threading.TIMEOUT_MAX, strict=True)]


class HostLimits(BaseModel):
    """Times in seconds and sizes in bytes at which Dify ends what a plugin does."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    line_bytes: Count = 5 * 1024 * 1024
    """A longer line kills a local plugin and fails a serverless run; over TCP lines are not limited."""
    launch_seconds: Seconds = 120
    """The plugin must serve by then: its first heartbeat must have come, or over TCP its declaration."""
    heartbeat_seconds: Seconds = 60
    """How often the daemon looks for a sign of life. After one to two such times of silence it ends the plugin."""
    run_seconds: Seconds = 600
    """One strategy invocation in total, in each of the three runtimes; the plugin is not told."""
    call_seconds: Seconds = 240
    """One backwards call, wall clock, streaming included."""
    blob_bytes: Count = 15 * 1024 * 1024
    """One file sent in chunks."""
    serverless_request_bytes: Count = 5 * 1024 * 1024
    """The request that invokes a serverless plugin."""
    transaction_bytes: Count = 6 * 1024 * 1024
    """A serverless plugin's request for a backwards call."""
    burst_messages: Annotated[int, Field(ge=0, le=2**40, strict=True)] = 0
    """How many messages of a run may wait in the daemon, 128 in Dify; eight times as many of a backwards call's answer.
    What comes while all places are taken is lost. 0 loses nothing."""
    storage_bytes: Count = 100 * 1024 * 1024
    """What one plugin may keep in storage, if its manifest does not say less."""
    stop_seconds: Seconds = 5
    """How long a plugin may take to end after SIGTERM, before it is killed."""
    document_bytes: Count = 15 * 1024 * 1024
    """One file that a person gives, of any type without a limit of its own: UPLOAD_FILE_SIZE_LIMIT."""
    image_bytes: Count = 10 * 1024 * 1024
    """UPLOAD_IMAGE_FILE_SIZE_LIMIT."""
    audio_bytes: Count = 50 * 1024 * 1024
    """UPLOAD_AUDIO_FILE_SIZE_LIMIT."""
    video_bytes: Count = 100 * 1024 * 1024
    """UPLOAD_VIDEO_FILE_SIZE_LIMIT."""
    message_files: Count = 10
    """Files that a person gives with one message: WORKFLOW_FILE_UPLOAD_LIMIT."""
    code_seconds: Seconds = 15
    """One run of a flow's code node, or of a template: SANDBOX_WORKER_TIMEOUT."""
    code_bytes: Count = 512 * 1024 * 1024
    """Memory of such a run. Dify limits only the container of its sandbox."""
    price: PositivePrice | None = None
    """What the model calls of one run may cost, in the currency of its model; Dify has no such limit. Once it is
    reached, no further model call of the run begins, and the run fails."""
