#!/usr/bin/env python3
"""Prints the section of CHANGELOG.md for a release, and refuses a tag that does not match manifest.yaml.

The argument is a tag, such as v0.1.0. If the tag does not match, the script prints a sentence to stderr and returns 1.
Links to pages lead to the tag in the manifest's repository, because a release has no folder for relative links.
"""

import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
RELATIVE = re.compile(r"\]\((?!https?:|#)([^)]+)\)")


def notes(tag: str, root: Path = ROOT) -> str:
    """Return the section of the changelog, without its heading.

    Raises:
        ValueError: the tag does not match the manifest's version, or the changelog has no such section.
    """
    manifest = yaml.safe_load((root / "manifest.yaml").read_text(encoding="utf-8"))
    version = str(manifest["version"])
    if tag != f"v{version}":
        raise ValueError(f"the tag is {tag}, but manifest.yaml has the version {version}: the tag must be v{version}")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)
    section = next((each for each in sections if each.startswith(f"[{version}] - ")), "")
    _, _, said = section.partition("\n")
    if not said.strip():
        raise ValueError(f"CHANGELOG.md says nothing under '## [{version}] - DATE'")
    if repo := manifest.get("repo"):
        said = RELATIVE.sub(rf"]({repo.rstrip('/')}/blob/{tag}/\1)", said)
    return said.strip()


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: release_notes.py TAG\n")
        return 2
    try:
        sys.stdout.write(f"{notes(arguments[0])}\n")
    except ValueError as error:
        sys.stderr.write(f"release_notes: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
