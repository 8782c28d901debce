"""Loads the SDK before any test: its import patches threads and sockets, which comes first, and warns of itself.

Takes a developer's own OpenAI key and server out of the environment: no test may call a real one.
"""

import os
import warnings

from hypothesis import settings

with warnings.catch_warnings():
    # gevent finds ssl loaded already (by a pytest plugin), and the SDK uses an old way to configure pydantic.
    warnings.simplefilter("ignore")
    import dify_plugin  # noqa: F401 - for what its import does

for name in [name for name in os.environ if name.startswith("OPENAI_")]:
    del os.environ[name]

# CI has to give the same verdict on the same code; at home every run looks somewhere else.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
