"""The measured plugins in separate folders, as Dify's daemon unpacks them: the agent, the floor, and cot_agent.

cot_agent is Dify's official strategy. This project does not contain cot_agent and measures it only if its folder is
given.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.package import ROOT, packed_files

FLOOR = Path(__file__).parent / "floor.py"
_LABEL = "{en_US: Floor}"
_IDENTITY = f"identity: {{author: acme, name: floor, label: {_LABEL}, description: {_LABEL}, icon: icon.svg}}"
_FLOOR_FILES = {
    "manifest.yaml": f"""
version: 0.0.1
type: plugin
author: acme
name: floor
label: {_LABEL}
description: {_LABEL}
icon: icon.svg
created_at: 2026-01-01T00:00:00Z
resource: {{memory: 268435456, permission: {{tool: {{enabled: true}}, model: {{enabled: true, llm: true}}}}}}
plugins: {{agent_strategies: [provider/floor.yaml]}}
meta: {{version: 0.0.1, arch: [amd64, arm64], runner: {{language: python, version: "3.12", entrypoint: main}}}}
""",
    "provider/floor.yaml": f"""
{_IDENTITY}
strategies: [strategies/floor.yaml]
extra: {{python: {{source: provider/floor.py}}}}
""",
    "strategies/floor.yaml": f"""
{_IDENTITY}
description: {_LABEL}
features: [history-messages]
parameters:
- {{name: model, type: model-selector, scope: tool-call&llm, required: true, label: {{en_US: Model}}}}
- {{name: tools, type: "array[tools]", label: {{en_US: Tools}}}}
- {{name: instruction, type: string, label: {{en_US: Instruction}}}}
- {{name: query, type: string, required: true, label: {{en_US: Query}}}}
- {{name: context, type: any, label: {{en_US: Context}}}}
extra: {{python: {{source: strategies/floor.py}}}}
""",
    "provider/floor.py": """
from dify_plugin import AgentProvider

class FloorProvider(AgentProvider):
    pass
""",
    "main.py": """
from dify_plugin import DifyPluginEnv, Plugin

if __name__ == "__main__":
    Plugin(DifyPluginEnv()).run()
""",
    "_assets/icon.svg": "<svg/>",
}


@dataclass(frozen=True)
class Plugin:
    """The folder of a plugin, and its measured strategy."""

    folder: Path
    provider: str
    strategy: str


@dataclass(frozen=True)
class Sides[T]:
    """A value for each of the agent, the floor and, if its folder is given, Dify's official strategy."""

    agent: T
    floor: T
    official: T | None = None

    @property
    def all(self) -> list[T]:
        """The existing values, in the order in which the plugins take turns."""
        if self.official is None:
            return [self.agent, self.floor]
        return [self.agent, self.floor, self.official]


def official_version(folder: Path) -> str:
    """Return the version of the official strategy in this folder."""
    return str(yaml.safe_load((folder / "manifest.yaml").read_text(encoding="utf-8"))["version"])


@contextmanager
def unpacked(official: Path | None) -> Iterator[Sides[Plugin]]:
    """Provide the plugins in temporary folders. The official plugin runs in its own folder."""
    with tempfile.TemporaryDirectory() as folder:
        agent = Path(folder, "agent")
        bare = Path(folder, "floor")
        for path in packed_files():
            copy = agent / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        for name, text in (_FLOOR_FILES | {"strategies/floor.py": FLOOR.read_text(encoding="utf-8")}).items():
            path = bare / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        yield Sides(
            Plugin(agent, "gpt5_agent", "gpt5_function_calling"),
            Plugin(bare, "floor", "floor"),
            Plugin(official, "agent", "function_calling") if official else None,
        )
