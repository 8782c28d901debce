"""Loads the SDK before any test: its import patches threads and sockets, which comes first, and warns of itself."""

import warnings

with warnings.catch_warnings():
    # gevent finds ssl loaded already (by a pytest plugin), and the SDK uses an old way to configure pydantic.
    warnings.simplefilter("ignore")
    import dify_plugin  # noqa: F401 - for what its import does
