"""Loads the SDK before any test: its import patches threads and sockets, which comes first, and warns of itself.

Takes away what a developer's machine would add: an OpenAI key and server of one's own, which no test may call, and
the deafness to Ctrl-C of whatever a shell runs in the background, which children inherit.
"""

import os
import signal
import warnings

from hypothesis import settings

with warnings.catch_warnings():
    # gevent finds ssl loaded already (by a pytest plugin), and the SDK uses an old way to configure pydantic.
    warnings.simplefilter("ignore")
    import dify_plugin  # noqa: F401 - for what its import does

for name in [name for name in os.environ if name.startswith("OPENAI_")]:
    del os.environ[name]

signal.signal(signal.SIGINT, signal.default_int_handler)

# CI has to give the same verdict on the same code; at home every run looks somewhere else.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
