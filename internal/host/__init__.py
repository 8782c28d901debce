"""The host: calls to it, its failures, time and local files.

In: requests. Out: model chunks and tool messages, each bounded in time; every failure is a HostFailure with its kind.
This package alone uses the SDK's Session.
"""
