"""The host: calls to it, its failures, time and local files.

In: requests. Out: model chunks and tool messages, each bounded in time. A call that fails raises a HostFailure with its
kind, one that runs out of time DeadlinePassed, one that is too large to send RequestTooLarge, and a local file that
cannot be read FileRefused. This package alone calls the SDK's Session; ``agent`` is given it and hands it on.
"""
