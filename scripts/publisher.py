#!/usr/bin/env python3
"""Writes the repository and the contact from manifest.yaml into the pages that show them.

The text is inserted between the markers of each page. If `repo` or `contact` is missing, a sentence says so. `make
docs` calls this script.
"""

import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
BEGIN = "<!-- publisher: written by `make docs` from manifest.yaml, do not edit -->"
END = "<!-- /publisher -->"

REPOSITORY = {
    "README.md": ("Repository: <{repo}>", "Repository: not published yet."),
    "readme/README_ja_JP.md": ("リポジトリ: <{repo}>", "リポジトリ: まだ公開されていません。"),
    "readme/README_zh_Hans.md": ("代码仓库：<{repo}>", "代码仓库：尚未公开。"),
    "readme/README_pt_BR.md": ("Repositório: <{repo}>", "Repositório: ainda não publicado."),
}
"""For each page the line with the address, and the line if the address is missing."""
CONTACT = (
    "Write to <{contact}>.",
    "This copy names no contact yet: its publisher fills in `contact` in `manifest.yaml`.",
)
CONTACT_PAGES = ("PRIVACY.md", "SECURITY.md")


def lines(manifest: dict[str, Any]) -> dict[str, str]:
    """Return the text between the markers of each page, by the page's path."""
    repo = manifest.get("repo")
    contact = manifest.get("contact")
    shown = {page: given.format(repo=repo) if repo else missing for page, (given, missing) in REPOSITORY.items()}
    given, missing = CONTACT
    return shown | dict.fromkeys(CONTACT_PAGES, given.format(contact=contact) if contact else missing)


def stale_pages(root: Path = ROOT) -> dict[Path, str]:
    """Return the correct text of each page that differs from the manifest.

    Raises:
        ValueError: a page lacks one of its markers.
    """
    manifest = yaml.safe_load((root / "manifest.yaml").read_text(encoding="utf-8"))
    stale = {}
    for page, line in lines(manifest).items():
        text = (root / page).read_text(encoding="utf-8")
        before, begin, rest = text.partition(f"{BEGIN}\n")
        _, end, after = rest.partition(f"\n{END}")
        if not begin or not end:
            raise ValueError(f"{page} lacks one of the markers {BEGIN!r} and {END!r}")
        wanted = f"{before}{begin}{line}{end}{after}"
        if wanted != text:
            stale[root / page] = wanted
    return stale


def main() -> int:
    for path, text in stale_pages().items():
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)} written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
