"""Renders the templates of this folder, which share the macros of the report's."""

from pathlib import Path

from devhost.page.environment import page_environment

HERE = Path(__file__).parent
TEMPLATES, STATIC = HERE / "templates", HERE / "static"
REPORT = Path(__file__).parents[2] / "page"
"""The folder of the report's style sheet."""


class Pages:
    def __init__(self) -> None:
        self.environment = page_environment(TEMPLATES)

    def render(self, template: str, **values: object) -> str:
        return self.environment.get_template(template).render(**values)


def style_sheet() -> str:
    """The report's, then the console's frame, then every other style sheet of the console."""
    frame = STATIC / "console.css"
    others = sorted(file for file in STATIC.glob("*.css") if file != frame)
    return "\n".join(file.read_text(encoding="utf-8") for file in (REPORT / "page.css", frame, *others))
