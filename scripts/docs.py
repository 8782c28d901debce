#!/usr/bin/env python3
"""Write the parameters in docs/parameters.md from the strategies' YAML, so that they always agree.

In: strategies/*.yaml; a parameter that all strategies take is described once, then those that only one of them takes.
Out: the text between the page's markers. `scripts/docs.py --check` writes nothing, and returns 1 if the page is stale.
"""

import sys
import textwrap
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "parameters.md"
BEGIN = "<!-- parameters: written by `make docs`, do not edit -->"
END = "<!-- /parameters -->"
MAX_LINE = 100
"""Characters of a line of prose; tables and code may be wider."""

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
    """Each parameter with everything that the YAML says about it."""
    strategies = declared()
    sections = {"All strategies": common(strategies)}
    sections |= {f"Only `{strategy}`": parameters for strategy, parameters in own(strategies).items()}
    return "\n\n".join(
        text
        for heading, parameters in sections.items()
        for text in (f"## {heading}", *(_entry(parameter) for parameter in parameters))
    )


def _entry(parameter: Parameter) -> str:
    """Default and range are in the help text: tests/test_declarations.py holds them together."""
    scope = f", scope `{parameter['scope']}`" if "scope" in parameter else ""
    facts = f"*{parameter['label']['en_US']}*, `{parameter['type']}`{scope}"
    text = textwrap.fill(parameter["help"]["en_US"], MAX_LINE, break_long_words=False, break_on_hyphens=False)
    return f"### `{parameter['name']}`\n\n{facts}\n\n{text}"


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
