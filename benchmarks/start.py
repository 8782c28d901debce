"""What starting the plugin's process costs.

In: how often to repeat. Out: seconds of CPU from the start of Python until the plugin has written its manifest and the
heartbeat after it, which says that it serves.
"""

from benchmarks.measure import Compared, compared
from benchmarks.plugins import Plugin, unpacked
from benchmarks.process import PluginProcess


def starting(repeats: int) -> Compared:
    """Start both in turn; a first start of each, which compiles the modules, does not count."""
    with unpacked() as plugins:
        pairs = [(started(plugins.agent), started(plugins.floor)) for _ in range(repeats + 1)]
    return compared(pairs[1:])


def started(plugin: Plugin) -> float:
    with PluginProcess(plugin) as process:
        return process.cpu()
