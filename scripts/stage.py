#!/usr/bin/env python3
"""Lay out the folder that is packed: the plugin's files, with READMEs for somebody who has just installed it.

In: the files that `.difyignore` leaves in, which git must know, and docs/package/README*.md. What those share with the
repository's READMEs stands in the latter, between markers. Out: dist/gpt5_agent, which `devhost package` and Dify's own
`dify plugin package` pack alike. `make package` calls this.

Dify's page for a plugin shows a line's end as a break, half of a table, no relative link and no picture of the package
(docs/host-facts.md, "The page of a plugin").
"""

import re
import shutil
import sys
from pathlib import Path

import yaml

from devhost.package import changed_files, folded, unknown_files
from devhost.plugin.contents import Contents
from scripts.publisher import REPOSITORY

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "dist" / "gpt5_agent"
TEMPLATES = ROOT / "docs" / "package"
PAGES = {
    "en_US": "README.md",
    "ja_JP": "readme/README_ja_JP.md",
    "zh_Hans": "readme/README_zh_Hans.md",
    "pt_BR": "readme/README_pt_BR.md",
}
"""The pages that Dify shows, by language: in the repository, and in the package."""
SHARED = re.compile(r"<!-- shared: (\w+) -->\n(.*?)\n<!-- /shared -->", re.DOTALL)
PLACE = re.compile(r"<!-- shared: (\w+) -->")
ASIDE = re.compile(r" ?[（(]\[[^]]+\]\((?!https?:)[^)]+\)[）)]")
"""A relative link in parentheses, as to a page that says more."""
RELATIVE = re.compile(r"\[([^]]+)\]\((?!https?:)[^)]+\)")

ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def readme(language: str) -> str:
    """The package's README in a language.

    Raises:
        KeyError: the template names a part that the repository's README does not have.
    """
    page = (ROOT / PAGES[language]).read_text(encoding="utf-8")
    parts = {name: _for_dify(text, language) for name, text in SHARED.findall(page)}
    repo = yaml.safe_load((ROOT / "manifest.yaml").read_text(encoding="utf-8")).get("repo")
    parts["repository"] = REPOSITORY[PAGES[language]][0].format(repo=repo) if repo else ""
    template = (TEMPLATES / Path(PAGES[language]).name).read_text(encoding="utf-8")
    return PLACE.sub(lambda place: parts[place[1]], template).rstrip() + "\n"


def _for_dify(text: str, language: str) -> str:
    """Paragraphs on one line, a table as a list, links as words, strategies under the names that the panel shows."""
    text = RELATIVE.sub(r"\1", ASIDE.sub("", text))
    rows = ROW.findall(text)[1:]  # without the header
    text = "\n".join(f"- {name}: {use}" for name, use in rows) if rows else " ".join(text.splitlines())
    for file in (ROOT / "strategies").glob("*.yaml"):
        label = yaml.safe_load(file.read_text(encoding="utf-8"))["identity"]["label"][language]
        text = text.replace(f"`{file.stem}`", f"**{label}**")
    return text


def stage(target: Path) -> tuple[str, ...]:
    """Write the folder, in place of what it held; returns the files that are not as in the last commit.

    Raises:
        ValueError: there are files that git does not know.
    """
    contents = Contents.of(ROOT)
    if strange := unknown_files(contents):
        names = ", ".join(folded(strange, contents.paths))
        raise ValueError(
            f"git does not know {names}; git add what belongs to the plugin, and name the rest in .difyignore"
        )
    shutil.rmtree(target, ignore_errors=True)
    for path in contents.paths:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, target / path)
    for language, page in PAGES.items():
        (target / page).write_text(readme(language), encoding="utf-8")
    return changed_files(contents)


def main() -> int:
    try:
        changed = stage(FOLDER)
    except ValueError as error:
        sys.stderr.write(f"not packed: {error}\n")
        return 1
    if changed:
        sys.stdout.write(f"notice: not as in the last commit: {', '.join(changed)}\n")
    sys.stdout.write(f"{FOLDER.relative_to(ROOT)}: the folder to pack\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
