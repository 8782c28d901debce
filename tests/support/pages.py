"""The pages of the repository, and how their text is read."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TRANSLATIONS = sorted((ROOT / "readme").iterdir())
PAGES = [
    *(README, ROOT / "CHANGELOG.md", ROOT / "PRIVACY.md", ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md"),
    *(ROOT / "AGENTS.md", ROOT / "benchmarks" / "README.md", ROOT / "devhost" / "README.md"),
    *(
        *TRANSLATIONS,
        *sorted((ROOT / "docs").glob("*.md")),
        *sorted((ROOT / "devhost" / "docs").glob("*.md")),
        *sorted((ROOT / "examples").glob("*/*.md")),
    ),
]

FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    """A page without its code blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def section(page: Path, heading: str) -> str:
    """The text below a heading, up to the next one of its level or above."""
    level = heading.split(maxsplit=1)[0]
    text = page.read_text(encoding="utf-8").partition(f"\n{heading}\n")[2]
    return re.split(rf"^#{{2,{len(level)}}} ", text, maxsplit=1, flags=re.MULTILINE)[0]
