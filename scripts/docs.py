#!/usr/bin/env python3
"""Write the parameter tables of README, readme/ and docs/ from the strategies' YAML, so that they always agree.

In: strategies/*.yaml; a parameter that all strategies take is described once, then those that only one of them takes.
Out: the text between the markers of each page. `scripts/docs.py --check` writes nothing, names the stale pages and
returns 1 if there are any.
"""

import sys
import textwrap
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
BEGIN = "<!-- parameters: written by `make docs`, do not edit -->"
END = "<!-- /parameters -->"
MAX_LINE = 100
"""Characters of a line of prose; table rows are longer."""

HEADINGS = {
    "en_US": ("Parameter", "Type", "What it does"),
    "ja_JP": ("パラメーター", "型", "説明"),
    "zh_Hans": ("参数", "类型", "说明"),
    "pt_BR": ("Parâmetro", "Tipo", "O que faz"),
}
ONLY = {
    "en_US": "Only `{strategy}` takes:",
    "ja_JP": "`{strategy}` だけのパラメーター:",
    "zh_Hans": "仅 `{strategy}` 使用：",
    "pt_BR": "Somente em `{strategy}`:",
}

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


def tables(language: str) -> str:
    """The table of the common parameters, then one table for each strategy that takes more."""
    strategies = declared()
    parts = [_table(common(strategies), language)]
    for strategy, parameters in own(strategies).items():
        parts += [ONLY[language].format(strategy=strategy), _table(parameters, language)]
    return "\n\n".join(parts)


def _table(parameters: list[Parameter], language: str) -> str:
    """Name and label, type, help; the help tells range and default, so no column repeats them."""
    rows = [
        "| " + " | ".join(HEADINGS[language]) + " |",
        "|---|---|---|",
        *(
            f"| `{parameter['name']}`<br>{parameter['label'][language]} | {parameter['type']} "
            f"| {parameter['help'][language]} |"
            for parameter in parameters
        ),
    ]
    return "\n".join(rows)


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
    facts = {
        "Label": parameter["label"]["en_US"],
        "Type": f"`{parameter['type']}`",
        "Scope": f"`{parameter['scope']}`" if "scope" in parameter else None,
        "Required": "yes" if parameter["required"] else "no",
        "Default": f"`{str(parameter['default']).lower()}`" if "default" in parameter else None,
        "Range": f"{parameter['min']} to {parameter['max']}" if "max" in parameter else None,
        "Minimum": parameter.get("min") if "max" not in parameter else None,
    }
    lines = [f"- {name}: {fact}" for name, fact in facts.items() if fact is not None]
    text = textwrap.fill(parameter["help"]["en_US"], MAX_LINE, break_long_words=False, break_on_hyphens=False)
    return f"### `{parameter['name']}`\n\n{text}\n\n" + "\n".join(lines)


def pages() -> dict[Path, str]:
    """Each page with generated text, and that text."""
    return {
        ROOT / "README.md": tables("en_US"),
        ROOT / "readme" / "README_ja_JP.md": tables("ja_JP"),
        ROOT / "readme" / "README_zh_Hans.md": tables("zh_Hans"),
        ROOT / "readme" / "README_pt_BR.md": tables("pt_BR"),
        ROOT / "docs" / "parameters.md": reference(),
    }


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


def stale_pages() -> dict[Path, str]:
    """The pages that differ from what the YAML says, with what they should be."""
    written = {path: path.read_text(encoding="utf-8") for path in pages()}
    wanted = {path: with_generated(written[path], generated) for path, generated in pages().items()}
    return {path: text for path, text in wanted.items() if text != written[path]}


def main(arguments: list[str]) -> int:
    stale = stale_pages()
    if arguments == ["--check"]:
        for path in stale:
            sys.stdout.write(f"{path.relative_to(ROOT)} is stale: run `make docs`\n")
        return 1 if stale else 0
    for path, text in stale.items():
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)} written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
