"""Plugins that break a rule of `devhost check`, each in one place.

In: a folder. Out: a plugin that breaks no rule, and for each rule ways to break it, with the place of the problem.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from devhost.plugin.problems import Level
from support.plugins import CHARTS, PUPPET

type Break = Callable[[Path], object]


def complete(folder: Path, source: Path = CHARTS) -> Path:
    """A copy of the plugin with all that the marketplace asks for."""
    plugin = Path(shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__")))
    with (plugin / "manifest.yaml").open("a", encoding="utf-8") as manifest:
        manifest.write("\nrepo: https://github.com/chartmakers/charts\ncontact: makers@charts.example\n")
        manifest.write("" if source == CHARTS else "privacy: PRIVACY.md\n")
    shutil.copy(CHARTS / "PRIVACY.md", plugin)
    (plugin / "README.md").write_text("# Charts\n\nhttps://github.com/chartmakers/charts\n", encoding="utf-8")
    return plugin


def written(path: str, content: str | bytes) -> Break:
    def write(plugin: Path) -> None:
        (plugin / path).parent.mkdir(parents=True, exist_ok=True)
        (plugin / path).write_bytes(content.encode() if isinstance(content, str) else content)

    return write


def replaced(path: str, old: str, new: str, most: int = -1) -> Break:
    def replace(plugin: Path) -> None:
        text = (plugin / path).read_text(encoding="utf-8")
        assert old in text
        (plugin / path).write_text(text.replace(old, new, most), encoding="utf-8")

    return replace


def added(path: str, text: str) -> Break:
    def add(plugin: Path) -> None:
        with (plugin / path).open("a", encoding="utf-8") as file:
            file.write(text)

    return add


def linked(path: str, target: str) -> Break:
    return lambda plugin: (plugin / path).symlink_to(target)


def removed(path: str) -> Break:
    return lambda plugin: (plugin / path).unlink()


@dataclass(frozen=True)
class Breach:
    rule: str
    break_it: Break
    file: str
    key: str
    level: Level = "refused"
    source: Path = CHARTS

    def __str__(self) -> str:
        return f"{self.rule}-{self.file}-{self.key}"


MANIFEST = "manifest.yaml"
DRAW = "tools/draw_chart.yaml"
STRATEGY = "strategies/puppet.yaml"
PROVIDER = "provider/charts.yaml"
CREDENTIAL = "credentials_for_provider"
KEY = "9fQ2xL7vB4tR1zK8mN3pW6yH"
"""Made up, and put together here so that no scan takes this file for one that holds a secret."""
HEADER = "-----BEGIN RSA PRIVATE " + "KEY-----"

RETURNS = "class Draw(Tool):\n    def _invoke(self, values):\n        return self.create_text_message('drawn')\n"
NO_TOOL = RETURNS.replace("(Tool)", "")
YIELDS = RETURNS.replace("return self.create_text_message('drawn')", "yield 'a'")

WIDE = "parameters[3].multiple"
COLOR = "parameters[6].default"
MADE = "parameters[6].auto_generate"

OF_DECLARATIONS = [
    Breach("declaration", written(DRAW, "identity: ["), DRAW, ""),
    Breach("declaration", added(".difyignore", "tools/*.yaml\n"), DRAW, ""),
    Breach("declaration", replaced(PROVIDER, DRAW, "gone.yaml"), "gone.yaml", ""),
    Breach("kinds", replaced(MANIFEST, "  tools:\n    - provider/charts.yaml", "  tools: []"), MANIFEST, "plugins"),
    Breach("declaration", replaced(MANIFEST, "author: chartmakers\n", ""), MANIFEST, "author"),
    Breach("declaration", replaced(DRAW, "name: draw_chart", "name: draw a chart"), DRAW, "identity.name"),
    Breach("declaration", replaced(PROVIDER, "default: eu", "default: [1]"), PROVIDER, f"{CREDENTIAL}.region.default"),
    Breach(
        "source", replaced(PROVIDER, "source: provider/charts.py", "source: gone.py"), PROVIDER, "extra.python.source"
    ),
    Breach("declaration", added(MANIFEST, "tags: [robots]\n"), MANIFEST, "tags[0]"),
    Breach("declaration", replaced(DRAW, "default: blue", "default: pink"), DRAW, "parameters[6].default"),
    # Dify's own validation of tools, for whose faults the whole list of a workspace fails.
    Breach("declaration", replaced(DRAW, "type: number", "type: files\n    multiple: true", most=1), DRAW, WIDE),
    Breach("declaration", replaced(DRAW, "default: blue", "multiple: true\n    default: blue"), DRAW, COLOR),
    Breach("declaration", replaced(DRAW, "default: blue", "default: [blue]"), DRAW, COLOR),
    Breach("declaration", replaced(DRAW, "default: blue", "auto_generate: {type: code}"), DRAW, f"{MADE}.type"),
    Breach("declaration", replaced(PROVIDER, "- image", "- agent"), PROVIDER, "identity.tags[0]"),
    Breach(
        "declaration",
        replaced(PROVIDER, "default: eu", "scope: document"),
        PROVIDER,
        f"{CREDENTIAL}.region.scope",
    ),
    Breach("icon", replaced(MANIFEST, "icon: icon.svg", "icon: gone.svg"), MANIFEST, "icon"),
    Breach("source", added(".difyignore", "tools/draw_chart.py\n"), DRAW, "extra.python.source"),
]
OF_FILES = [
    Breach("yield", written("tools/draw_chart.py", RETURNS), "tools/draw_chart.py", "line 2"),
    Breach("yield", written("tools/draw_chart.py", YIELDS), "tools/draw_chart.py", "line 3"),
    Breach("source", written("tools/draw_chart.py", NO_TOOL), "tools/draw_chart.py", "line 1"),
    Breach("entrypoint", removed("main.py"), MANIFEST, "meta.runner.entrypoint"),
    Breach("ignore-file", written(".difyignore", "/*.yaml\n!/manifest.yaml\n"), ".difyignore", "line 2"),
    Breach("forbidden-file", written(".env", "A=1"), ".env", ""),
    Breach("forbidden-file", written("tools/notes.bak", ""), "tools/notes.bak", ""),
    Breach("forbidden-file", written(".venv/lib/module.py", ""), ".venv/", ""),
    Breach("forbidden-file", linked("tools/link.py", "/etc/hosts"), "tools/link.py", ""),
    Breach("forbidden-file", lambda plugin: os.mkfifo(plugin / "pipe"), "pipe", ""),
    Breach("secret", written("tools/key.py", f"KEY = 'sk-{KEY}'\n"), "tools/key.py", "line 1"),
    Breach("secret", written("key.txt", f"ghp_{KEY}{KEY}"), "key.txt", "line 1"),
    Breach("secret", written("key.txt", f"\n{HEADER}\n\n{KEY}{KEY}\n"), "key.txt", "line 2"),
    Breach("dependency", removed("requirements.txt"), "requirements.txt", ""),
    Breach("dependency", added("requirements.txt", "httpx=0.28.1\n"), "requirements.txt", "line 2"),
    Breach("dependency", written("requirements.txt", "httpx==0.28.1\n"), "requirements.txt", ""),
    Breach("compile", written("tools/odd.py", "\nreturn\n"), "tools/odd.py", "line 2"),
]


def of_strategy(old: str, new: str, key: str, most: int = -1) -> Breach:
    return Breach("declaration", replaced(STRATEGY, old, new, most), STRATEGY, key, source=PUPPET)


MODELS = replaced(MANIFEST, "plugins:", "plugins:\n  models: [provider/m.yaml]")
OF_STRATEGIES = [
    Breach("kinds", MODELS, MANIFEST, "plugins", source=PUPPET),
    of_strategy("    required: true\n", "", "parameters[0]", most=1),
    of_strategy("scope: tool-call&llm", "scope: tools&word", "parameters[0].scope"),
    of_strategy("default: calm", "default: sad", "parameters[5].default"),
    of_strategy("    answer:", "    text:", "output_schema"),
    of_strategy("\nparameters:", "\nfeatures: [history-messages, telepathy]\nparameters:", "features[1]"),
]


ICON = "<!-- DIFY_MARKETPLACE_TEMPLATE_ICON_… -->"
NOT_REFUSED = [
    Breach("readme", added("README.md", "\n图表\n"), "README.md", "", "marketplace"),
    Breach("privacy", removed("PRIVACY.md"), MANIFEST, "privacy", "marketplace"),
    Breach("readme", removed("README.md"), "README.md", "", "marketplace"),
    Breach("readme", written("README.md", "# Charts\n"), "README.md", "", "marketplace"),
    Breach(
        "declaration", replaced(MANIFEST, "zh_Hans: 图表\n", "zh_Hant: 圖表\n"), MANIFEST, "label.zh_Hant", "notice"
    ),
    Breach("declaration", replaced(DRAW, "default: 40", "defualt: 40"), DRAW, "parameters[3].defualt", "notice"),
    Breach("declaration", replaced(DRAW, "value: red", "value: no"), DRAW, "parameters[6].options[1].value", "notice"),
    Breach("declaration", replaced(DRAW, "type: boolean", "type: date-range"), DRAW, "parameters[5].type", "notice"),
    Breach(
        "dependency",
        written("pyproject.toml", '[project]\ndependencies = ["dify_plugin==0.10.2", "httpx"]\n'),
        "pyproject.toml",
        "project.dependencies[1]",
        "marketplace",
    ),
    Breach("dependency", added("requirements.txt", "-e ./here\n"), "requirements.txt", "line 2", "marketplace"),
    Breach(
        "dependency", added("requirements.txt", "git+https://x.y/a/b\n"), "requirements.txt", "line 2", "marketplace"
    ),
    Breach("dependency", written("requirements.txt", "dify_plugin\n"), "requirements.txt", "line 1", "marketplace"),
    Breach("dependency", written("requirements.txt", "dify_plugin==0.5.1\n"), "requirements.txt", "", "marketplace"),
    Breach("declaration", replaced(DRAW, "- name: values", "- name: title"), DRAW, "parameters[1].name", "notice"),
    Breach("declaration", added(PROVIDER, "author: me\n"), PROVIDER, "author", "notice"),
    Breach("data", written("tools/customers", b"SQLite format 3\0"), "tools/customers", "", "notice"),
    Breach("data", written("customers.sqlite-wal", ""), "customers.sqlite-wal", "", "notice"),
    Breach("data", written("all.sql", "\ninsert into customers values (1);\n"), "all.sql", "", "notice"),
    Breach("data", written("python/pyvenv.cfg", "home = /usr\n"), "python/pyvenv.cfg", "", "notice"),
    Breach("data", written("keys/id_ed25519", "x"), "keys/id_ed25519", "", "notice"),
    Breach("icon", written("_assets/icon.svg", ICON), MANIFEST, "icon", "marketplace"),
    Breach("marketplace", replaced(MANIFEST, "contact:", "contacts:"), MANIFEST, "contact", "marketplace"),
    Breach("marketplace", replaced(MANIFEST, "chartmakers\n", "dify-charts\n"), MANIFEST, "author", "marketplace"),
]

BREACHES = (*OF_DECLARATIONS, *OF_FILES, *OF_STRATEGIES, *NOT_REFUSED)


def broken(source: Path, folder: Path, file: str, way: str, value: object) -> Path:
    """A copy of the plugin with one field changed; None takes it away."""
    plugin = folder / source.name
    shutil.copytree(source, plugin)
    data = yaml.safe_load((plugin / file).read_text(encoding="utf-8"))
    place: Any = data
    *steps, last = [int(step) if step.isdigit() else step for step in way.split(".")]
    for step in steps:
        place = place[step]
    place[last] = value
    (plugin / file).write_text(yaml.safe_dump(data), encoding="utf-8")
    return plugin
