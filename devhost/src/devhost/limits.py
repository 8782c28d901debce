"""The host's limits, with the values of a self-hosted Dify (dify-plugin-daemon and dify-api, August 2026)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class HostLimits:
    """Times in seconds and sizes in bytes at which Dify ends what a plugin does."""

    line_bytes: int = 5 * 1024 * 1024
    """A longer line kills a local plugin and fails a serverless run; over TCP lines are not limited."""
    launch_seconds: float = 120
    """The plugin must serve by then: its first heartbeat must have come, or over TCP its declaration."""
    heartbeat_seconds: float = 60
    """How often the daemon looks for a sign of life. After one to two such times of silence it ends the plugin."""
    run_seconds: float = 600
    """One strategy invocation in total, in each of the three runtimes; the plugin is not told."""
    call_seconds: float = 240
    """One backwards call, wall clock, streaming included."""
    blob_bytes: int = 15 * 1024 * 1024
    """One file sent in chunks."""
    blob_chunk_bytes: int = 8192
    """One chunk of it."""
    serverless_request_bytes: int = 5 * 1024 * 1024
    """The request that invokes a serverless plugin."""
    transaction_bytes: int = 6 * 1024 * 1024
    """A serverless plugin's request for a backwards call."""
    storage_bytes: int = 100 * 1024 * 1024
    """What one plugin may keep in storage, if its manifest does not say less."""
    stop_seconds: float = 5
    """How long a plugin may take to end after SIGTERM, before it is killed."""
    document_bytes: int = 15 * 1024 * 1024
    """One file that a person gives, of any type without a limit of its own: UPLOAD_FILE_SIZE_LIMIT."""
    image_bytes: int = 10 * 1024 * 1024
    """UPLOAD_IMAGE_FILE_SIZE_LIMIT."""
    audio_bytes: int = 50 * 1024 * 1024
    """UPLOAD_AUDIO_FILE_SIZE_LIMIT."""
    video_bytes: int = 100 * 1024 * 1024
    """UPLOAD_VIDEO_FILE_SIZE_LIMIT."""
    message_files: int = 10
    """Files that a person gives with one message: WORKFLOW_FILE_UPLOAD_LIMIT."""
    code_seconds: float = 15
    """One run of a flow's code node: SANDBOX_WORKER_TIMEOUT."""
