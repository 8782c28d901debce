"""A folder with the plugin's own code and one strategy, `helpdesk_step`, for the steps alone."""

import shutil
from pathlib import Path

import yaml

from prompt import template

REPOSITORY = Path(template.__file__).resolve().parents[1]
STRATEGY = "helpdesk_step"
_COPIED = ("internal", "prompt", "provider", "_assets", "strategies", "readme")
_FILES = ("main.py", "manifest.yaml", "requirements.txt", "PRIVACY.md", "README.md")
_OWN = ("step", "given")
"""Parameters beside those of `gpt5_plan_and_reflect`."""


def made_plugin(folder: Path) -> Path:
    """Copies the plugin, and replaces its strategies by the step."""
    for name in _COPIED:
        shutil.copytree(REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in _FILES:
        shutil.copy(REPOSITORY / name, folder / name)
    strategies = folder / "strategies"
    shutil.copy(Path(__file__).with_name("strategy.py"), strategies / f"{STRATEGY}.py")
    declared = yaml.safe_load((strategies / "gpt5_plan_and_reflect.yaml").read_text(encoding="utf-8"))
    declared["identity"]["name"] = STRATEGY
    declared["parameters"] += [_parameter(name) for name in _OWN]
    declared["output_schema"]["properties"]["step"] = {"type": "object", "description": "What the step put out."}
    declared["extra"]["python"]["source"] = f"strategies/{STRATEGY}.py"
    _write(strategies / f"{STRATEGY}.yaml", declared)
    provider = folder / "provider" / "gpt5_agent.yaml"
    _write(
        provider,
        {**yaml.safe_load(provider.read_text(encoding="utf-8")), "strategies": [f"strategies/{STRATEGY}.yaml"]},
    )
    return folder


def _parameter(name: str) -> dict[str, object]:
    return {"name": name, "type": "string", "required": True, "label": {"en_US": name}, "help": {"en_US": name}}


def _write(file: Path, content: object) -> None:
    file.write_text(yaml.safe_dump(content, allow_unicode=True, sort_keys=False), encoding="utf-8")
