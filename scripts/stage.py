#!/usr/bin/env python3
"""Prepares the folder to pack in `dist/`, both for `devhost package` and for Dify's own `dify plugin package`.

    python -m scripts.stage            # dist/gpt5_agent: the plugin; `make package` calls this
    python -m scripts.stage answers    # dist/answers: an example's plugin

The folder has the files that `.difyignore` does not exclude, which git must know. The plugin gets READMEs for people
who have just installed it, from docs/package/README*.md. Text that they share with the repository's READMEs is in the
latter, between markers. An example gets the packages of examples/shared that it imports.

Dify's page for a plugin shows line ends as breaks, only half of a table, no relative links and no pictures of the
package (docs/host-facts.md, "The page of a plugin").
"""

import re
import shutil
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import yaml

from devhost.package import unknown_files
from devhost.plugin.contents import Contents
from scripts.publisher import REPOSITORY

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
PLUGIN = "gpt5_agent"
SHARED_CODE = "shared"
"""The folder in examples/ with packages that several examples use."""
TEMPLATES = ROOT / "docs" / "package"
PAGES = {
    "en_US": "README.md",
    "ja_JP": "readme/README_ja_JP.md",
    "zh_Hans": "readme/README_zh_Hans.md",
    "pt_BR": "readme/README_pt_BR.md",
}
"""The READMEs that Dify shows, by language. The paths are the same in the repository and in the package."""
SHARED = re.compile(r"<!-- shared: (\w+) -->\n(.*?)\n<!-- /shared -->", re.DOTALL)
PLACE = re.compile(r"<!-- shared: (\w+) -->")
ASIDE = re.compile(r" ?[（(]\[[^]]+\]\((?!https?:)[^)]+\)[）)]")
"""A relative link in parentheses, such as a link to a page with details."""
RELATIVE = re.compile(r"\[([^]]+)\]\((?!https?:)[^)]+\)")

ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


@cache
def readme(language: str) -> str:
    """Return the package's README in a language.

    Raises:
        KeyError: the template names a part that the repository's README lacks.
    """
    page = (ROOT / PAGES[language]).read_text(encoding="utf-8")
    parts = {name: _for_dify(text, language) for name, text in SHARED.findall(page)}
    repo = yaml.safe_load((ROOT / "manifest.yaml").read_text(encoding="utf-8")).get("repo")
    parts["repository"] = REPOSITORY[PAGES[language]][0].format(repo=repo) if repo else ""
    template = (TEMPLATES / Path(PAGES[language]).name).read_text(encoding="utf-8")
    return PLACE.sub(lambda place: parts[place[1]], template).rstrip() + "\n"


def _for_dify(text: str, language: str) -> str:
    """Return a text for Dify's page: paragraphs on one line, tables as lists, plain links, labels of strategies."""
    text = RELATIVE.sub(r"\1", ASIDE.sub("", text))
    rows = ROW.findall(text)[1:]  # without the header
    text = "\n".join(f"- {name}: {use}" for name, use in rows) if rows else " ".join(text.splitlines())
    for file in (ROOT / "strategies").glob("*.yaml"):
        label = yaml.safe_load(file.read_text(encoding="utf-8"))["identity"]["label"][language]
        text = text.replace(f"`{file.stem}`", f"**{label}**")
    return text


def stage(target: Path) -> None:
    """Write the plugin's folder.

    Raises:
        ValueError: there are files that git does not know.
    """
    lay_out(target, ROOT)
    for language, page in PAGES.items():
        (target / page).write_text(readme(language), encoding="utf-8")


def stage_example(name: str, target: Path) -> None:
    """Write the folder of an example's plugin.

    Raises:
        ValueError: there is no such example, or there are files that git does not know.
    """
    main = ROOT / "examples" / name / "main.py"
    if not main.is_file():
        names = ", ".join(sorted(file.parent.name for file in ROOT.glob("examples/*/main.py")))
        raise ValueError(f"there is no example {name!r} with a plugin; there are {names}")
    sources = "\n".join(file.read_text(encoding="utf-8") for file in main.parent.rglob("*.py"))
    packages = [each for each in sorted((main.parents[1] / SHARED_CODE).iterdir()) if f"from {each.name}." in sources]
    lay_out(target, main.parent, *packages)


def lay_out(target: Path, plugin: Path, *packages: Path) -> None:
    """Replace the content of `target` with the plugin's packaged files and the Python packages."""
    every = {target: Contents.of(plugin), **{target / each.name: Contents.of(each) for each in packages}}
    for contents in every.values():
        if strange := unknown_files(contents):
            remedy = "git add what belongs to the plugin, and name the rest in .difyignore"
            raise ValueError(f"git does not know {', '.join(strange)}; {remedy}")
    shutil.rmtree(target, ignore_errors=True)
    for folder, contents in every.items():
        for path in contents.paths:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(contents.directory / path, folder / path)


def main(arguments: Sequence[str]) -> int:
    name = arguments[0] if arguments else PLUGIN
    try:
        if name == PLUGIN:
            stage(DIST / name)
        else:
            stage_example(name, DIST / name)
    except ValueError as error:
        sys.stderr.write(f"not packed: {error}\n")
        return 1
    sys.stdout.write(f"{(DIST / name).relative_to(ROOT)}: the folder to pack\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
