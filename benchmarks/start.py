"""What starting the plugin's process costs, and what it takes of memory.

In: how often to repeat. Out: seconds of CPU from the start of Python until the plugin has written its manifest and the
heartbeat after it, which says that it serves; bytes of memory then, and after work.
"""

from benchmarks.measure import Compared, Work, compared
from benchmarks.plugins import Plugin, unpacked
from benchmarks.process import PluginProcess


def starting(repeats: int) -> Compared:
    """Start both in turn; a first start of each, which compiles the modules, does not count."""
    with unpacked() as plugins:
        pairs = [(started(plugins.agent), started(plugins.floor)) for _ in range(repeats + 1)]
    return compared(pairs[1:])


def in_memory(repeats: int, work: Work) -> tuple[Compared, Compared]:
    """When both serve, and when they have done the work."""
    with unpacked() as plugins:
        pairs = [(_memory(plugins.agent, work), _memory(plugins.floor, work)) for _ in range(repeats)]
    served, worked = ([(agent[at], floor[at]) for agent, floor in pairs] for at in (0, 1))
    return compared(served), compared(worked)


def _memory(plugin: Plugin, work: Work) -> tuple[float, float]:
    with PluginProcess(plugin) as process:
        serving = process.memory()
        work(process)
        return serving, process.memory()


def started(plugin: Plugin) -> float:
    with PluginProcess(plugin) as process:
        return process.cpu()
