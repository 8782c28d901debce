#!/usr/bin/env python3
"""Write the parameters in docs/parameters.md from the strategies' YAML, so that they always agree.

A parameter that all strategies take is listed once, then those that only one of them takes. `scripts/docs.py --check`
writes nothing, and returns 1 if the page is stale.
"""

import re
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "parameters.md"
BEGIN = "<!-- parameters: written by `make docs`, do not edit -->"
END = "<!-- /parameters -->"
MAX_LINE = 100
"""Characters of a line of prose; tables and code may be wider."""
MORE = {
    "model": "model-facts",
    "tools": "tool-calls",
    "instruction": "policies",
    "query": "first-workflow",
    "context": "sources",
    "files": "files",
    "skills": "skills",
    "approval_required": "approval",
    "approval": "approval",
    "state": "state",
    "answer_schema": "answer-schema",
    "answer_tools": "answer-tools",
    "answer_criteria": "second-look",
    "show_sources": "sources",
    "emit_intermediate_thoughts": "thoughts",
    "maximum_iterations": "budgets",
    "maximum_seconds": "budgets",
    "maximum_total_tokens": "budgets",
    "maximum_tool_calls": "budgets",
    "tool_result_limit": "long-results",
    "allowed_tools": "tool-calls",
    "tools_in_prompt": "many-tools",
    "parallel_tool_calls": "tool-calls",
    "fallback_model": "fallback-model",
    "prompt_policy_overrides": "policies",
    "extra_outputs": "outputs",
    "maximum_subtasks": "strategies",
    "maximum_attempts": "strategies",
}
"""The page of docs/ on each parameter."""

type Parameter = dict[str, Any]


def declared() -> dict[str, list[Parameter]]:
    """The parameters of each strategy."""
    strategies = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "strategies").glob("*.yaml"))}
    return {name: yaml.safe_load(text)["parameters"] for name, text in strategies.items()}


def common(strategies: dict[str, list[Parameter]]) -> list[Parameter]:
    """The parameters that all strategies take; tests check that they are declared alike."""
    first, *others = strategies.values()
    return [parameter for parameter in first if all(parameter in other for other in others)]


def own(strategies: dict[str, list[Parameter]]) -> dict[str, list[Parameter]]:
    """The parameters that only one strategy takes, by strategy."""
    shared = common(strategies)
    more = {name: [each for each in taken if each not in shared] for name, taken in strategies.items()}
    return {name: parameters for name, parameters in more.items() if parameters}


def reference() -> str:
    """A table of the parameters of all strategies, and one of those of each."""
    strategies = declared()
    sections = {"All strategies": common(strategies)}
    sections |= {f"Only `{strategy}`": parameters for strategy, parameters in own(strategies).items()}
    return "\n\n".join(
        f"## {heading}\n\n| Parameter | Set it |\n|---|---|\n" + "\n".join(map(_row, parameters))
        for heading, parameters in sections.items()
    )


def _row(parameter: Parameter) -> str:
    """The name with a link to its page, when to set it (the help up to its colon), and the default with the range."""
    first, *others = re.split(r"(?<=\.) (?=[A-Z])", parameter["help"]["en_US"])
    when = first if len(first.split()) > 1 else f"{first} {others[0]}"
    when = when.partition(": ")[0].removesuffix(".") + "."
    if parameter.get("default") not in (None, ""):
        span = f" ({parameter['min']} to {parameter['max']})" if "max" in parameter else ""
        when += f" Default: {str(parameter['default']).lower()}{span}."
    return f"| [`{parameter['name']}`]({MORE[parameter['name']]}.md) | {when} |"


def with_generated(page: str, generated: str) -> str:
    """The page with the text between its two markers replaced.

    Raises:
        ValueError: one of the markers is missing.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page lacks one of the markers {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{generated}\n\n{END}{after}"


def main(arguments: list[str]) -> int:
    written = PAGE.read_text(encoding="utf-8")
    wanted = with_generated(written, reference())
    if wanted == written:
        return 0
    name = PAGE.relative_to(ROOT)
    if arguments == ["--check"]:
        sys.stdout.write(f"{name} is stale: run `make docs`\n")
        return 1
    PAGE.write_text(wanted, encoding="utf-8")
    sys.stdout.write(f"{name} written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
